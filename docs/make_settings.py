"""Write docs/settings.md: every setting of training, from the structures that hold them.

Needs ``embgeo[train]``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from embgeo.core.settings import type_hints
from embgeo.training import sections
from embgeo.training.components import MODELS, TASKS
from embgeo.training.limits import Settings
from embgeo.training.registry import METHODS, load_class
from embgeo.training.schedules import SCHEDULES
from embgeo.training.settings import list_presets

TARGET = Path(__file__).parent / "settings.md"

OPENING = """# Settings of training

<!-- Made by docs/make_settings.py from the code; change it there, then run it. -->

Every setting of [`embgeo train`](training.md) with its default, and where models, tasks and methods
differ from their publications. `--set model.d=64` gives one setting, a
[file](training.md#settings) many. [Presets](#presets) have other defaults; `train.toml` in the
folder of a study holds what was taken.
"""

#: What a table of settings is about.
TABLES = {
    "data": ("The text", sections.DataSettings),
    "optimizer": ("Optimizer and schedule", sections.OptimizerSettings),
    "training": ("Length, batches and device", sections.TrainingSettings),
    "evaluation": ("Evaluation", sections.EvaluationSettings),
    "geometry": ("The embedding while a model trains", sections.GeometrySettings),
}


def find_meanings(owner: type) -> dict[str, tuple[tuple[str, ...], str]]:
    """Find names and meaning of each setting: the comment above it and those below it.

    Settings above all comments have those of a base class.
    """
    found: dict[str, tuple[tuple[str, ...], str]] = {}
    kinds = [kind for kind in inspect.getmro(owner) if issubclass(kind, Settings)]
    for kind in reversed(kinds):
        body = inspect.getsource(kind)
        for comment, fields in re.findall(r"((?:^    #: .*\n)+)((?:^    \w+: .*\n)+)", body, re.M):
            names = tuple(re.findall(r"^    (\w+): ", fields, re.M))
            text = write_prose(re.sub(r"^    #: ", "", comment, flags=re.M))
            found |= dict.fromkeys(names, (names, text))
    return found


def list_choices(hint: Any) -> str:
    """List the texts that a type allows, to be put before a meaning."""
    kinds = [hint, *get_args(hint)]
    named = [one for kind in kinds if get_origin(kind) is Literal for one in get_args(kind)]
    return ", ".join(f'"{one}"' for one in named) + ". " if named else ""


def write_prose(text: str) -> str:
    """Write the markup of a docstring in Markdown, for a cell of a table."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def write_default(value: Any) -> str:
    """Write a default as a file of settings would; None and an empty text are left out."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(list(value) if isinstance(value, tuple) else value)


Row = tuple[tuple[str, ...], str, str]


def list_rows(owner: Any) -> Iterator[Row]:
    """Yield names, defaults and meaning of each setting; neighbors with one meaning share a row."""
    meanings = find_meanings(owner)
    hints = type_hints(owner)
    defaults = {one.name: one.default for one in msgspec.structs.fields(owner)}
    left = [name for name in defaults if name != "settings"]
    while left:
        names, text = meanings.get(left[0], ((), ""))
        own = tuple(name for name in names if name in left) or (left[0],)
        left = [name for name in left if name not in own]
        shown = ", ".join(write_default(defaults[name]) for name in own).strip(", ")
        yield own, shown, text if '"' in text else list_choices(hints[own[0]]) + text


def make_table(rows: Iterable[Row]) -> str:
    lines = [
        f"| {', '.join(f'`{name}`' for name in names)} | {default} | {text} |\n"
        for names, default, text in rows
    ]
    head = "\n| setting | default | meaning |\n|---|---|---|\n"
    return head + "".join(lines) if lines else ""


def describe_kinds(kinds: Mapping[str, Any]) -> str:
    """Describe models, tasks or methods with their sources, settings and deviations.

    What several of them share comes first, once.
    """
    rows = {title: list(list_rows(owner)) for title, owner in kinds.items()}
    classes = {title: load_class(owner) for title, owner in kinds.items()}
    users: dict[tuple[tuple[str, ...], str], dict[str, str]] = {}
    departs: dict[str, list[str]] = {}
    for title, kind in classes.items():
        for names, default, text in rows[title]:
            users.setdefault((names, text), {})[title] = default
        for line in getattr(kind, "DEVIATIONS", ()):
            departs.setdefault(line, []).append(title)
    shared = (
        (names, "; ".join(f"{title} {default}".strip() for title, default in of.items()), text)
        for (names, text), of in users.items()
        if len(of) > 1
    )
    text = make_table(shared)
    if lines := [(line, of) for line, of in departs.items() if len(of) > 1]:
        text += "\nNot as published, of several:\n\n"
        text += "".join(f"- {', '.join(of)}: {write_prose(line)}\n" for line, of in lines)
    for title, kind in classes.items():
        own = make_table(row for row in rows[title] if len(users[row[0], row[2]]) == 1)
        source = getattr(kind, "SOURCE", "")
        apart = [one for one in getattr(kind, "DEVIATIONS", ()) if len(departs[one]) == 1]
        if source or own or apart:
            text += f"\n### {title}\n" + (f"\n{source}.\n" if source else "") + own
        if apart:
            text += "\nNot as published:\n\n"
            text += "".join(f"- {write_prose(line)}\n" for line in apart)
    return text


def list_parts() -> Iterator[tuple[str, type[Settings]]]:
    """Yield each part of methods once, with the methods that use it."""
    users: dict[type, list[str]] = {}
    for name, method in METHODS.items():
        for part in method.parts:
            users.setdefault(part, []).append(name)
    for part, names in users.items():
        yield ", ".join(f"`{name}`" for name in names), part


def document() -> str:
    text = OPENING
    for name, (title, section) in TABLES.items():
        text += f"\n## {title}: `[{name}]`\n" + make_table(list_rows(section))
        if section is sections.OptimizerSettings:
            text += describe_kinds(name_kinds({**sections.OPTIMIZERS, **SCHEDULES}))
    models = MODELS | {name: kind for task in TASKS.values() for name, kind in task.MODELS.items()}
    for name, title, section, listed in (
        ("model", "Models", sections.ModelSettings, models),
        ("task", "Tasks", sections.TaskSettings, TASKS),
    ):
        text += f"\n## {title}: `[{name}]`\n" + make_table(list_rows(section))
        text += describe_kinds(name_kinds(listed))
    text += "\n## Methods: `[method.NAME]`\n" + describe_kinds(dict(list_parts()))
    rows = (f"| `{name}` | {describe_preset(file)} |\n" for name, file in list_presets().items())
    return text + "\n## Presets\n\n| `--preset` | |\n|---|---|\n" + "".join(rows)


def name_kinds(kinds: Mapping[str, Any]) -> dict[str, Any]:
    return {f"`{name}`": kind for name, kind in kinds.items() if kind.__struct_fields__}


def describe_preset(file: Traversable) -> str:
    """Read the first sentence of the comment at the head of a file of settings."""
    head = takewhile(lambda line: line.startswith("#"), file.read_text("utf-8").splitlines())
    text = write_prose(" ".join(line.removeprefix("#") for line in head))
    text = re.split(r"(?<=[\w)]\.) (?=[A-Z])", text)[0]
    return re.sub(r"--\w+(?: [\w.]+=[\w\[\]]+)?", r"`\g<0>`", text)


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8", newline="\n")

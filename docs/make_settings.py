"""Write docs/settings.md: every setting of training, from the docstrings of what takes it.

Needs ``embgeo[train]``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from importlib.resources.abc import Traversable
from itertools import takewhile
from pathlib import Path
from typing import Any

from embgeo.training import sections
from embgeo.training.checks import list_defaults
from embgeo.training.methods import METHODS
from embgeo.training.methods.regularizer import FROM_SETUP, list_settings
from embgeo.training.models import MODELS
from embgeo.training.settings import list_presets
from embgeo.training.tasks import TASKS

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
}
#: Settings of every model, task and run that no docstring of a class describes.
SHARED = """
`geometry.every` is the number of steps between two measurements of the embedding; without it there
are none while a model trains. `task.name` and `model.name` choose the task and the model.
`model.tied` shares one matrix between the embedding and the output layer, `model.bias` gives the
output layer a bias.
"""
OF_EVERY_MODEL = ("tied", "bias")


def read_entries(doc: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the names and the meaning of each entry of a numpydoc docstring, with its choices."""
    for head in ("Parameters", "Attributes"):
        part = re.search(rf"^{head}\n-+\n(.*?)(?=\n\n\w|\Z)", doc, re.MULTILINE | re.DOTALL)
        for entry in re.split(r"^(?=\w)", part[1], flags=re.MULTILINE) if part else ():
            first, _, text = entry.partition("\n")
            names, _, kind = first.partition(" : ")
            choices = re.search(r"\{(.*)\}", kind)
            if choices and '"' not in text:
                text = f"{choices[1]}. {text}"
            if names:
                yield tuple(names.split(", ")), write_prose(text)


def find_meanings(owner: Any) -> dict[str, tuple[tuple[str, ...], str]]:
    """Find names and meaning of each entry; what refers to a base class has the base's words."""
    found: dict[str, tuple[tuple[str, ...], str]] = {}
    for kind in reversed(inspect.getmro(owner)):
        for names, text in read_entries(inspect.cleandoc(kind.__doc__ or "")):
            for name in names:
                if not (name in found and text.startswith("See ")):
                    found[name] = names, text
    return found


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


def list_rows(owner: Any, defaults: Mapping[str, Any]) -> Iterator[Row]:
    """Yield names, defaults and meaning of each setting; neighbors with one meaning share a row."""
    meanings = find_meanings(owner)
    left = [name for name in defaults if name in meanings or name not in OF_EVERY_MODEL]
    while left:
        names, text = meanings.get(left[0], ((), ""))
        own = tuple(name for name in names if name in left) or (left[0],)
        left = [name for name in left if name not in own]
        if not text.startswith("See "):
            shown = ", ".join(write_default(defaults[name]) for name in own).strip(", ")
            yield own, shown, text


def make_table(rows: Iterable[Row]) -> str:
    lines = [
        f"| {', '.join(f'`{name}`' for name in names)} | {default} | {text} |\n"
        for names, default, text in rows
    ]
    head = "\n| setting | default | meaning |\n|---|---|---|\n"
    return head + "".join(lines) if lines else ""


def describe_kinds(kinds: Mapping[str, tuple[Any, Mapping[str, Any]]]) -> str:
    """Describe models, tasks or methods with their sources, settings and deviations.

    What several of them share comes first, once.
    """
    rows = {title: list(list_rows(*owner)) for title, owner in kinds.items()}
    users: dict[tuple[tuple[str, ...], str], dict[str, str]] = {}
    departs: dict[str, list[str]] = {}
    for title, (kind, _) in kinds.items():
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
    for title, (kind, _) in kinds.items():
        own = make_table(row for row in rows[title] if len(users[row[0], row[2]]) == 1)
        source = getattr(kind, "SOURCE", "")
        lines = [one for one in getattr(kind, "DEVIATIONS", ()) if len(departs[one]) == 1]
        text += f"\n### {title}\n" + (f"\n{source}.\n" if source else "") + own
        if lines:
            text += "\nNot as published:\n\n"
            text += "".join(f"- {write_prose(line)}\n" for line in lines)
    return text


def list_fields(section: type[Any]) -> dict[str, Any]:
    """List the defaults of a table of settings."""
    return {f.name: None if f.default is MISSING else f.default for f in fields(section)}


def list_regularizers() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield each regularizer once, with the methods that use it."""
    users: dict[Any, list[str]] = {}
    for name, method in METHODS.items():
        for part in method.parts:
            users.setdefault(part, []).append(name)
    for part, names in users.items():
        settings = list_settings(part)
        own = {k: v.default for k, v in settings.items() if k not in FROM_SETUP}
        if own or part.DEVIATIONS:
            yield ", ".join(f"`{name}`" for name in names), part, own


def document() -> str:
    text = OPENING
    for name, (title, section) in TABLES.items():
        text += f"\n## {title}: `[{name}]`\n" + make_table(list_rows(section, list_fields(section)))
    text += SHARED
    kinds: dict[str, Any] = {
        **MODELS,
        **{model.NAME: model for task in TASKS.values() for model in task.MODELS},
    }
    for head, table, listed in (("Models", "model", kinds), ("Tasks", "task", TASKS)):
        text += f"\n## {head}: `[{table}]`\n"
        text += describe_kinds(
            {f"`{n}`": (kind, list_defaults(kind)) for n, kind in listed.items()}
        )
    text += "\n## Methods: `[method.NAME]`\n"
    text += describe_kinds({title: (part, own) for title, part, own in list_regularizers()})
    rows = (f"| `{name}` | {describe_preset(file)} |\n" for name, file in list_presets().items())
    return text + "\n## Presets\n\n| `--preset` | |\n|---|---|\n" + "".join(rows)


def describe_preset(file: Traversable) -> str:
    """Read the first sentence of the comment at the head of a file of settings."""
    head = takewhile(lambda line: line.startswith("#"), file.read_text("utf-8").splitlines())
    text = write_prose(" ".join(line.removeprefix("#") for line in head))
    text = re.split(r"(?<=[\w)]\.) (?=[A-Z])", text)[0]
    return re.sub(r"--\w+(?: [\w.]+=[\w\[\]]+)?", r"`\g<0>`", text)


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8", newline="\n")

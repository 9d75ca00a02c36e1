"""The settings of a study, from arguments, a file, a preset and the runs that are resumed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.arguments import as_texts, refuse_if
from embgeo.core.errors import argument
from embgeo.core.settings import Positive, parse_value

if TYPE_CHECKING:
    from embgeo.training.settings import StudySettings

USUAL_PRESET = "tiny-cpu"
_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
#: Settings of a user's file that are paths, relative to its folder.
_PATHS = (("data", "path"), ("data", "tokenizer"), ("task", "wordsim"), ("training", "start"))


def gather_settings(
    data: Path | str | None = None,
    *,
    compare: Sequence[str] | str | None = None,
    preset: str | None = None,
    config: Path | str | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    seeds: int | None = None,
    device: str | None = None,
    tune: Mapping[str, Sequence[Any]] | Sequence[str] | None = None,
    start: Path | str | None = None,
    plugins: Sequence[Path | str] | None = (),
    out: Path | str | None = None,
    resume: bool = False,
) -> StudySettings:
    """Merge the arguments of `train` over a file over a preset, and load the plug-ins.

    Resumed runs take the place of preset and file unless one is given. Nothing is checked yet.
    """
    from embgeo.training.plugins import load_plugins, require_plugins
    from embgeo.training.settings import (
        STUDY_SETTINGS_NAME,
        StudySettings,
        from_tables,
        load_preset,
        merge_tables,
        put,
        read_settings,
    )

    seeds = parse_value(seeds, Positive | None, argument("seeds"))
    changes = as_tables(settings)
    if isinstance(compare, str):
        compare = [name.strip() for name in compare.split(",") if name.strip()]
    for key, value in (
        ("data.path", None if data is None else str(data)),
        ("compare", None if compare is None else list(compare)),
        ("seeds", None if seeds is None else list(range(seeds))),
        ("training.device", device),
        ("tune", parse_tuned(tune or ()) or None),
        ("training.start", None if start is None else str(start)),
    ):
        if value is not None:
            put(changes, key.split("."), value)
    way_out = f"give their folder with {argument('out')}"
    refuse_if(resume and out is None, argument("resume"), "does not say which runs", way_out)
    before = None
    if resume and out is not None:
        begun, way_out = Path(out) / STUDY_SETTINGS_NAME, f"leave out {argument('resume')}"
        refuse_if(not begun.is_file(), str(out), "holds no runs", way_out)
        before = read_settings(begun)
    if before is not None and preset is None and config is None:
        found = before.updated(changes)
    else:
        own = {} if config is None else read_own(Path(config))
        # Settings of a run have every table; what they leave unset, no preset may set.
        whole = preset is None and own.keys() >= StudySettings().tables().keys()
        tables = {} if whole else load_preset(preset or USUAL_PRESET).tables()
        found = from_tables(merge_tables(merge_tables(tables, own), changes))
    if before is not None:
        found = found.updated(
            {
                "compare": list(dict.fromkeys((*before.compare, *found.compare))),
                "seeds": sorted({*before.seeds, *found.seeds}),
            }
        )
    loaded = load_plugins([Path(path) for path in plugins or ()])
    require_plugins(found.plugins, loaded)
    return replace(found, plugins=loaded)


def read_own(path: Path) -> dict[str, Any]:
    """Read the tables of a user's file of settings; paths in it are relative to its folder."""
    from embgeo.training.settings import read_settings

    read_settings(path)  # names the file in errors
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    for table, name in _PATHS:
        if tables.get(table, {}).get(name):
            tables[table][name] = str(path.parent / tables[table][name])
    return tables


def as_tables(settings: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Return settings in tables, from dotted names, tables, or texts such as ``training.epochs=3``.

    >>> as_tables({"training.epochs": 3, "model": {"d": 8}})
    {'training': {'epochs': 3}, 'model': {'d': 8}}
    """
    from embgeo.training.settings import put

    tables: dict[str, Any] = {}
    named = isinstance(settings, Mapping)
    for keys, value in [([], settings)] if named else map(parse_assignment, settings):
        put(tables, keys, value)
    return tables


def parse_assignment(text: str) -> tuple[list[str], Any]:
    """Split ``training.epochs=3`` into keys and a value; a value that is not TOML is text.

    >>> parse_assignment("model.width=96"), parse_assignment("model.name=vd-lstm")
    ((['model', 'width'], 96), (['model', 'name'], 'vd-lstm'))
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    wrong = not equals or not _KEY.fullmatch(key)
    way_out = f"write {argument('settings', 'training.epochs=3')}"
    refuse_if(wrong, argument("settings"), f"{text!r} is not a setting", way_out)
    try:
        parsed = tomllib.loads(f"x = {value}")
    except (ValueError, RecursionError):
        parsed = {}
    return key.split("."), parsed["x"] if list(parsed) == ["x"] else value.strip()


def parse_tuned(tune: Mapping[str, Sequence[Any]] | Sequence[str]) -> dict[str, list[Any]]:
    """Parse values to try by setting; a value that is not TOML is text.

    >>> parse_tuned(["lr=1e-3,3e-3", "optimizer.betas=[0.9, 0.98], [0.9, 0.999]", "x=a, b"])
    {'lr': [0.001, 0.003], 'optimizer.betas': [[0.9, 0.98], [0.9, 0.999]], 'x': ['a', 'b']}
    """
    if isinstance(tune, Mapping):
        return {name: list(values) for name, values in tune.items()}
    found: dict[str, list[Any]] = {}
    for text in as_texts(tune, "tune"):
        name, equals, values = text.partition("=")
        cause, way_out = f"{text!r} lists no values", "write it as in lr=1e-3,3e-3,1e-2"
        wrong = not equals or not values.strip() or not _KEY.fullmatch(name.strip())
        refuse_if(wrong, argument("tune"), cause, way_out)
        try:
            found[name.strip()] = tomllib.loads(f"x = [{values}]")["x"]
        except (ValueError, RecursionError):
            own = values.split(",")
            found[name.strip()] = [parse_assignment(f"x={one.strip()}")[1] for one in own]
    return found

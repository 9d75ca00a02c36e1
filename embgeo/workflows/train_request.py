"""What a training is asked for: from plain arguments to the settings that hold."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from embgeo.core.errors import BadOption, argument

if TYPE_CHECKING:
    from embgeo.training.settings import StudySettings

#: The settings where nothing is said.
USUAL_PRESET = "tiny-cpu"

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """The arguments of :func:`embgeo.workflows.train.train`; None or empty where not given.

    Attributes
    ----------
    settings : dict
        Tables of the settings that were changed by name.
    budget : float or None
        Seconds.
    """

    data: Path | None = None
    compare: tuple[str, ...] | None = None
    preset: str | None = None
    config: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    budget: float | None = None
    device: str | None = None
    out: Path | None = None
    resume: bool = False

    @classmethod
    def of(
        cls,
        data: Path | str | None = None,
        *,
        compare: Sequence[str] | str | None = None,
        preset: str | None = None,
        config: Path | str | None = None,
        settings: Mapping[str, Any] | Sequence[str] = (),
        seeds: int | None = None,
        budget: float | str | None = None,
        device: str | None = None,
        out: Path | str | None = None,
        resume: bool = False,
    ) -> Self:
        """From plain arguments.

        Raises
        ------
        BadOption
        """
        if isinstance(compare, str):
            compare = [name.strip() for name in compare.split(",") if name.strip()]
        return cls(
            data=None if data is None else Path(data),
            compare=None if compare is None else tuple(compare),
            preset=preset,
            config=None if config is None else Path(config),
            settings=as_tables(settings),
            seeds=seeds,
            budget=parse_seconds(budget) if isinstance(budget, str) else budget,
            device=device,
            out=None if out is None else Path(out),
            resume=resume,
        )

    def resolve(self) -> StudySettings:
        """The settings that hold: arguments before files, files before presets.

        Raises
        ------
        BadOption, UnreadableFile
        """
        from embgeo.training.settings import from_tables, load_preset, merge_tables

        if self.resume and self.out is None:
            raise BadOption(
                "does not say which runs",
                where=argument("resume"),
                way_out=f"give their folder with {argument('out')}",
            )
        before = read_begun(self.out) if self.resume and self.out is not None else None
        if before is not None and self.preset is None and self.config is None:
            return extend(before, before.updated(self.changes()))
        tables = load_preset(self.preset or USUAL_PRESET).tables()
        if self.config is not None:
            tables = merge_tables(tables, read_own(self.config))
        found = from_tables(merge_tables(tables, self.changes()))
        return found if before is None else extend(before, found)

    def changes(self) -> dict[str, Any]:
        """What the arguments change in the settings, as tables."""
        changed: dict[str, Any] = {}
        put_all(changed, self.settings)
        if self.data is not None:
            put(changed, ["data", "path"], str(self.data))
        if self.compare is not None:
            changed["compare"] = list(self.compare)
        if self.seeds is not None:
            changed["seeds"] = list(range(self.seeds))
        if self.device is not None:
            put(changed, ["training", "device"], self.device)
        if self.budget is not None:
            put(changed, ["training", "budget"], self.budget)
        return changed

    def folder(self, text: Path) -> Path:
        """Where runs on a text go."""
        if self.out is not None:
            return self.out
        name = text.resolve().name
        return Path(f"{name.partition('.')[0] or name or 'text'}.runs")


def read_own(path: Path) -> dict[str, Any]:
    """The tables of a user's file of settings; paths in it are relative to its folder.

    Raises
    ------
    BadOption, UnreadableFile
    """
    from embgeo.training.settings import read_settings

    read_settings(path)  # refuses what is wrong in it, by its name
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    for name in ("path", "tokenizer"):
        if tables.get("data", {}).get(name):
            tables["data"][name] = str(path.parent / tables["data"][name])
    return tables


def read_begun(folder: Path) -> StudySettings:
    """The settings with which the runs of a folder were begun.

    Raises
    ------
    BadOption, UnreadableFile
    """
    from embgeo.training.settings import STUDY_SETTINGS_NAME, read_settings

    path = folder / STUDY_SETTINGS_NAME
    if not path.is_file():
        raise BadOption("holds no runs", where=folder, way_out=f"leave out {argument('resume')}")
    return read_settings(path)


def extend(before: StudySettings, now: StudySettings) -> StudySettings:
    """Other settings, with the methods and seeds that a folder has already."""
    return now.updated(
        {
            "compare": list(dict.fromkeys((*before.compare, *now.compare))),
            "seeds": sorted({*before.seeds, *now.seeds}),
        }
    )


def as_tables(settings: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Settings by dotted names, in tables, or as texts such as ``training.epochs=3``.

    >>> as_tables({"training.epochs": 3, "model": {"d": 8}})
    {'training': {'epochs': 3}, 'model': {'d': 8}}

    Raises
    ------
    BadOption
    """
    tables: dict[str, Any] = {}
    if isinstance(settings, Mapping):
        put_all(tables, settings)
        return tables
    for text in settings:
        put(tables, *parse_assignment(text))
    return tables


def put_all(tables: dict[str, Any], settings: Mapping[str, Any], outer: Sequence[str] = ()) -> None:
    """Set all values of `settings`, whose keys may be dotted and whose values may be tables."""
    for key, value in settings.items():
        keys = [*outer, *str(key).split(".")]
        if isinstance(value, Mapping):
            put_all(tables, value, keys)
        else:
            put(tables, keys, value)


def put(tables: dict[str, Any], keys: list[str], value: Any) -> None:
    """Set a value that lies in tables inside tables."""
    *outer, last = keys
    for key in outer:
        inner = tables.setdefault(key, {})
        if not isinstance(inner, dict):
            name = argument("settings", ".".join(keys))
            raise BadOption(f"{key} is no table", where=name)
        tables = inner
    tables[last] = value


def parse_assignment(text: str) -> tuple[list[str], Any]:
    """``training.epochs=3`` as keys and a value; what is no TOML is text.

    >>> parse_assignment("model.width=96"), parse_assignment("model.name=vd-lstm")
    ((['model', 'width'], 96), (['model', 'name'], 'vd-lstm'))

    Raises
    ------
    BadOption
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not _KEY.fullmatch(key):
        raise BadOption(
            f"{text!r} is no setting",
            where=argument("settings"),
            way_out=f"write {argument('settings', 'training.epochs=3')}",
        )
    try:
        parsed = tomllib.loads(f"x = {value}")
    except (ValueError, RecursionError):
        parsed = {}
    return key.split("."), parsed["x"] if list(parsed) == ["x"] else value.strip()


def parse_seconds(text: str) -> float:
    """``5m`` as 300.

    Raises
    ------
    BadOption
    """
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?) ?([smh])", text.strip().lower())
    if found is None or not float(found[1]) > 0:
        raise BadOption(
            f"{text!r} is no time", where=argument("budget"), way_out="write it as in 5m, 90s or 2h"
        )
    return float(found[1]) * _SECONDS[found[2]]

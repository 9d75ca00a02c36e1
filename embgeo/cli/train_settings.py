"""From the options of ``embgeo train`` to its settings."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.errors import BadOption

if TYPE_CHECKING:
    from embgeo.training.settings.study_settings import StudySettings

#: The settings that a folder of runs was begun with.
SETTINGS_NAME = "train.toml"
#: The settings where nothing is said.
USUAL_PRESET = "tiny-cpu"

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class Given:
    """The options as they were given; None or empty where they were not."""

    data: Path | None = None
    compare: str | None = None
    preset: str | None = None
    config: Path | None = None
    set_: tuple[str, ...] = ()
    seeds: int | None = None
    budget: str | None = None
    device: str | None = None
    out: Path | None = None
    resume: bool = False

    def check(self, experiment: str | None) -> None:
        """Refuse options that would do nothing.

        Raises
        ------
        BadOption
        """
        if experiment is None:
            return
        idle = {
            "--compare": self.compare,
            "--preset": self.preset,
            "--config": self.config,
            "--budget": self.budget,
        }
        for name, value in idle.items():
            if value is not None:
                raise BadOption(
                    "is about comparisons of methods, not about an experiment",
                    where=name,
                    way_out="leave it out; --set changes settings of the experiment",
                )

    def settings(self) -> StudySettings:
        """The settings that hold, those on the line before those in files.

        Raises
        ------
        BadOption, UnreadableFile
        """
        from embgeo.training.settings.study_settings import (
            from_tables,
            load_preset,
            merge_tables,
            read_settings,
        )

        if self.resume and self.out is None:
            raise BadOption(
                "does not say which runs", where="--resume", way_out="give their folder with -o"
            )
        before = begun(self.out) if self.resume and self.out is not None else None
        if before is not None and self.is_bare:
            return grown(before, before.updated(self.changes()))
        tables = load_preset(self.preset or USUAL_PRESET).tables()
        if self.config is not None:
            read_settings(self.config)  # refuses what is wrong in it, by its name
            own = tomllib.loads(self.config.read_text(encoding="utf-8"))
            for name in ("path", "tokenizer"):  # as the file means them
                if own.get("data", {}).get(name):
                    own["data"][name] = str(self.config.parent / own["data"][name])
            tables = merge_tables(tables, own)
        found = from_tables(merge_tables(tables, self.changes()))
        return found if before is None else grown(before, found)

    @property
    def is_bare(self) -> bool:
        """Whether nothing says what to train: then a folder that is resumed does."""
        return self.preset is None and self.config is None

    def changes(self) -> dict[str, Any]:
        """What the options change in the settings, as tables."""
        found: dict[str, Any] = {}
        for text in self.set_:
            keys, value = assignment(text)
            put(found, keys, value)
        if self.data is not None:
            put(found, ["data", "path"], str(self.data))
        if self.compare is not None:
            names = [name.strip() for name in self.compare.split(",") if name.strip()]
            found["compare"] = names
        if self.seeds is not None:
            found["seeds"] = list(range(self.seeds))
        if self.device is not None:
            put(found, ["training", "device"], self.device)
        if self.budget is not None:
            put(found, ["training", "budget"], seconds(self.budget))
        return found

    def folder(self, text: Path) -> Path:
        """Where runs go."""
        if self.out is not None:
            return self.out
        name = text.resolve().name
        return Path(f"{name.partition('.')[0] or name or 'text'}.runs")


def begun(folder: Path) -> StudySettings:
    """The settings with which the runs of a folder were begun.

    Raises
    ------
    BadOption, UnreadableFile
    """
    from embgeo.training.settings.study_settings import read_settings

    path = folder / SETTINGS_NAME
    if not path.is_file():
        raise BadOption("holds no runs", where=folder, way_out="leave out --resume")
    return read_settings(path)


def grown(before: StudySettings, now: StudySettings) -> StudySettings:
    """Other settings, with the methods and seeds that a folder has already."""
    return now.updated(
        {
            "compare": list(dict.fromkeys((*before.compare, *now.compare))),
            "seeds": sorted({*before.seeds, *now.seeds}),
        }
    )


def put(tables: dict[str, Any], keys: list[str], value: Any) -> None:
    """Set a value that lies in tables inside tables."""
    *outer, last = keys
    for key in outer:
        inner = tables.setdefault(key, {})
        if not isinstance(inner, dict):
            raise BadOption(f"{key} is no table", where=f"--set {'.'.join(keys)}")
        tables = inner
    tables[last] = value


def assignment(text: str) -> tuple[list[str], Any]:
    """``training.epochs=3`` as keys and a value; what is no TOML is text.

    >>> assignment("model.width=96"), assignment("model.name=vd-lstm")
    ((['model', 'width'], 96), (['model', 'name'], 'vd-lstm'))

    Raises
    ------
    BadOption
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not _KEY.fullmatch(key):
        raise BadOption(
            f"{text!r} is no setting", where="--set", way_out="write --set training.epochs=3"
        )
    try:
        parsed = tomllib.loads(f"x = {value}")
    except (ValueError, RecursionError):
        parsed = {}
    return key.split("."), parsed["x"] if list(parsed) == ["x"] else value.strip()


def seconds(text: str) -> float:
    """``5m`` as 300.

    Raises
    ------
    BadOption
    """
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?) ?([smh])", text.strip().lower())
    if found is None or not float(found[1]) > 0:
        raise BadOption(
            f"{text!r} is no time", where="--budget", way_out="write it as in 5m, 90s or 2h"
        )
    return float(found[1]) * _SECONDS[found[2]]

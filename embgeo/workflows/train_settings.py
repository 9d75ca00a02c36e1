"""The settings of a study: from arguments, a file, a preset and the runs that are resumed.

Values to try are chosen for each method by validation.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from embgeo.core.arguments import as_texts, refuse_if
from embgeo.core.errors import RunFailed, argument
from embgeo.core.settings import parse_value
from embgeo.core.values import format_number
from embgeo.files.records import RecordFormat
from embgeo.training.limits import Seeds
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
from embgeo.training.study.assemble import spell_value
from embgeo.training.study.record import TriedValue
from embgeo.training.study.wording import spell_score
from embgeo.workflows.folders import ELSEWHERE

if TYPE_CHECKING:
    from embgeo.training.study.run_result import RunResult
    from embgeo.workflows.train_runs import RunsBeside, RunsHere

USUAL_PRESET = "tiny-cpu"
_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
#: Settings of a user's file that are paths, relative to its folder.
_PATHS = (("data", "path"), ("task", "wordsim"))


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
    plugins: Sequence[Path | str] | None = (),
    out: Path | str | None = None,
    resume: bool = False,
) -> StudySettings:
    """Merge the arguments of `train` over a file over a preset, and load the plug-ins.

    Resumed runs take the place of preset and file unless one is given. Nothing is checked yet.
    """
    seeds = parse_value(seeds, Seeds | None, argument("seeds"))
    changes = as_tables(settings)
    if isinstance(compare, str):
        compare = [name.strip() for name in compare.split(",") if name.strip()]
    for key, value in (
        ("data.path", None if data is None else str(data)),
        ("compare", None if compare is None else list(compare)),
        ("seeds", None if seeds is None else list(range(seeds))),
        ("training.device", device),
        ("tune", parse_tuned(tune or ()) or None),
    ):
        if value is not None:
            put(changes, key.split("."), value)
    way_out = f"give their folder with {argument('out')}"
    refuse_if(resume and out is None, argument("resume"), "does not say which runs", way_out)
    before = None
    if resume and out is not None:
        begun, way_out = Path(out) / STUDY_SETTINGS_NAME, f"leave out {argument('resume')}"
        cause = "holds no runs" if Path(out).exists() else "no such folder"
        refuse_if(not begun.is_file(), str(out), cause, way_out)
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
    return msgspec.structs.replace(found, plugins=loaded)


def read_own(path: Path) -> dict[str, Any]:
    """Read the tables of a user's file of settings; paths in it are relative to its folder."""
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


# --- values to try -------------------------------------------------------------------------------

TUNING_NAME = "tuning.json"
#: The seed of the trials. No run has it: the best of several trials owes a part to its seed.
TUNING_SEED = 1_000_000
#: Chosen values by dotted name, for each method.
Tuned = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Tuning:
    """The values that were tried for a method, setting by setting."""

    seed: int
    tried: tuple[TriedValue, ...]

    @property
    def best(self) -> dict[str, Any]:
        return {one.setting: one.value for one in self.tried if one.chosen}

    @property
    def values(self) -> dict[str, tuple[Any, ...]]:
        found: dict[str, tuple[Any, ...]] = {}
        for one in self.tried:
            found[one.setting] = (*found.get(one.setting, ()), one.value)
        return found


def require_choice(tuning: Tuning) -> None:
    chosen = [one.setting for one in tuning.tried if one.chosen]
    if sorted(chosen) != sorted({one.setting for one in tuning.tried}):
        raise ValueError("not one value of each setting is chosen")


TUNING = RecordFormat(
    "embgeo.tuning",
    2,
    Tuning,
    TUNING_NAME,
    what="the settings that were tried for a method",
    again="remove it, and resume with: embgeo train --resume",
    check=require_choice,
)


def tuning_folder(folder: Path, method: str) -> Path:
    """Return the folder of a method's trials, one for each value."""
    return folder / method / "tuning"


def read_tuning(folder: Path, method: str, values: Mapping[str, tuple[Any, ...]]) -> Tuning | None:
    """Read the saved tuning of a method; None if not all values were tried yet."""
    home = tuning_folder(folder, method)
    if not values or not (home / TUNING_NAME).is_file():
        return None
    found = TUNING.load(home)
    before = "; ".join(f"{name} {list(held)}" for name, held in found.values.items())
    same = {name: list(held) for name, held in values.items()}
    differs = same != {name: list(held) for name, held in found.values.items()}
    refuse_if(differs, str(home), f"was tuned over {before}", f"give the same, or {ELSEWHERE}")
    return found


def read_tuned(settings: StudySettings, folder: Path) -> dict[str, dict[str, Any]]:
    """Read the chosen values of each method that was tuned."""
    found = {
        name: read_tuning(folder, name, settings.list_tuned(name)) for name in settings.compare
    }
    return {name: tuning.best for name, tuning in found.items() if tuning is not None}


def tune_settings(
    settings: StudySettings, folder: Path, runs: RunsHere | RunsBeside
) -> dict[str, dict[str, Any]]:
    """Choose the tuned settings of each method; the error of the last run if a whole list failed.

    One setting is tuned after the other, in their order, at the best values of those before.
    """
    found = read_tuned(settings, folder)
    for method in settings.compare:
        lists = settings.list_tuned(method)
        if method in found or not lists:
            continue
        best: dict[str, Any] = {}
        tried: list[TriedValue] = []
        known: dict[str, Score] = {}
        for setting, values in lists.items():
            trials = [
                settings.one(method, TUNING_SEED, {**best, setting: v, "evaluation.test": False})
                for v in values
            ]
            scores = try_values(trials, setting, tuning_folder(folder, method), runs, known)
            chosen = choose(scores)
            best[setting] = values[chosen]
            pairs = enumerate(zip(values, scores, strict=True))
            tried += [TriedValue(setting, v, s.value, s.name, i == chosen) for i, (v, s) in pairs]
        found[method] = best
        if runs.group.leads:
            TUNING.save(Tuning(TUNING_SEED, tuple(tried)), tuning_folder(folder, method))
    return found


def try_values(
    trials: Sequence[StudySettings],
    setting: str,
    folder: Path,
    runs: RunsHere | RunsBeside,
    known: dict[str, Score],
) -> list[Score]:
    """Return the score of each trial, none of which is made twice; the last error if all failed."""
    keys = [str(one.tables()) for one in trials]
    names = [f"{setting} {spell_value(read_setting(one, setting))}" for one in trials]
    new = [place for place, key in enumerate(keys) if key not in known]
    homes = [folder / re.sub(r"[^\w.+-]", "-", name) for name in names]
    failure: RunFailed | None = None
    for done, outcome in runs.train([(trials[i], homes[i]) for i in new], analyzed=False):
        place = new[done]
        if isinstance(outcome, RunFailed):
            failure = outcome
        score = known[keys[place]] = read_score(outcome)
        runs.monitor.say(f"tuning  {trials[place].compare[0]}, {names[place]}: {score.text}")
    scores = [known[key] for key in keys]
    if failure is not None and all(score.value is None for score in scores):
        raise failure
    return scores


def read_setting(settings: StudySettings, name: str) -> Any:
    """Read the value of a setting by its dotted name."""
    found: Any = settings.tables()
    for key in name.split("."):
        found = found[key]
    return found


class Score(NamedTuple):
    """The deciding score of a trial on the validation split; None if the trial failed."""

    value: float | None
    name: str
    higher_is_better: bool = False

    @property
    def text(self) -> str:
        if self.value is None:
            return "failed"
        return f"validation {spell_score(self.name)} {format_number(self.value)}"


def choose(scores: Sequence[Score]) -> int:
    """Choose the place of the best score; one trial has not failed."""
    held = {i: s.value for i, s in enumerate(scores) if s.value is not None}
    best = max if any(s.higher_is_better for s in scores) else min
    return best(held, key=held.__getitem__)


def read_score(outcome: RunResult | RunFailed) -> Score:
    """Read the deciding score of a finished trial, or its loss."""
    if isinstance(outcome, RunFailed):
        return Score(None, "")
    name = outcome.quality if outcome.valid.get(outcome.quality) is not None else "loss"
    better = {one.name: one.better for one in outcome.quantities}.get(f"valid.{name}")
    return Score(outcome.valid[name], name, better == "higher")

"""Settings that are chosen for each method by validation, and the runs with them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import RunFailed
from embgeo.core.values import format_number
from embgeo.files.records import RecordFormat
from embgeo.training.study.assemble import spell_value
from embgeo.training.study.record import TriedValue
from embgeo.training.study.wording import spell_score
from embgeo.workflows.folders import ELSEWHERE

if TYPE_CHECKING:
    from embgeo.training.settings import StudySettings
    from embgeo.training.study.run_result import RunResult
    from embgeo.workflows.train_beside import RunsBeside
    from embgeo.workflows.train_runs import RunsHere

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
    runs.monitor.expect(len(new))
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


def train_runs(
    settings: StudySettings,
    folder: Path,
    tuned: Mapping[str, Mapping[str, Any]],
    runs: RunsHere | RunsBeside,
) -> dict[tuple[str, int], RunFailed]:
    """Train and analyze every run with the tuned settings of its method.

    Returns the runs that failed; raises the error of the last one if all did.
    """
    from embgeo.training.loop.checkpoint import run_folder

    failed: dict[tuple[str, int], RunFailed] = {}
    total, say = len(settings.runs), runs.monitor.say
    runs.monitor.expect(total)
    waiting = [
        (settings.one(method, seed, tuned.get(method, {})), run_folder(folder, method, seed))
        for method, seed in settings.runs
    ]
    began = time.perf_counter()
    for behind, (place, outcome) in enumerate(runs.train(waiting, analyzed=True), 1):
        method, seed = settings.runs[place]
        if isinstance(outcome, RunFailed):
            if total == len(failed) + 1:
                raise outcome
            failed[method, seed] = outcome
            say(f"{behind}/{total}  {method}, seed {seed}: {outcome.cause}")
        elif runs.group.leads:
            seconds = time.perf_counter() - began
            say(f"{behind}/{total}  {describe_run(outcome)} ({seconds:.0f} s)")
            began = time.perf_counter()
    return failed


def describe_run(result: RunResult) -> str:
    value, split = result.valid.get(result.quality), "validation"
    if value is None:
        value, split = (result.test or {}).get(result.quality), "test"
    shown = "unknown" if value is None else format_number(value)
    return f"{result.method}, seed {result.seed}: {split} {spell_score(result.quality)} {shown}"

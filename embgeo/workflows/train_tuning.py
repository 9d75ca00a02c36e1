"""Settings that are chosen for each method by validation, before its runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import RunFailed
from embgeo.core.progress import RunMonitor
from embgeo.core.values import format_number
from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.assemble import spell_value
from embgeo.training.study.deciding import spell_score
from embgeo.training.study.record import TriedValue
from embgeo.workflows.folders import ELSEWHERE
from embgeo.workflows.train_runs import attempt_run

if TYPE_CHECKING:
    from embgeo.training.loop.loop import Measure
    from embgeo.training.settings import StudySettings
    from embgeo.training.study.run_result import RunResult
    from embgeo.training.tasks import Dataset

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
    """The folder of a method's trials, one for each value."""
    return folder / method / "tuning"


def read_tuning(folder: Path, method: str, values: Mapping[str, tuple[Any, ...]]) -> Tuning | None:
    """The saved tuning of a method; None if not all values were tried yet."""
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
    """The chosen values of each method that was tuned."""
    found = {
        name: read_tuning(folder, name, settings.list_tuned(name)) for name in settings.compare
    }
    return {name: tuning.best for name, tuning in found.items() if tuning is not None}


def tune_settings(
    settings: StudySettings,
    dataset: Dataset,
    folder: Path,
    *,
    measure: Measure | None,
    command: str,
    monitor: RunMonitor,
    leads: bool,
) -> dict[str, dict[str, Any]]:
    """Choose the tuned settings of each method; the error of the last run if a whole list failed.

    One setting is tuned after the other, in their order, at the best values of those before.
    """
    found = read_tuned(settings, folder)
    waiting = {name: settings.list_tuned(name) for name in settings.compare if name not in found}
    waiting = {name: lists for name, lists in waiting.items() if lists}
    monitor.expect(sum(len(values) for lists in waiting.values() for values in lists.values()))
    done = 0
    for method, lists in waiting.items():
        best: dict[str, Any] = {}
        tried: list[TriedValue] = []
        known: dict[str, Score] = {}
        for setting, values in lists.items():
            scores: list[Score] = []
            for value in values:
                changes = {**best, setting: value, "evaluation.test": False}
                one = settings.one(method, TUNING_SEED, changes)
                shown = f"{setting} {spell_value(value)}"
                home = tuning_folder(folder, method) / re.sub(r"[^\w.+-]", "-", shown)
                monitor.begin(done)
                score = known.get(str(one.tables()))
                if score is None:
                    failed = all(one.value is None for one in scores)
                    hopeless = len(scores) == len(values) - 1 and failed
                    run = one, dataset, home, measure, monitor.progress, command
                    score = known[str(one.tables())] = attempt_trial(*run, hopeless=hopeless)
                scores.append(score)
                done += 1
                monitor.say(f"tuning  {method}, {shown}: {score.text}")
                monitor.done(done)
            chosen = choose(scores)
            best[setting] = values[chosen]
            pairs = enumerate(zip(values, scores, strict=True))
            tried += [TriedValue(setting, v, s.value, s.name, i == chosen) for i, (v, s) in pairs]
        found[method] = best
        if leads:
            TUNING.save(Tuning(TUNING_SEED, tuple(tried)), tuning_folder(folder, method))
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
    """The place of the best score; one trial has not failed."""
    held = {i: s.value for i, s in enumerate(scores) if s.value is not None}
    best = max if any(s.higher_is_better for s in scores) else min
    return best(held, key=held.__getitem__)


def attempt_trial(*run: Any, hopeless: bool) -> Score:
    """Train with a value; a failure is raised if no other value is left."""
    try:
        result: RunResult = attempt_run(*run)
    except RunFailed:
        if hopeless:
            raise
        return Score(None, "")
    name = result.quality if result.valid.get(result.quality) is not None else "loss"
    better = {one.name: one.better for one in result.quantities}.get(f"valid.{name}")
    value = result.valid[name]
    assert value is not None
    return Score(value, name, better == "higher")

"""Tuning: each method is trained with several learning rates, and takes the best."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import Diverged
from embgeo.core.values import format_number
from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.record import TriedRate
from embgeo.workflows.folders import ELSEWHERE
from embgeo.workflows.train_monitor import RunMonitor
from embgeo.workflows.train_task import StudyTask

if TYPE_CHECKING:
    from embgeo.training.loop.loop import Measure

TUNING_NAME = "tuning.json"


@dataclass(frozen=True, slots=True)
class Tuning:
    """The rates that were tried for a method, in the given order."""

    seed: int
    tried: tuple[TriedRate, ...]

    @property
    def best(self) -> float:
        return next(one.lr for one in self.tried if one.chosen)


def require_choice(tuning: Tuning) -> None:
    if sum(one.chosen for one in tuning.tried) != 1:
        raise ValueError("not one rate is chosen")


TUNING = RecordFormat(
    "embgeo.tuning",
    1,
    Tuning,
    TUNING_NAME,
    what="the learning rates that were tried for a method",
    again="remove it, and resume with: embgeo train --resume",
    check=require_choice,
)


def tuning_folder(task: StudyTask, method: str) -> Path:
    """The folder of a method's runs, one for each rate."""
    return task.folder / method / "tuning"


def read_tuning(task: StudyTask, method: str) -> Tuning | None:
    """The saved tuning of a method; None if not all rates were tried yet."""
    folder = tuning_folder(task, method)
    if not task.settings.tune.lr or not (folder / TUNING_NAME).is_file():
        return None
    found = TUNING.load(folder)
    before = [one.lr for one in found.tried]
    cause = f"was tuned over the rates {', '.join(f'{lr:g}' for lr in before)}"
    way_out = f"give the same, or {ELSEWHERE}"
    refuse_if(before != list(task.settings.tune.lr), str(folder), cause, way_out)
    return found


def read_tuned(task: StudyTask) -> dict[str, float]:
    """The chosen rates by method."""
    found = {method: read_tuning(task, method) for method in task.settings.compare}
    return {method: tuning.best for method, tuning in found.items() if tuning is not None}


def read_tried(task: StudyTask, method: str) -> tuple[TriedRate, ...]:
    found = read_tuning(task, method)
    return () if found is None else found.tried


def tune_rates(task: StudyTask, measure: Measure, monitor: RunMonitor, *, leads: bool) -> StudyTask:
    """Choose a rate for each method; Diverged if a method diverged with every rate.

    The run with the chosen rate becomes the run of the first seed.
    """
    if not task.settings.tune.lr:
        return task
    waiting = [method for method in task.settings.compare if method not in task.tuned]
    monitor.expect(len(waiting) * len(task.settings.tune.lr))
    tuned = dict(task.tuned)
    for place, method in enumerate(waiting):
        tuning = try_rates(task, method, measure, monitor, place)
        tuned[method] = tuning.best
        if leads:
            TUNING.save(tuning, tuning_folder(task, method))
            home = task.home(method, tuning.seed)
            if not home.exists():
                fresh = home.with_name(f".{home.name}.new")
                shutil.rmtree(fresh, ignore_errors=True)
                shutil.copytree(trial_folder(task, method, tuning.best), fresh)
                fresh.replace(home)
    return replace(task, tuned=tuned)


def try_rates(
    task: StudyTask, method: str, measure: Measure, monitor: RunMonitor, place: int
) -> Tuning:
    """Train a method with each rate, and choose the best."""
    from embgeo.training.loop.loop import train_run

    rates, seed = task.settings.tune.lr, task.settings.seeds[0]
    perplexities: list[float | None] = []
    for number, rate in enumerate(rates):
        monitor.begin(place * len(rates) + number)
        try:
            perplexity = train_run(
                replace(task, tuned={method: rate}).run_settings(method, seed),
                task.dataset,
                trial_folder(task, method, rate),
                measure=measure,
                progress=monitor.progress,
                command=task.command,
            ).valid["perplexity"]
        except Diverged:
            perplexity = None
            if number == len(rates) - 1 and not any(perplexities):
                raise
        perplexities.append(perplexity)
        shown = "diverged" if perplexity is None else format_number(perplexity)
        monitor.say(f"tuning  {method}, learning rate {rate:g}: validation perplexity {shown}")
        monitor.done(place * len(rates) + number + 1)
    best = min(value for value in perplexities if value is not None)
    chosen = perplexities.index(best)
    pairs = enumerate(zip(rates, perplexities, strict=True))
    return Tuning(seed, tuple(TriedRate(lr, value, i == chosen) for i, (lr, value) in pairs))


def trial_folder(task: StudyTask, method: str, rate: float) -> Path:
    return tuning_folder(task, method) / f"lr-{rate:g}"

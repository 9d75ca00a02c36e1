"""Plan a training: the time and memory of every run, and the epochs of a budget."""

from __future__ import annotations

import statistics
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from embgeo.core.errors import BadOption
from embgeo.training.data import Batches
from embgeo.training.loop.checkpoint import count_parameters, identity
from embgeo.training.loop.loop import Loop
from embgeo.training.loop.process import World, find_device, join_processes, numerics
from embgeo.training.loop.scores import Scores
from embgeo.training.loop.session import Measure, measure_matrices
from embgeo.training.methods import catalog as methods
from embgeo.training.methods import make_plain
from embgeo.training.resolve import resolve
from embgeo.training.settings import (
    STUDY_SETTINGS_NAME,
    StudySettings,
    read_settings,
)
from embgeo.training.tasks import Dataset

#: Number of warm-up steps, and of steps that are timed.
WARM, TIMED = 3, 8
#: If these would take more seconds, a part of the window is timed.
PATIENCE = 3.0
#: Share of the budget for the unforeseen: other work of the machine, longer windows.
RESERVE = 0.1
#: An evaluation is timed on twice this many tokens, doubled until it takes this many seconds.
SAMPLED, SHORTEST = 500, 0.5


@dataclass(frozen=True, slots=True)
class RunBudget:
    """Plan of the runs of one method.

    Attributes
    ----------
    parameters : int
        Number of parameters of the saved model; tied ones count once.
    memory : int
        Bytes of weights, gradients, optimizer, averages, and logits with their gradient, without
        what layers keep for the backward pass.
    steps : int
        Number of optimizer steps; an estimate if lengths of windows are random.
    evaluation : float
        Seconds of an evaluation on the validation split.
    geometry : float
        Seconds of a measurement of the embedding during training; 0 without one.
    start, end : float
        Seconds before the first step, and after the last.
    """

    method: str
    parameters: int
    memory: int
    steps: int
    steps_per_epoch: int
    seconds_per_step: float
    evaluation: float
    geometry: float
    start: float
    end: float

    def seconds(self, config: StudySettings, steps: int | None = None) -> float:
        """Seconds of the run, or of a run of `steps` steps."""
        steps = self.steps if steps is None else steps
        every = config.evaluation.every or self.steps_per_epoch
        found = self.start + self.end + steps * self.seconds_per_step
        found += steps // every * self.evaluation
        if config.geometry.every is not None:
            found += (steps // config.geometry.every + 2) * self.geometry
        return found


def plan_runs(
    config: StudySettings,
    dataset: Dataset,
    measure: Measure | None = None,
    report: Callable[[list[RunBudget]], None] | None = None,
) -> list[RunBudget]:
    """Plan each method of a comparison by running a few steps; BadOption for invalid settings.

    `report`: called after each method with all budgets so far.
    """
    config = resolve(config)
    device = find_device(config.training.device)
    found: list[RunBudget] = []
    with numerics(config.training.precision, device, config.training.threads):
        for name in config.compare:
            one = config.one(name, config.seeds[0])
            found.append(plan_run(one, dataset, device, measure, found[0] if found else None))
            if report is not None:
                report(found)
    return found


def plan_run(
    config: StudySettings,
    dataset: Dataset,
    device: torch.device,
    measure: Measure | None,
    first: RunBudget | None,
) -> RunBudget:
    """Plan one run.

    Evaluation and measurements cost about the same for all methods: they are taken from the `first`
    budget if there is one.
    """
    began = time.perf_counter()
    loop = Loop(config, dataset, device, World())
    start = read_clock(device) - began
    if first is None:
        # Before the steps, after which the model of a method may have diverged.
        geometry = time_geometry(loop, measure if config.geometry.every else None)
        valid, end = time_evaluation(config, dataset, device, loop)
    else:
        geometry, valid, end = first.geometry, first.evaluation, first.end
    seconds = time_step(loop, device)
    needed = estimate_memory(loop, config)
    make_plain(loop.model)
    epoch = -(-loop.batches.windows_per_epoch // config.training.accumulate)
    return RunBudget(
        method=config.compare[0],
        parameters=count_parameters(loop.model),
        memory=needed,
        steps=loop.all_steps,
        steps_per_epoch=epoch,
        seconds_per_step=seconds,
        evaluation=valid,
        geometry=geometry,
        start=start,
        end=end,
    )


def time_step(loop: Loop, device: torch.device) -> float:
    """Seconds of a step."""
    if isinstance(loop.batches, Batches):
        found = time_windows(loop, loop.batches, device)
        if found is not None and (WARM + TIMED) * found > PATIENCE:
            return found
    times = []
    for _ in range(WARM + TIMED):
        before = read_clock(device)
        loop.step()
        times.append(read_clock(device) - before)
    return statistics.fmean(times[WARM:])


def time_windows(loop: Loop, batches: Batches, device: torch.device) -> float | None:
    """Seconds of a step, extrapolated from two shorter windows; None if the window is short."""
    whole = batches.bptt
    short, long = max(2, whole // 16), max(4, whole // 5)
    if whole <= long:
        return None
    lengths, batches.random_lengths = batches.random_lengths, False
    times = []
    for batches.bptt in (short, short, long):
        before = read_clock(device)
        loop.step()
        times.append(read_clock(device) - before)
    batches.bptt, batches.random_lengths = whole, lengths
    _, less, more = times
    slope = (more - less) / (long - short)
    # Bounds against noise: at least the time of a part, at most that of all parts.
    return min(max(more + slope * (whole - long), more), more * whole / long)


def estimate_memory(loop: Loop, config: StudySettings) -> int:
    """Minimum memory of training in bytes."""
    weights = sum(p.numel() * p.element_size() for p in loop.parameters)
    held = sum(
        value.numel() * value.element_size()
        for state in loop.optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    )
    averages = weights if config.optimizer.average or config.optimizer.asgd else 0
    rows = len(methods.list_embeddings(loop.model)[0])
    batch = loop.task.estimate_batch(config, rows)
    return int(2 * weights + held + averages + batch)


def time_evaluation(
    config: StudySettings, dataset: Dataset, device: torch.device, loop: Loop
) -> tuple[float, float]:
    """Seconds of an evaluation on the validation split, and on all splits."""
    scores = loop.task.evaluator(config, dataset, device)
    if isinstance(scores, Scores):
        return time_perplexity(scores, loop)
    once = whole = 1.0
    if hasattr(scores, "sample"):
        scores, once, whole = scores.sample()
    with loop.evaluated() as model:
        before = read_clock(device)
        scores.valid(model)
        between = read_clock(device)
        scores.final(model)
    return once * (between - before), whole * (read_clock(device) - between)


def time_perplexity(scores: Scores, loop: Loop) -> tuple[float, float]:
    """Seconds of an evaluation of a text, estimated from a part."""
    settings, corpus, device = scores.settings, scores.corpus, scores.device
    tokens, sampled, taken = len(scores.rows("valid")), SAMPLED, 0.0
    with loop.evaluated() as model:
        while taken < SHORTEST and (not taken or sampled < tokens):
            sampled = min(2 * sampled, tokens)
            part = replace(corpus, valid=corpus.valid[:sampled])
            before = read_clock(device)
            Scores(settings, part, device).valid(model)
            taken = read_clock(device) - before
    test = len(scores.rows("test")) if scores.has_test else 0
    return taken * tokens / sampled, taken * (tokens + test) / sampled


def time_geometry(loop: Loop, measure: Measure | None) -> float:
    """Seconds of a measurement; a short first one, which imports modules, does not count."""
    if measure is None:
        return 0.0
    matrices, seconds = loop.matrices(), 0.0
    for _ in range(2):
        before = time.perf_counter()
        measure_matrices(measure, *matrices)
        seconds = time.perf_counter() - before
        if seconds > SHORTEST:
            break
    return seconds


def read_clock(device: torch.device) -> float:
    """Current time after all pending work of the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    if device.type == "mps":
        torch.mps.synchronize()
    return time.perf_counter()


def fit_epochs(
    config: StudySettings, dataset: Dataset, seconds: float, measure: Measure | None
) -> StudySettings:
    """Fit the epochs, or the steps of less than one epoch, to the time of all runs together."""
    if not seconds > 0.0:
        raise BadOption(f"a budget of {seconds:g} seconds is none", way_out="give one such as 5m")
    found = plan_runs(config, dataset, measure)

    def total(steps: int) -> float:
        return config.runs_per_method * sum(each.seconds(config, steps) for each in found)

    epoch = found[0].steps_per_epoch
    most = find_most_steps(total, (1.0 - RESERVE) * seconds, epoch)
    if most == 0:
        raise BadOption(
            f"{len(found) * config.runs_per_method} runs do not fit into {seconds:,.0f} seconds: "
            f"without a step they take {total(0):,.0f}",
            way_out="give more time, fewer methods or seeds, or a smaller model",
        )
    epochs, steps = (most // epoch, None) if most >= epoch else (1, most)
    training = replace(config.training, budget=float(seconds), steps=steps, epochs=epochs)
    return replace(config, training=training)


def find_most_steps(total: Callable[[int], float], limit: float, epoch: int) -> int:
    """Largest number of steps within a time; whole epochs if it is enough for one."""
    unit = epoch if total(epoch) <= limit else 1
    return unit * bisect_right(range(1, 2**40), limit, key=lambda n: total(n * unit))


def settle(
    config: StudySettings, dataset: Dataset, folder: Path, measure: Measure | None
) -> StudySettings:
    """Complete the settings of a comparison; a budget determines the epochs.

    A resumed comparison keeps its epochs: new timings would give others, which its states do not
    fit.
    """
    config = resolve(config)
    budget = config.training.budget
    if budget is None:
        return config
    path = folder / STUDY_SETTINGS_NAME
    if path.is_file():
        begun = read_settings(path).training
        training = replace(config.training, epochs=begun.epochs, steps=begun.steps)
        again = replace(config, training=training)
        if begun.budget == budget and fits_states(again, read_settings(path)):
            return again
    with join_processes(config.training.device) as world:
        found = fit_epochs(config, dataset, budget, measure) if world.leads else None
        known: StudySettings = world.broadcast(found)
    return resolve(known)


def fits_states(one: StudySettings, other: StudySettings) -> bool:
    """Whether two comparisons have the same settings except for methods and seeds."""
    mine, theirs = (
        {k: v for k, v in c.tables().items() if k not in ("compare", "seeds", "method")}
        for c in (one, resolve(other))
    )
    return identity(mine, {}) == identity(theirs, {})

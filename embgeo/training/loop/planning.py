"""What is found out before anything is trained: whether it can be made, and how long it takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from embgeo.core.errors import BadOption
from embgeo.training.data import Corpus, columns
from embgeo.training.loop.checkpoint import count_parameters, identity
from embgeo.training.loop.log import check_sinks
from embgeo.training.loop.loop import Loop
from embgeo.training.loop.process import World, find_device, join_processes, numerics
from embgeo.training.loop.session import Measure, Scores
from embgeo.training.methods import Factorization, Setup, make_plain
from embgeo.training.methods.catalog import Method, method, refuse_sgd
from embgeo.training.models import LanguageModel, build
from embgeo.training.resolve import resolve
from embgeo.training.settings import (
    STUDY_SETTINGS_NAME,
    StudySettings,
    read_settings,
)

#: For methods, whose own settings do not depend on how large a model is.
_SMALL = {"d": 4, "hidden": 4, "layers": 1}
_TOKENS = 10
#: Windows of random length are longer than usual by this at most, but for one in 10⁹.
_LONGER = 30


def rehearse(config: StudySettings, corpus: Corpus) -> None:
    """Make each method of a comparison, with the model on no device, and forget it.

    In a comparison, the last method is made when the others have been trained.

    Parameters
    ----------
    config : StudySettings
        As of :func:`embgeo.training.resolve.resolve`.

    Raises
    ------
    BadOption
        A setting outside its range, windows that are longer than the model can read, a batch that
        is larger than the text, no such device, or a method that does not go with the optimizer.
    """
    find_device(config.training.device)
    check_sinks(config.training.sinks)
    columns(corpus.train, config.training.batch)
    for name in config.compare:
        chosen = method(name)
        if chosen.coupled and config.optimizer.kind == "sgd":
            raise refuse_sgd(chosen)
        own = {} if chosen.tied is None else {"tied": chosen.tied}
        with torch.device("meta"):
            model = build(config.model.name, _TOKENS, {**config.model.settings, **own})
        check_windows(model, config)
        factored = any(issubclass(part, Factorization) for part in chosen.parts)
        if factored and len(corpus.vocabulary) < model.d:
            raise BadOption(
                f"{name} needs as many rows as columns, and there are {len(corpus.vocabulary):,} "
                f"words and d = {model.d:,}",
                way_out="make d of [model] smaller, or the vocabulary larger",
            )
        check_method(chosen, config)


def check_windows(model: LanguageModel, config: StudySettings) -> None:
    """Refuse windows that are too long for the model."""
    training = config.training
    windows = {
        "[training]": training.bptt + (_LONGER if training.random_lengths else 0),
        "[evaluation]": config.evaluation.bptt,
    }
    for table, length in windows.items():
        if model.longest is not None and length > model.longest:
            raise BadOption(
                f"windows of {table} have {length:,} tokens, and the model {model.longest:,} "
                "positions",
                way_out=f"make context of [model] larger, or bptt of {table} smaller",
            )


def check_method(chosen: Method, config: StudySettings) -> None:
    """Refuse settings of a method that make no sense; the random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        tied = True if chosen.tied is None else chosen.tied
        small = build("awd-lstm", _TOKENS, {**_SMALL, "tied": tied})
        setup = Setup(counts=torch.arange(_TOKENS, 0, -1), sgd=config.optimizer.kind == "sgd")
        chosen.attach(small, setup, config.method.get(chosen.name, {}))


#: Steps that are run to time them; the first ones, which find memory and kernels, do not count.
WARM, TIMED = 3, 8
#: Of the budget, for what cannot be foreseen: a machine that does something else, longer windows.
RESERVE = 0.1
#: Tokens of the validation split that are evaluated to time it.
SAMPLED = 20_000


@dataclass(frozen=True, slots=True)
class RunBudget:
    """What one run of a method will be.

    Attributes
    ----------
    parameters : int
        Of the model as it is saved, tied ones once.
    memory : int
        Bytes: weights, gradients, optimizer, averages, and logits with their gradient. What layers
        keep for the backward pass comes on top.
    steps : int
        Of the optimizer; about so many where lengths of windows are random.
    evaluation : float
        Seconds of one evaluation on the validation split.
    geometry : float
        Seconds of one measurement of the embedding while training; 0 without.
    start, end : float
        Seconds before the first step, and of evaluation after the last.
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
        """Of the whole run, or of one with so many steps."""
        steps = self.steps if steps is None else steps
        every = config.evaluation.every or self.steps_per_epoch
        found = self.start + self.end + steps * self.seconds_per_step
        found += steps // every * self.evaluation
        if config.geometry.every is not None:
            found += (steps // config.geometry.every + 2) * self.geometry
        return found


def plan_runs(
    config: StudySettings, corpus: Corpus, measure: Measure | None = None
) -> list[RunBudget]:
    """What each method of a comparison will be; some steps of each are run and forgotten.

    Raises
    ------
    BadOption
        Settings that make no sense.
    """
    config = resolve(config)
    device = find_device(config.training.device)
    with numerics(config.training.precision, device, config.training.threads):
        return [
            plan_run(config.one(name, config.seeds[0]), corpus, device, measure)
            for name in config.compare
        ]


def plan_run(
    config: StudySettings, corpus: Corpus, device: torch.device, measure: Measure | None
) -> RunBudget:
    """The plan of one run."""
    began = time.perf_counter()
    loop = Loop(config, corpus, device, World())
    start = read_clock(device) - began
    # Before the steps: whether a method diverges is not for a plan to find out.
    geometry = time_geometry(loop, measure if config.geometry.every else None)
    times = []
    for number in range(WARM + TIMED):
        before = read_clock(device)
        loop.step()
        if number >= WARM:
            times.append(read_clock(device) - before)
    valid = time_evaluation(config, corpus, device, loop)
    share = 0 if corpus.test is None or not config.evaluation.test else len(corpus.test)
    needed = estimate_memory(loop, config)
    make_plain(loop.model)
    epoch = -(-loop.batches.windows_per_epoch // config.training.accumulate)
    return RunBudget(
        method=config.compare[0],
        parameters=count_parameters(loop.model),
        memory=needed,
        steps=loop.steps,
        steps_per_epoch=epoch,
        seconds_per_step=statistics.fmean(times),
        evaluation=valid,
        geometry=geometry,
        start=start,
        end=valid * (1.0 + share / len(corpus.valid)),
    )


def estimate_memory(loop: Loop, config: StudySettings) -> int:
    """Bytes that training needs at least."""
    weights = sum(p.numel() * p.element_size() for p in loop.parameters)
    held = sum(
        value.numel() * value.element_size()
        for state in loop.optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    )
    averages = weights if config.optimizer.average or config.optimizer.asgd else 0
    logits = config.training.batch * config.training.bptt * loop.model.n_tokens * 4
    return 2 * weights + held + averages + 2 * logits


def time_evaluation(
    config: StudySettings, corpus: Corpus, device: torch.device, loop: Loop
) -> float:
    """Seconds of an evaluation on the validation split, from a part of it."""
    part = replace(corpus, valid=corpus.valid[:SAMPLED])
    before = read_clock(device)
    with loop.evaluated() as model:
        Scores(config.evaluation, part, device).valid(model)
    return (read_clock(device) - before) * len(corpus.valid) / len(part.valid)


def time_geometry(loop: Loop, measure: Measure | None) -> float:
    """Seconds of a measurement; the first one, which imports, is not timed."""
    if measure is None:
        return 0.0
    W, output = loop.matrices()
    given = (W.numpy(), None if output is None else output.numpy())
    measure(*given)
    before = time.perf_counter()
    measure(*given)
    return time.perf_counter() - before


def read_clock(device: torch.device) -> float:
    """The time at which all that was asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    if device.type == "mps":
        torch.mps.synchronize()
    return time.perf_counter()


def fit_epochs(
    config: StudySettings, corpus: Corpus, seconds: float, measure: Measure | None
) -> StudySettings:
    """The same settings with as many epochs as all runs together can have in a time.

    Every run has the same number. Less than an epoch is given in steps.

    Raises
    ------
    BadOption
        The time is too short for a single step of each method.
    """
    if not seconds > 0.0:
        raise BadOption(f"a budget of {seconds:g} seconds is none", way_out="give one such as 5m")
    found = plan_runs(config, corpus, measure)

    def total(steps: int) -> float:
        return len(config.seeds) * sum(each.seconds(config, steps) for each in found)

    epoch = found[0].steps_per_epoch
    most = find_most_steps(total, (1.0 - RESERVE) * seconds, epoch)
    if most == 0:
        raise BadOption(
            f"{len(found) * len(config.seeds)} runs do not fit into {seconds:,.0f} seconds: "
            f"without a step they take {total(0):,.0f}",
            way_out="give more time, fewer methods or seeds, or a smaller model",
        )
    epochs, steps = (most // epoch, None) if most >= epoch else (1, most)
    training = replace(config.training, budget=float(seconds), steps=steps, epochs=epochs)
    return replace(config, training=training)


def find_most_steps(total: Callable[[int], float], limit: float, epoch: int) -> int:
    """The largest number of steps, in whole epochs from one epoch on, whose time is within."""
    if total(1) > limit:
        return 0
    unit = epoch if total(epoch) <= limit else 1
    low, high = 1, 2
    while total(high * unit) <= limit:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total(middle * unit) <= limit else (low, middle)
    return low * unit


def settle(
    config: StudySettings, corpus: Corpus, folder: Path, measure: Measure | None
) -> StudySettings:
    """All settings of a comparison; with a budget, the epochs that its folder was begun with.

    Timed again, a comparison that is resumed would get others, and its states would not fit.

    Raises
    ------
    BadOption
        As of :func:`fit_epochs`.
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
        found = fit_epochs(config, corpus, budget, measure) if world.leads else None
        known: StudySettings = world.broadcast(found)
    return known


def fits_states(one: StudySettings, other: StudySettings) -> bool:
    """Whether states of one comparison fit the other, which may have other methods and seeds."""
    mine, theirs = (
        {k: v for k, v in c.tables().items() if k not in ("compare", "seeds", "method")}
        for c in (one, resolve(other))
    )
    return identity(mine, {}) == identity(theirs, {})

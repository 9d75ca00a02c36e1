"""Learning rates as functions of the progress of training."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from embgeo.core.arguments import refuse_name
from embgeo.io.bounded.settings import refuse_unknown
from embgeo.training.checks import list_defaults, natural, unit

#: The factor of the learning rate, from the step (from 0), the number of steps, and the epoch
#: (from 0).
Schedule = Callable[[int, int, int], float]


def constant(_step: int, _steps: int, _epoch: int) -> float:
    """Return the factor 1 for all steps."""
    return 1.0


def one_cycle(
    step: int,
    steps: int,
    _epoch: int,
    *,
    warm_up: float = 0.3,
    start: float = 0.04,
    end: float = 1e-4,
) -> float:
    """Rise by a cosine from `start` to 1 in the first `warm_up` of the steps, then to `end`."""
    last = max(steps - 1, 1)
    top = warm_up * last
    if step < top:
        return along_cosine(start, 1.0, step / top)
    if last <= top:
        return 1.0
    return along_cosine(1.0, end, min((step - top) / (last - top), 1.0))


def along_cosine(before: float, after: float, way: float) -> float:
    """Return the value at a share `way` of a cosine from `before` to `after`."""
    return after + (before - after) * (1.0 + math.cos(math.pi * way)) / 2.0


def epoch_decay(_step: int, _steps: int, epoch: int, *, after: int = 5, rate: float = 0.9) -> float:
    """Stay at 1 for `after` epochs, then multiply by `rate` in each epoch."""
    return rate ** max(0, epoch + 1 - after)


def inverse_sqrt(step: int, _steps: int, _epoch: int, *, warm_up_steps: int = 4000) -> float:
    """Rise linearly to 1 in `warm_up_steps` steps, then fall as 1/√step.

    A warm-up of 0 steps is the same as one of 1 step: the first step has the full rate.

    References
    ----------
    Vaswani et al., "Attention is all you need", NIPS 2017, Eq. 3, divided by its largest value.
    """
    top = max(warm_up_steps, 1)
    return min((step + 1) / top, math.sqrt(top / (step + 1)))


def linear(step: int, steps: int, _epoch: int, *, end: float = 1e-4) -> float:
    """Fall linearly from 1 to 0, but not below `end`.

    References
    ----------
    The code of Mikolov et al., "Efficient estimation of word representations in vector space",
    2013, with the same `end`.
    """
    return max(1.0 - step / max(steps, 1), end)


def cosine(
    step: int, steps: int, _epoch: int, *, warm_up_steps: int = 100, end: float = 0.1
) -> float:
    """Rise linearly to 1 in `warm_up_steps` steps, then follow a cosine to `end` at the last step.

    References
    ----------
    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017, Eq. 5,
    without restarts; with a linear warm-up and this end as in Touvron et al. 2023, §2.3.
    """
    if step < warm_up_steps:
        return (step + 1) / warm_up_steps
    way = (step - warm_up_steps) / max(steps - 1 - warm_up_steps, 1)
    return along_cosine(1.0, end, min(way, 1.0))


SCHEDULES: dict[str, Callable[..., float]] = {
    "constant": constant,
    "one-cycle": one_cycle,
    "epoch-decay": epoch_decay,
    "inverse-sqrt": inverse_sqrt,
    "linear": linear,
    "cosine": cosine,
}


def build_schedule(kind: str, settings: Mapping[str, Any] | None = None) -> Schedule:
    """Build a schedule with its settings filled in."""
    if kind not in SCHEDULES:
        raise refuse_name("schedule", kind, SCHEDULES)
    known = list_defaults(SCHEDULES[kind])
    refuse_unknown(settings or {}, known, f"schedule {kind}")
    for name, value in (settings or {}).items():
        check = natural if isinstance(known[name], int) else unit
        check(name, value)
    return partial(SCHEDULES[kind], **(settings or {}))

"""Learning rates as functions of how far the training is."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from embgeo.core.errors import BadOption

#: The factor of the learning rate, from the step (from 0), the number of steps, and the epoch
#: (from 0).
Schedule = Callable[[int, int, int], float]


def constant(step: int, steps: int, epoch: int) -> float:  # noqa: ARG001
    """1."""
    return 1.0


def one_cycle(
    step: int,
    steps: int,
    epoch: int,  # noqa: ARG001
    *,
    warm_up: float = 0.3,
    start: float = 0.04,
    end: float = 1e-4,
) -> float:
    """Up from `start` to 1 in the first `warm_up` of the steps, and down to `end`, along cosines.

    The first step has `start`, the last has `end`.

    Parameters
    ----------
    step, steps, epoch : int
        The number of the step, from 0, how many there are, and the epoch, which plays no part.
    warm_up : float
        The share of the steps that go up.
    start, end : float
        Factors.
    """
    last = max(steps - 1, 1)
    top = warm_up * last
    if step < top:
        return along_cosine(start, 1.0, step / top)
    if last <= top:
        return 1.0
    return along_cosine(1.0, end, min((step - top) / (last - top), 1.0))


def along_cosine(before: float, after: float, way: float) -> float:
    """From `before` (way 0) to `after` (way 1), slow at both ends."""
    return after + (before - after) * (1.0 + math.cos(math.pi * way)) / 2.0


def epoch_decay(
    step: int,  # noqa: ARG001
    steps: int,  # noqa: ARG001
    epoch: int,
    *,
    after: int = 5,
    rate: float = 0.9,
) -> float:
    """1 for so many epochs, and then `rate` times what it was in the epoch before.

    Parameters
    ----------
    step, steps, epoch : int
        Of the step and of how many, which play no part, and the epoch, from 0.
    after : int
        Epochs with the full rate.
    rate : float
    """
    return rate ** max(0, epoch + 1 - after)


SCHEDULES: dict[str, Callable[..., float]] = {
    "constant": constant,
    "one-cycle": one_cycle,
    "epoch-decay": epoch_decay,
}


def build_schedule(kind: str, settings: Mapping[str, Any] | None = None) -> Schedule:
    """A schedule with its settings filled in.

    Raises
    ------
    BadOption
        No such schedule or setting, or a value outside its range.
    """
    if kind not in SCHEDULES:
        raise BadOption(f"no schedule {kind!r}", way_out=f"there are {', '.join(SCHEDULES)}")
    parameters = inspect.signature(SCHEDULES[kind]).parameters.values()
    known = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    for name, value in (settings or {}).items():
        if name not in known:
            listed = f"it has {', '.join(known)}" if known else "it has none"
            raise BadOption(f"schedule {kind} has no setting {name!r}", way_out=listed)
        check(name, value, known[name])
    return partial(SCHEDULES[kind], **(settings or {}))


def check(name: str, value: Any, default: float) -> None:
    """`BadOption` unless the value is a number of epochs, or a share, as the default is."""
    whole = isinstance(default, int)
    kind = int if whole else int | float
    most = math.inf if whole else 1.0
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value <= most:
        way_out = "give a whole number from 0" if whole else "give a number from 0 to 1"
        raise BadOption(f"{name} is {value!r}", way_out=way_out)

"""Schedules of the learning rate: the settings of each, and its factor at a step.

A factor depends on the step (from 0), the number of steps, and the epoch (from 0).
"""

import math

from embgeo.training.limits import Natural, Settings, Unit


class Schedule(Settings, frozen=True):
    """The full rate at every step, and the base of all schedules."""

    def __call__(self, _step: int, _steps: int, _epoch: int) -> float:
        return 1.0


class OneCycle(Schedule, frozen=True):
    """Rise by a cosine to 1, then fall to the end of the run."""

    #: Share of the run in which the rate rises.
    warm_up: Unit = 0.3
    #: Factors of the rate at both ends of the run.
    start: Unit = 0.04
    end: Unit = 1e-4

    def __call__(self, step: int, steps: int, _epoch: int) -> float:
        last = max(steps - 1, 1)
        top = self.warm_up * last
        if step < top:
            return follow_cosine(self.start, 1.0, step / top)
        if last <= top:
            return 1.0
        return follow_cosine(1.0, self.end, min((step - top) / (last - top), 1.0))


class EpochDecay(Schedule, frozen=True):
    """Stay at 1 for `after` epochs, then multiply by `rate` in each epoch."""

    #: Epochs with the full rate, and the factor of each later epoch.
    after: Natural = 5
    rate: Unit = 0.9

    def __call__(self, _step: int, _steps: int, epoch: int) -> float:
        return float(self.rate ** max(0, epoch + 1 - self.after))


class InverseSqrt(Schedule, frozen=True):
    """Rise linearly to 1, then fall as 1/√step.

    A warm-up of 0 steps is the same as one of 1 step: the first step has the full rate.

    References
    ----------
    Vaswani et al., "Attention is all you need", NIPS 2017, Eq. 3, divided by its largest value.
    """

    #: Steps in which the rate rises.
    warm_up_steps: Natural = 4000

    def __call__(self, step: int, _steps: int, _epoch: int) -> float:
        top = max(self.warm_up_steps, 1)
        return min((step + 1) / top, math.sqrt(top / (step + 1)))


class Linear(Schedule, frozen=True):
    """Fall linearly from 1 to 0, but not below `end`.

    References
    ----------
    The code of Mikolov et al., "Efficient estimation of word representations in vector space",
    2013, with the same `end`.
    """

    #: Factor of the rate at the end of the run.
    end: Unit = 1e-4

    def __call__(self, step: int, steps: int, _epoch: int) -> float:
        return max(1.0 - step / max(steps, 1), self.end)


class Cosine(Schedule, frozen=True):
    """Rise linearly to 1 in `warm_up_steps`, then follow a cosine to `end` at the last step.

    References
    ----------
    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017, Eq. 5,
    without restarts; with a linear warm-up and this end as in Touvron et al. 2023, §2.3.
    """

    #: Steps in which the rate rises.
    warm_up_steps: Natural = 100
    #: Factor of the rate at the end of the run.
    end: Unit = 0.1

    def __call__(self, step: int, steps: int, _epoch: int) -> float:
        if step < self.warm_up_steps:
            return (step + 1) / self.warm_up_steps
        way = (step - self.warm_up_steps) / max(steps - 1 - self.warm_up_steps, 1)
        return follow_cosine(1.0, self.end, min(way, 1.0))


def follow_cosine(before: float, after: float, way: float) -> float:
    """Return the value at a share `way` of a cosine from `before` to `after`."""
    return after + (before - after) * (1.0 + math.cos(math.pi * way)) / 2.0


SCHEDULES: dict[str, type[Schedule]] = {
    "constant": Schedule,
    "one-cycle": OneCycle,
    "epoch-decay": EpochDecay,
    "inverse-sqrt": InverseSqrt,
    "linear": Linear,
    "cosine": Cosine,
}

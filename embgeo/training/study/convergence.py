"""Convergence of a run: whether it was still learning when it ended."""

from __future__ import annotations

import math
from collections.abc import Iterable

from embgeo.training.study.record import Learning, Run, TrainingCurve

#: A run is still learning if its validation perplexity falls by this much over its last part.
LAST_PART = 0.25
LEAST_FALL = 0.01
CURVE = "valid.perplexity"
#: The curve of tasks without a perplexity, which is the exponential of it.
CURVE_OF_OTHERS = "valid.loss"


def find_lowest(curve: TrainingCurve, steps: int) -> tuple[float, float] | None:
    """The lowest value in the first three quarters of the steps, and the lowest of all.

    None without an evaluation in either part.
    """
    edge = (1.0 - LAST_PART) * steps
    points = list(zip(curve.steps, curve.values, strict=True))
    before = [value for step, value in points if 0 < step <= edge]
    after = [value for step, value in points if step > edge]
    return (min(before), min(*before, *after)) if before and after else None


def judge_learning(run: Run) -> Learning:
    """Converged: stopped early, or the validation perplexity fell by less than `LEAST_FALL`."""
    if run.stopped_early:
        return "converged"
    perplexity, loss = run.curves.get(CURVE), run.curves.get(CURVE_OF_OTHERS)
    curve = perplexity or loss
    lowest = None if curve is None else find_lowest(curve, run.steps)
    if lowest is None:
        return "unknown"
    before, after = lowest
    fall = 1.0 - (after / before if perplexity else math.exp(after - before))
    return "converged" if fall < LEAST_FALL else "learning"


def judge_all(runs: Iterable[Run]) -> Learning:
    """State of several runs: learning if any is, else unknown if any is, else converged."""
    found = {judge_learning(run) for run in runs}
    if "learning" in found:
        return "learning"
    return "unknown" if "unknown" in found or not found else "converged"

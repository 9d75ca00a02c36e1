"""Convergence of a run: whether it was still learning when it ended."""

from __future__ import annotations

from collections.abc import Iterable

from embgeo.training.study.record import Learning, Run, TrainingCurve

#: A run is still learning if its validation perplexity falls by this much over its last part.
LAST_PART = 0.25
LEAST_FALL = 0.01
CURVE = "valid.perplexity"
#: The curve of tasks without a perplexity.
CURVE_OF_OTHERS = "valid.loss"


def last_fall(curve: TrainingCurve, steps: int) -> float | None:
    """Relative fall of the lowest validation perplexity over the last quarter of the steps.

    1 − min over all evaluations / min over those of the first three quarters. None without an
    evaluation in either part.
    """
    edge = (1.0 - LAST_PART) * steps
    points = list(zip(curve.steps, curve.values, strict=True))
    before = [value for step, value in points if 0 < step <= edge]
    after = [value for step, value in points if step > edge]
    if not before or not after:
        return None
    return 1.0 - min(*before, *after) / min(before)


def judge_learning(run: Run) -> Learning:
    """Converged: stopped early, or the validation perplexity fell by less than `LEAST_FALL`."""
    if run.stopped_early:
        return "converged"
    curve = run.curves.get(CURVE) or run.curves.get(CURVE_OF_OTHERS)
    fall = None if curve is None else last_fall(curve, run.steps)
    if fall is None:
        return "unknown"
    return "converged" if fall < LEAST_FALL else "learning"


def judge_all(runs: Iterable[Run]) -> Learning:
    """State of several runs: learning if any is, else unknown if any is, else converged."""
    found = {judge_learning(run) for run in runs}
    if "learning" in found:
        return "learning"
    return "unknown" if "unknown" in found or not found else "converged"

"""Warnings: reasons to doubt the numbers of a method."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

from embgeo.core.quantities import isotropy
from embgeo.core.values import format_number
from embgeo.diagnosis.thresholds import PARTITION
from embgeo.training.study.deciding import quality_name
from embgeo.training.study.record import Run, StudyWarning, group_runs


def warn_of_methods(runs: Sequence[Run]) -> tuple[StudyWarning, ...]:
    """All warnings, in the order of the methods."""
    by_method = group_runs(runs)
    split = quality_name(runs).partition(".")[0]
    found = [warn_of_unigram(method, own, split) for method, own in by_method.items()]
    found += [warn_of_long_rows(method, own) for method, own in by_method.items()]
    found.append(warn_of_bias(by_method.get("mle", []), by_method.get("re", []), split))
    return tuple(warning for warning in found if warning is not None)


def warn_of_bias(mle: Sequence[Run], re: Sequence[Run], split: str) -> StudyWarning | None:
    """Warn of what RE loses without an output bias, its only difference from MLE."""
    name = f"{split}.perplexity"
    with_bias = {run.seed: run.numbers[name] for run in mle if name in run.numbers}
    ratios = [
        run.numbers[name] / with_bias[run.seed]
        for run in re
        if name in run.numbers and run.seed in with_bias
    ]
    if not ratios:
        return None
    change = 100.0 * (geometric_mean(ratios) - 1.0)
    seeds = "1 seed" if len(ratios) == 1 else f"the mean of {len(ratios)} seeds"
    return StudyWarning(
        "no_output_bias",
        "re",
        f"re has no output bias, and differs from mle in nothing else: its perplexity is "
        f"{change:+.1f} % from that of mle ({seeds}), which no comparison with untied shows",
    )


def warn_of_unigram(method: str, runs: Sequence[Run], split: str) -> StudyWarning | None:
    """Warn if a run of the method is not below the unigram perplexity of the split."""
    perplexity, unigram = f"{split}.perplexity", f"{split}.unigram"
    above = [
        run
        for run in runs
        if unigram in run.numbers and run.numbers.get(perplexity, 0.0) >= run.numbers[unigram]
    ]
    if not above:
        return None
    worst = max(above, key=lambda run: run.numbers[perplexity])
    count = "" if len(runs) == 1 else f"{len(above)} of {len(runs)} runs: "
    return StudyWarning(
        "not_below_unigram",
        method,
        f"{method}: {count}perplexity {format_number(worst.numbers[perplexity])} is not below that "
        f"of a unigram model, {format_number(worst.numbers[unigram])}: it predicts no better than "
        "word frequencies do",
    )


def warn_of_long_rows(method: str, runs: Sequence[Run]) -> StudyWarning | None:
    """Warn if long rows alone make I1 at a mean norm of 1 low."""
    unit, rows = isotropy.I1_UNIT.name, isotropy.I1_UNIT_ROWS.name
    low = [
        run
        for run in runs
        if unit in run.numbers
        and rows in run.numbers
        and PARTITION.state(run.numbers[unit]) == "degenerate"
        and PARTITION.state(run.numbers[rows]) == "healthy"
    ]
    if not low:
        return None
    worst = min(low, key=lambda run: run.numbers[unit])
    count = "" if len(runs) == 1 else f"{len(low)} of {len(runs)} runs: "
    return StudyWarning(
        "long_rows",
        method,
        f"{method}: {count}I1 at a mean norm of 1 is {format_number(worst.numbers[unit])} because "
        "a few rows are long, not because directions differ: with every row at norm 1 it is "
        f"{format_number(worst.numbers[rows])}",
    )

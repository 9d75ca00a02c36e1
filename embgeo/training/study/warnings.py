"""What makes the numbers of a method doubtful, whatever it is compared with."""

from __future__ import annotations

from collections.abc import Sequence

from embgeo.core.values import format_number
from embgeo.training.study.deciding import perplexity_name
from embgeo.training.study.training import Run, StudyWarning


def warn_of_methods(runs: Sequence[Run]) -> tuple[StudyWarning, ...]:
    """All warnings, in the order of the methods."""
    by_method: dict[str, list[Run]] = {}
    for run in runs:
        by_method.setdefault(run.method, []).append(run)
    split = perplexity_name(runs).partition(".")[0]
    found = (warn_of_unigram(method, own, split) for method, own in by_method.items())
    return tuple(warning for warning in found if warning is not None)


def warn_of_unigram(method: str, runs: Sequence[Run], split: str) -> StudyWarning | None:
    """Whether some run of a method is not below the unigram perplexity of the split."""
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

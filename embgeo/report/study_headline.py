"""The first sentences of the report of a study: each method against its own control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embgeo.core.quantities import isotropy
from embgeo.core.text import capital, visible
from embgeo.training.study.convergence import judge_all
from embgeo.training.study.deciding import (
    compare_with_control,
    count_verdicts,
    describe_quality,
    has_same_size,
    quality_name,
)
from embgeo.training.study.record import Learning, Study
from embgeo.training.study.spread import LEAST_SEEDS, Direction, Paired

#: Methods that a sentence names, at most; the table has the others.
MOST_NAMED = 4
DIRECTIONS: dict[Direction, str] = {
    "lower": "lower with",
    "higher": "higher with",
    "open": "within seeds with",
}
#: A caution if the runs had not converged.
UNFINISHED: dict[Learning, str] = {
    "converged": "",
    "learning": "Models were still learning at the end: the difference is one of training speed.",
    "unknown": "No validation curve shows that learning was over: the difference may be one of "
    "training speed.",
}


def headlines(study: Study) -> tuple[str, ...]:
    """The effects of the methods on perplexity and isotropy, and how many claims held."""
    name = quality_name(study.runs)
    quality, geometry = {}, {}
    for method in study.methods:
        if study.runs_of(method.reference) and has_same_size(study, method):
            quality[method.name] = compare_with_control(study, method, name)
            geometry[method.name] = compare_with_control(
                study, method, isotropy.I1_UNIT.name, method.role
            )
    said = (
        sentence(describe_quality(name), quality),
        UNFINISHED[judge_all(study.runs)] if any(quality.values()) else "",
        sentence("I1 at a mean norm of 1", geometry),
        claims_line(study),
    )
    alone = f"One method, {visible(study.baseline.name)}: nothing to compare it with."
    return tuple(part for part in said if part) or (alone,)


def sentence(what: str, differences: Mapping[str, Paired | None]) -> str:
    """``"Test perplexity against each control: lower with cosreg (−1.4 %)."``."""
    known = {visible(name): held for name, held in differences.items() if held is not None}
    if not known:
        return ""
    head = f"{capital(what)} against each control"
    if any(held.interval is None for held in known.values()):
        named = [f"{name} {held.change}" for name, held in known.items()]
        return f"{head}, fewer than {LEAST_SEEDS} seeds: {join_names(named)}."
    parts = []
    for side, words in DIRECTIONS.items():
        named = [f"{name} ({held.change})" for name, held in known.items() if held.side() == side]
        if named:
            parts.append(f"{words} {join_names(named)}")
    return f"{head}: {'; '.join(parts)}."


def join_names(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    left = len(names) - MOST_NAMED
    return ", ".join(names) if left < 2 else f"{', '.join(names[:MOST_NAMED])} and {left} more"


def claims_line(study: Study) -> str:
    """How many claims held."""
    count = count_verdicts(study.outcomes)
    if not sum(count.values()):
        return ""
    left = count["not decidable"]
    if left == sum(count.values()):
        few = len(study.seeds) < LEAST_SEEDS
        why = f" with fewer than {LEAST_SEEDS} seeds" if few else ""
        return f"None of {left} claims of the papers can be decided{why}."
    return (
        f"Claims of the papers: {count['reproduced']} reproduced, {count['not reproduced']} not, "
        f"{count['nominal']} nominal, {left} not decidable."
    )

"""The first sentences of the report of a study: each method against its own control."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from embgeo.core.visible import visible
from embgeo.core.words import capital
from embgeo.training.study.convergence import judge_all
from embgeo.training.study.deciding import count_verdicts, describe_quality, quality_name, signed
from embgeo.training.study.effects import (
    Direction,
    Effect,
    list_isotropy_effects,
    list_quality_effects,
)
from embgeo.training.study.spread import LEAST_SEEDS, percent_text
from embgeo.training.study.training import Learning, Training

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


def headlines(training: Training) -> tuple[str, ...]:
    """The effects of the methods on perplexity and isotropy, and how many claims held."""
    name = quality_name(training.runs)
    quality, isotropy = (
        [one for one in effects if one.comparable]
        for effects in (list_quality_effects(training), list_isotropy_effects(training))
    )
    said = (
        sentence(describe_quality(name), quality, percent),
        UNFINISHED[judge_all(training.runs)] if quality else "",
        sentence("I1 at a mean norm of 1", isotropy, difference),
        claims_line(training),
    )
    alone = f"One method, {visible(training.baseline.name)}: nothing to compare it with."
    return tuple(part for part in said if part) or (alone,)


def percent(effect: Effect) -> str:
    return percent_text(effect.held.difference) if effect.relative else difference(effect)


def difference(effect: Effect) -> str:
    return signed(effect.held.difference)


def sentence(what: str, effects: Sequence[Effect], show: Callable[[Effect], str]) -> str:
    """``"Test perplexity against each control: lower with cosreg (−1.4 %)."``."""
    if not effects:
        return ""
    head = f"{capital(what)} against each control"
    if any(effect.held.interval is None for effect in effects):
        named = [f"{visible(one.method)} {show(one)}" for one in effects]
        return f"{head}, fewer than {LEAST_SEEDS} seeds: {join_names(named)}."
    parts = []
    for direction, words in DIRECTIONS.items():
        chosen = [one for one in effects if one.direction == direction]
        named = [f"{visible(one.method)} ({show(one)})" for one in chosen]
        if named:
            parts.append(f"{words} {join_names(named)}")
    return f"{head}: {'; '.join(parts)}."


def join_names(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    left = len(names) - MOST_NAMED
    return ", ".join(names) if left < 2 else f"{', '.join(names[:MOST_NAMED])} and {left} more"


def claims_line(training: Training) -> str:
    """How many claims held."""
    count = count_verdicts(training.outcomes)
    if not sum(count.values()):
        return ""
    left = count["not decidable"]
    if left == sum(count.values()):
        few = len(training.seeds) < LEAST_SEEDS
        why = f" with fewer than {LEAST_SEEDS} seeds" if few else ""
        return f"None of {left} claims of the papers can be decided{why}."
    return (
        f"Claims of the papers: {count['reproduced']} reproduced, {count['not reproduced']} not, "
        f"{left} not decidable."
    )

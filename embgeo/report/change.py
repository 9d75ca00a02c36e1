"""The line that sums up a comparison: what became of the shape, and what stands out."""

from __future__ import annotations

from embgeo.compare.comparison import Comparison
from embgeo.figures.compared.base import name_of
from embgeo.report.finding import RANK, State
from embgeo.report.verdict import judge
from embgeo.report.visible import visible

#: Sentences of the comparison that the headline takes over.
TAKEN = 2
#: Members that the headline names, at most.
NAMED = 4

_STATES: dict[State, str] = {
    "healthy": "not degenerate",
    "mild": "mildly degenerate",
    "degenerate": "degenerate",
    "undecided": "undecided",
}


def headline(comparison: Comparison) -> str:
    """What became of the state of each matrix, then the first sentences of the comparison."""
    states = [judge(member.analysis).state for member in comparison.members]
    return " ".join([_lead(comparison, states), *comparison.sentences[:TAKEN]])


def _lead(comparison: Comparison, states: list[State]) -> str:
    if comparison.track is not None:
        first, last = (name_of(m, True) for m in (comparison.members[0], comparison.members[-1]))
        then = _STATES[states[-1]]
        if states[0] == states[-1]:
            return f"{then.capitalize()} at {first} and still at {last}."
        return f"{_STATES[states[0]].capitalize()} at {first}, {then} at {last}."
    if len(states) == 2:
        return f"{became(*states).capitalize()}."
    named = [
        f"{visible(member.name)}: {became(states[0], state)}"
        for member, state in list(zip(comparison.others, states[1:], strict=True))[:NAMED]
    ]
    left = len(comparison.others) - len(named)
    more = f"; {left} more below" if left else ""
    return f"Baseline {_STATES[states[0]]}. {'; '.join(named)}{more}."


def became(before: State, after: State) -> str:
    """The change of state in words.

    >>> became("degenerate", "healthy"), became("healthy", "healthy")
    ('no longer degenerate', 'not degenerate, before or after')
    """
    if "undecided" in (before, after):
        return f"{_STATES[before]} before, {_STATES[after]} after"
    if RANK[after] < RANK[before]:
        return "no longer degenerate" if after == "healthy" else "only mildly degenerate now"
    if RANK[after] > RANK[before]:
        return f"became {_STATES[after]}"
    return "not degenerate, before or after" if after == "healthy" else f"still {_STATES[after]}"

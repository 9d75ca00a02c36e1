"""The lines that sum up a comparison: how the shape changed, and what part norms played."""

from __future__ import annotations

import numpy as np

from embgeo.comparison.comparison import Comparison
from embgeo.comparison.names import member_name
from embgeo.comparison.pair import Difference
from embgeo.core.quantities import isotropy, tokens
from embgeo.diagnosis.finding import RANK, State, format_short
from embgeo.diagnosis.verdict import Verdict, judge
from embgeo.result.analysis import Analysis

#: Findings that say what is wrong with a shape, the most telling first.
_CAUSES = ("rows", "cone", "spectrum", "two-sided")

_STATES: dict[State, str] = {
    "healthy": "not degenerate",
    "mild": "mildly degenerate",
    "degenerate": "degenerate",
    "undecided": "undecided",
}
#: I1 lies between 0 and 1: what moves less than this is not called a rise or a fall.
NOTICED = 0.01
#: A change at a mean norm of 1 of less than this share of the raw one does not carry it.
CARRIED = 0.25
#: Norms that changed by less than this share did not grow or shrink.
SAME_NORM = 0.02


def headline(comparison: Comparison) -> str:
    """The state of each matrix; of two also the evidence, and I1 with the part that norms played.

    Of a track, the two are its first and its last checkpoint.
    """
    verdicts = [judge(member.analysis) for member in comparison.members]
    if comparison.track is None and len(verdicts) > 2:
        return _states_of_many(comparison, [v.state for v in verdicts])
    last = len(verdicts) - 1
    said = [_states_of_two(comparison, verdicts[0].state, verdicts[-1].state)]
    said += [_evidence(verdicts[0], verdicts[-1]), describe_isotropy(comparison, last)]
    return " ".join(part for part in said if part)


def _states_of_two(comparison: Comparison, before: State, after: State) -> str:
    if comparison.track is None:
        return f"{describe_state_change(before, after).capitalize()}."
    first, last = member_name(comparison, 0), member_name(comparison, len(comparison.members) - 1)
    if before == after:
        return f"{_STATES[after].capitalize()} at {first} and still at {last}."
    return f"{_STATES[before].capitalize()} at {first}, {_STATES[after]} at {last}."


def _states_of_many(comparison: Comparison, states: list[State]) -> str:
    groups: dict[str, list[str]] = {}
    for place in range(1, len(states)):
        change = describe_state_change(states[0], states[place])
        groups.setdefault(change, []).append(member_name(comparison, place))
    changes = "; ".join(f"{change}: {', '.join(names)}" for change, names in groups.items())
    return f"Baseline {_STATES[states[0]]}. {changes[:1].upper()}{changes[1:]}."


def describe_state_change(before: State, after: State) -> str:
    """The change of state in words.

    >>> describe_state_change("degenerate", "healthy"), describe_state_change("healthy", "healthy")
    ('no longer degenerate', 'not degenerate, before or after')
    """
    if "undecided" in (before, after):
        return f"{_STATES[before]} before, {_STATES[after]} after"
    if RANK[after] < RANK[before]:
        return "no longer degenerate" if after == "healthy" else "only mildly degenerate now"
    if RANK[after] > RANK[before]:
        return f"became {_STATES[after]}"
    return "not degenerate, before or after" if after == "healthy" else f"still {_STATES[after]}"


def _evidence(old: Verdict, new: Verdict) -> str:
    """What the state of either side rests on, before and now; the cone where nothing is wrong."""
    causes = {_cause(verdict) for verdict in (old, new)} - {""} or {"cone"}
    keys = [key for key in _CAUSES if key in causes]
    sides = [
        [f.clause for key in keys if (f := verdict.finding(key)) is not None and f.clause]
        for verdict in (old, new)
    ]
    if not all(sides):
        return ""
    before, now = (" and ".join(clauses) for clauses in sides)
    return f"Before: {before}; now: {now}."


def _cause(verdict: Verdict) -> str:
    """The first finding that is as bad as the whole; empty where the whole is not bad."""
    if verdict.state not in ("mild", "degenerate"):
        return ""
    found = (key for key in _CAUSES if getattr(verdict.finding(key), "state", "") == verdict.state)
    return next(found, "")


def describe_isotropy(comparison: Comparison, place: int) -> str:
    """How I1 moved, and whether only because norms did; empty where I1 is not known."""
    rows = {d.name: d for d in comparison.differences_of(place)}
    raw, unit = rows.get(isotropy.I1.name), rows.get(isotropy.I1_UNIT.name)
    if raw is None or raw.difference is None:
        return ""
    if unit is None or unit.difference is None:
        return f"I1 {_describe(raw)} as stored; at a mean norm of 1 it is not known."
    if not is_noticed(raw.difference):
        but = "but" if is_noticed(unit.difference) else "and"
        return f"I1 {_describe(raw)} as stored, {but} {_describe(unit)} at a mean norm of 1."
    each = rows.get(isotropy.I1_UNIT_ROWS.name)
    if each is not None and is_made_by_spread(unit, each):
        return (
            f"I1 {_describe(raw)}, and at a mean norm of 1 {_describe(unit)}, because of how norms "
            f"spread, not of directions: with every row at norm 1 it {_describe(each)}."
        )
    norms, helped = _norms(comparison, place, raw.difference > 0)
    if is_carried(raw.difference, unit.difference):
        part = f"not only because of {norms}" if helped else f"which {norms} do not explain"
    else:
        along = is_noticed(unit.difference) and unit.difference / raw.difference > 0
        only = "mostly" if along else "only"
        part = f"{only} because of {norms}"
    return f"I1 {_describe(raw)}, {part}: at a mean norm of 1 it {_describe(unit)}."


def _norms(comparison: Comparison, place: int, rose: bool) -> tuple[str, bool]:
    """``"smaller norms (median 1.76 → 1.57)"``, and whether they moved I1 the way it went."""
    medians = median_norms(comparison.baseline.analysis, comparison.members[place].analysis)
    if medians is None:
        return "norms", True
    before, after = medians
    moved = f"(median {format_short(before)} → {format_short(after)})"
    if not explain(before, after, rose):
        return f"norms {moved}", False
    return f"{'smaller' if rose else 'larger'} norms {moved}", True


def _describe(row: Difference) -> str:
    """``rose from 0.0912 to 0.767``, ``stayed at 0.767``."""
    if row.difference is None or row.value is None or row.baseline is None:
        return "is not known"
    if not is_noticed(row.difference):
        return f"stayed at {format_short(row.value)}"
    direction = "rose" if row.difference > 0 else "fell"
    return f"{direction} from {format_short(row.baseline)} to {format_short(row.value)}"


def sampling(comparison: Comparison, place: int) -> str:
    """How many of the differences of a member are larger than other tokens explain."""
    judged = [
        d for d in comparison.differences_of(place) if d.change in ("beyond error", "within error")
    ]
    if not judged:
        return "none has an error over tokens"
    beyond = sum(d.change == "beyond error" for d in judged)
    if len(judged) == 1:
        held = "exceeds" if beyond else "is within"
        return f"the one that has an error over tokens {held} it"
    return f"{beyond} of the {len(judged)} with an error over tokens exceed it"


def is_noticed(difference: float) -> bool:
    """Whether I1 rose or fell, rather than stayed."""
    return abs(difference) > NOTICED


def is_carried(raw: float, unit: float) -> bool:
    """Whether the change of I1 at unit scale shows that a (noticed) raw one is one of shape."""
    return is_noticed(unit) and unit / raw >= CARRIED


def is_made_by_spread(unit: Difference, each: Difference) -> bool:
    """Whether I1 at a mean norm of 1 moved, but not in that way with each row at norm 1.

    Then norms that spread more (or less) moved it: a few long rows lower it, whatever their
    directions.
    """
    if unit.difference is None or each.difference is None or not is_noticed(unit.difference):
        return False
    return not is_carried(unit.difference, each.difference)


def explain(before: float, after: float, rose: bool) -> bool:
    """Whether median norms moved in the way that alone makes I1 rise (or fall)."""
    return after < before * (1 - SAME_NORM) if rose else after > before * (1 + SAME_NORM)


def median_norms(old: Analysis, new: Analysis) -> tuple[float, float] | None:
    """The median row norms of both, or None where one does not know them."""
    columns = [next((c for c in a.columns if c.name == tokens.NORM.name), None) for a in (old, new)]
    before, after = (None if c is None or not len(c.values) else c.values for c in columns)
    if before is None or after is None:
        return None
    return float(np.median(before)), float(np.median(after))

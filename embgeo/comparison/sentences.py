"""The summary of a comparison, and sentences about what stands out."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from embgeo.comparison.comparison import Comparison, Member, member_name
from embgeo.comparison.pair import Difference, Pair
from embgeo.comparison.track import Track, name_steps
from embgeo.core.quantities import compare as q
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum, tokens
from embgeo.core.text import capital, join_words
from embgeo.core.values import format_number
from embgeo.diagnosis.finding import RANK, State, format_short
from embgeo.diagnosis.verdict import Verdict, judge

#: Curves of a track whose bends have a sentence.
HEADLINES = (
    spectrum.EFFECTIVE_RANK.name,
    cosine.MEAN.name,
    isotropy.I1_UNIT_ROWS.name,
    frequency.PROBE_AUC.name,
)
#: Numbers that a comparison may lead with, all between 0 and 1.
LEADS = (cosine.MEAN, spectrum.TOP_SHARE, isotropy.I1_UNIT_ROWS)
#: Neighborhoods that overlap less than this multiple of chance have little in common.
LOST = 1.5
#: Changes of differences that have an error over tokens.
JUDGED = ("significant", "not significant")
#: At most this many insignificant differences are named.
MOST_NAMED = 4


def sentences(comparison: Comparison) -> tuple[str, ...]:
    """Return a few for each member but the baseline, with its name if there are several."""
    if comparison.track is not None:
        return track_sentences(comparison, comparison.track)
    found: list[str] = []
    for place, member in enumerate(comparison.others, start=1):
        lead = f"{member.name}: " if len(comparison.others) > 1 else ""
        pair = comparison.pair(0, place)
        for text in (
            describe_lead(rows_of(comparison, place)),
            "the same rows in another order" if pair and pair.reordered else neighborhoods(pair),
            count_insignificant(
                [d for d in comparison.differences_of(place) if d.change in JUDGED]
            ),
        ):
            if text:
                found.append(f"{lead}{text if lead else capital(text)}.")
    return tuple(found)


def describe_same(members: Sequence[Member], same_as: Sequence[int | None]) -> tuple[str, ...]:
    """Describe which members hold the same matrix: "Steps 0 and 1,000 hold the same matrix."."""
    said = []
    for first in dict.fromkeys(place for place in same_as if place is not None):
        group = [members[i] for i, same in enumerate(same_as) if i == first or same == first]
        steps = [m.step for m in group if m.step is not None]
        names = join_words([m.name for m in group])
        who = capital(name_steps(steps)) if len(steps) == len(group) else names
        said.append(f"{who} hold the same matrix.")
    return tuple(said)


def track_sentences(comparison: Comparison, track: Track) -> tuple[str, ...]:
    """Write what happens from the first step to the last, and the bends of headline curves."""
    last = len(comparison.members) - 1
    text = describe_lead(rows_of(comparison, last))
    steps = f"step {format_number(track.steps[0])} to {format_number(track.steps[-1])}"
    said = [f"From {steps}, {text}."] if text else []
    if track.outliers:
        unfit = capital(name_steps([track.steps[place] for place in track.outliers]))
        fits = "does not fit its" if len(track.outliers) == 1 else "do not fit their"
        said.insert(0, f"{unfit} {fits} neighbors.")
    said += [f"Step {one.step:,.10g} was not measured: {one.reason}." for one in track.unmeasured]
    for curve in track.curves:
        if (
            curve.change_point is not None
            and not curve.against
            and curve.quantity.name in HEADLINES
        ):
            title = curve.quantity.title
            said.append(f"{title} bends at step {format_number(curve.change_point.step)}.")
    return tuple(said)


def rows_of(comparison: Comparison, place: int) -> dict[str, Difference]:
    return {d.name: d for d in comparison.differences_of(place)}


def describe_lead(rows: Mapping[str, Difference]) -> str:
    """Describe the number that moved most: ``mean cosine rose from 0 to 0.2 (± 0.01)``.

    Of those with an error, if one has. The error is that of the difference.
    """
    known = [row for of in LEADS if (row := rows.get(of.name)) and row.difference is not None]
    if not known:
        return ""
    row = max(
        [row for row in known if row.standard_error] or known,
        key=lambda row: abs(row.difference or 0.0),
    )
    error = f" ({row.error_text})" if row.error_text else ""
    return f"{row.quantity.label} {describe_move(row)}{error}"


def has_error(row: Difference) -> bool:
    """Tell whether it is known how far a difference may be chance."""
    return row.standard_error is not None or row.change == "equal"


def describe_isotropy(rows: Mapping[str, Difference], norms: tuple[float, float] | None) -> str:
    """Describe how I1 moved as stored and at mean norm 1, so that norms do not pass for isotropy.

    `norms` are the median row norms before and after. Empty if I1 is not known.
    """
    raw, unit = rows.get(isotropy.I1.name), rows.get(isotropy.I1_UNIT.name)
    if raw is None or raw.difference is None:
        return ""
    text = f"I1 {describe_move(raw)}"
    if unit is None or unit.difference is None:
        return f"{text} as stored"
    span = f"{describe_span(unit)} at mean norm 1"
    if not is_noticed(raw.difference):
        return f"{text} ({span})"
    if is_carried(raw.difference, unit.difference):
        each = rows.get(isotropy.I1_UNIT_ROWS.name)
        if each is None or not is_made_by_spread(unit, each):
            return f"{text} ({span})"
        return f"{text} because the spread of norms changed ({describe_span(each)} for unit rows)"
    along = is_noticed(unit.difference) and unit.difference / raw.difference > 0
    cause = "mostly" if along else "only"
    if norms is None or not explain(*norms, rose=raw.difference > 0):
        return f"{text}, {cause} because of the scale ({span})"
    smaller = "smaller" if raw.difference > 0 else "larger"
    before, after = map(format_short, norms)
    return f"{text}, {cause} because of {smaller} norms (median {before} to {after}; {span})"


def neighborhoods(pair: Pair | None) -> str:
    """Tell whether tokens keep all of their neighbors, or none."""
    overlap = None if pair is None else pair.scalar(q.NEIGHBOR_OVERLAP)
    if overlap is None or overlap.value is None or overlap.reference is None:
        return ""
    if overlap == 1.0:
        return "all examined tokens keep all their neighbors"
    if overlap < LOST * overlap.reference:
        return "tokens keep no more of their neighbors than by chance"
    return ""


def count_insignificant(judged: Sequence[Difference]) -> str:
    """Say how many of these differences are not significant, and name a few."""
    inside = [d for d in judged if d.change == "not significant"]
    if not inside:
        return ""
    names = f": {'; '.join(d.quantity.label for d in inside)}" if len(inside) <= MOST_NAMED else ""
    if len(judged) == 1:
        return f"the only difference with an error is not significant{names}"
    are = "is" if len(inside) == 1 else "are"
    return f"{len(inside)} of {len(judged)} differences {are} not significant{names}"


_STATES: dict[State, str] = {
    "healthy": "not degenerate",
    "mild": "mildly degenerate",
    "degenerate": "degenerate",
    "undecided": "undecided",
}
#: I1 lies between 0 and 1: a smaller change is not called a rise or a fall.
NOTICED = 0.01
#: A raw change is one of shape if at least this share of it remains at mean norm 1.
CARRIED = 0.25
#: Norms that change by a smaller share do not count as larger or smaller.
SAME_NORM = 0.02


def headline(comparison: Comparison) -> str:
    """Return the state of each matrix, also of rare tokens.

    Of two: how it changed; the two of a track are its first and its last checkpoint.
    """
    verdicts = [judge(member.analysis) for member in comparison.members]
    if comparison.track is None and len(verdicts) > 2:
        return _count_states(verdicts)
    old, new = verdicts[0], verdicts[-1]
    states: list[State] = [verdict.state for verdict in verdicts]
    said = [
        f"{describe_state_change(*states).capitalize()}."
        if comparison.track is None
        else _states_of_track(comparison, states),
        describe_separation(_is_separated(old), _is_separated(new)),
    ]
    return " ".join(part for part in said if part)


def _states_of_track(comparison: Comparison, states: list[State]) -> str:
    """Say since which checkpoint the state is that of the last one."""
    last = _STATES[states[-1]].capitalize()
    since = next(i for i in range(len(states)) if set(states[i:]) == {states[-1]})
    if not since:
        return f"{last} from {member_name(comparison, 0)} on."
    place = member_name(comparison, since)
    first = "at first and " if states[0] == states[-1] else ""
    return f"{last} {first}since {place}."


def _count_states(verdicts: Sequence[Verdict]) -> str:
    """Count the states, the worst first: ``2 degenerate, 4 healthy. Rare tokens are …``"""
    counts = Counter(verdict.state for verdict in verdicts)
    worst_first = sorted(counts, key=RANK.__getitem__, reverse=True)
    said = ", ".join(f"{counts[state]} {state}" for state in worst_first)
    apart = sum(map(_is_separated, verdicts))
    where = "all" if apart == len(verdicts) else apart
    return f"{said}." + (f" Rare tokens are separated in {where}." if apart else "")


def _is_separated(verdict: Verdict) -> bool:
    """Tell whether rare tokens are separated from frequent ones, which no state of two mentions."""
    found = verdict.finding("frequency")
    return found is not None and found.is_fault


def describe_separation(before: bool, after: bool) -> str:
    """Say whether rare tokens are separated; empty if they never were.

    >>> describe_separation(True, True), describe_separation(False, False)
    ('Rare tokens are still separated from frequent ones.', '')
    """
    if not (before or after):
        return ""
    word = "still" if before and after else "now" if after else "no longer"
    return f"Rare tokens are {word} separated from frequent ones."


def describe_state_change(before: State, after: State) -> str:
    """Describe the change of state.

    >>> describe_state_change("degenerate", "healthy"), describe_state_change("healthy", "healthy")
    ('no longer degenerate', 'not degenerate, before or after')
    """
    if "undecided" in (before, after):
        return f"{_STATES[before]} before, {_STATES[after]} after"
    if RANK[after] < RANK[before]:
        return "no longer degenerate" if after == "healthy" else "less degenerate: now mild"
    if RANK[after] > RANK[before]:
        return f"became {_STATES[after]}"
    return "not degenerate, before or after" if after == "healthy" else f"still {_STATES[after]}"


def describe_isotropy_move(comparison: Comparison, place: int) -> str:
    """Describe how I1 moved, as a sentence; empty if I1 is not known."""
    text = describe_isotropy(rows_of(comparison, place), median_norms(comparison, place))
    return f"{text}." if text else ""


def describe_move(row: Difference) -> str:
    """Write how a number moved: ``rose from 0.0912 to 0.767``, ``stayed at 0.767``."""
    assert row.difference is not None
    way = "from" if is_noticed(row.difference) else "at"
    return f"{name_move(row.difference)} {way} {describe_span(row)}"


def describe_span(row: Difference) -> str:
    """Write both numbers, or one if they are alike: ``0.0912 to 0.767``, ``0.767``."""
    assert row.value is not None
    assert row.difference is not None
    assert row.baseline is not None
    after = format_short(row.value)
    return f"{format_short(row.baseline)} to {after}" if is_noticed(row.difference) else after


def name_move(difference: float) -> str:
    """Name how I1 moved, in a word."""
    if not is_noticed(difference):
        return "stayed"
    return "rose" if difference > 0 else "fell"


def is_noticed(difference: float) -> bool:
    """Tell whether I1 rose or fell, rather than stayed."""
    return abs(difference) > NOTICED


def is_carried(raw: float, unit: float) -> bool:
    """Tell whether the change of I1 at mean norm 1 shows a noticed raw change to be of shape."""
    return is_noticed(unit) and unit / raw >= CARRIED


def is_made_by_spread(unit: Difference, each: Difference) -> bool:
    """Tell whether I1 moved at mean norm 1, but not in the same way with each row at norm 1.

    Then the spread of norms moved it: a few long rows lower it, whatever their directions.
    """
    if unit.difference is None or each.difference is None or not is_noticed(unit.difference):
        return False
    return not is_carried(unit.difference, each.difference)


def explain(before: float, after: float, rose: bool) -> bool:
    """Tell whether the median norms alone explain that I1 rose (or fell)."""
    return after < before * (1 - SAME_NORM) if rose else after > before * (1 + SAME_NORM)


def median_norms(comparison: Comparison, place: int) -> tuple[float, float] | None:
    """Return the median row norms of the baseline and of a member, or None if one is not known."""
    medians = [
        float(np.median(column.values))
        for member in (comparison.baseline, comparison.members[place])
        for column in member.analysis.columns
        if column.name == tokens.NORM.name and len(column.values)
    ]
    return (medians[0], medians[1]) if len(medians) == 2 else None

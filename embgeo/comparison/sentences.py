"""Sentences about what stands out in a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embgeo.comparison.change import (
    describe_move,
    explain,
    is_carried,
    is_made_by_spread,
    is_noticed,
    list_judged,
    median_norms,
    name_move,
)
from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.pair import Difference, Pair
from embgeo.comparison.track import Track, name_steps
from embgeo.core.quantities import compare as q
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum
from embgeo.core.values import format_number
from embgeo.core.words import capital, join_words
from embgeo.diagnosis.finding import format_short

#: Curves of a track whose bends have a sentence.
HEADLINES = (
    spectrum.EFFECTIVE_RANK.name,
    cosine.MEAN.name,
    isotropy.I1.name,
    isotropy.I1_UNIT.name,
    frequency.PROBE_AUC.name,
)
#: Neighborhoods that overlap less than this multiple of chance have little in common.
LOST = 1.5
#: At most this many differences within their error are named.
MOST_NAMED = 4


def sentences(comparison: Comparison) -> tuple[str, ...]:
    """A few for each member but the baseline, with its name if there are several."""
    if comparison.track is not None:
        return track_sentences(comparison, comparison.track)
    found: list[str] = []
    for place, member in enumerate(comparison.others, start=1):
        lead = f"{member.name}: " if len(comparison.others) > 1 else ""
        for text in (
            describe_isotropy(rows_of(comparison, place), median_norms(comparison, place)),
            neighborhoods(comparison.pair(0, place)),
            count_inside(list_judged(comparison, place)),
        ):
            if text:
                found.append(f"{lead}{text if lead else capital(text)}.")
    return tuple(found)


def describe_same(members: Sequence[Member], same_as: Sequence[int | None]) -> tuple[str, ...]:
    """Which members hold the same matrix: "Steps 0, 1,000 and 2,000 hold the same matrix."."""
    said = []
    for first in dict.fromkeys(place for place in same_as if place is not None):
        group = [members[i] for i, same in enumerate(same_as) if i == first or same == first]
        steps = [m.step for m in group if m.step is not None]
        names = join_words([m.name for m in group])
        who = capital(name_steps(steps)) if len(steps) == len(group) else names
        said.append(f"{who} hold the same matrix.")
    return tuple(said)


def track_sentences(comparison: Comparison, track: Track) -> tuple[str, ...]:
    """From the first step to the last, and the bends of headline curves."""
    last = len(comparison.members) - 1
    text = describe_isotropy(rows_of(comparison, last), median_norms(comparison, last))
    steps = f"step {format_number(track.steps[0])} to {format_number(track.steps[-1])}"
    said = [f"From {steps}, {text}."] if text else []
    if track.outliers:
        unfit = capital(name_steps([track.steps[place] for place in track.outliers]))
        fits = "does not fit its" if len(track.outliers) == 1 else "do not fit their"
        said.insert(0, f"{unfit} {fits} neighbors.")
    for curve in track.curves:
        if curve.bend is not None and not curve.against and curve.quantity.name in HEADLINES:
            title = curve.quantity.title
            said.append(f"{title} bends at step {format_number(curve.bend.step)}.")
    return tuple(said)


def rows_of(comparison: Comparison, place: int) -> dict[str, Difference]:
    return {d.name: d for d in comparison.differences_of(place)}


def describe_isotropy(rows: Mapping[str, Difference], norms: tuple[float, float] | None) -> str:
    """I1 as stored and at unit scale, so that smaller norms do not pass for isotropy.

    `norms` are the median row norms before and after.
    """
    raw, unit = rows.get(isotropy.I1.name), rows.get(isotropy.I1_UNIT.name)
    if raw is None or raw.difference is None:
        return ""
    text = f"I1 {describe_move(raw)}"
    if unit is None or unit.difference is None:
        return text
    move = describe_move(unit)
    verb, _, span = move.partition(" ")
    same = verb == name_move(raw.difference)
    if not is_noticed(raw.difference) or is_carried(raw.difference, unit.difference):
        text += f", and {span if same else move} at unit scale"
        each = rows.get(isotropy.I1_UNIT_ROWS.name)
        if each is None or not is_made_by_spread(unit, each):
            return text
        cause = "the spread of norms moved it"
        return f"{text}, but {describe_move(each)} with every row at norm 1: {cause}"
    text += f", but {f'only {span}' if same else move} at unit scale"
    if norms is None or not explain(*norms, rose=raw.difference > 0):
        return text
    before, after = map(format_short, norms)
    return f"{text}: the norms moved it (median {before}, then {after})"


def neighborhoods(pair: Pair | None) -> str:
    """Whether tokens keep all of their neighbors, or none."""
    overlap = None if pair is None else pair.scalar(q.NEIGHBOR_OVERLAP)
    if overlap is None or overlap.value is None or overlap.reference is None:
        return ""
    if overlap == 1.0:
        return "all examined tokens keep all their neighbors"
    if overlap < LOST * overlap.reference:
        return "tokens keep no more of their neighbors than by chance"
    return ""


def count_inside(judged: Sequence[Difference]) -> str:
    """How many of these differences are within their error over tokens."""
    inside = [d for d in judged if d.change == "within error"]
    if not inside:
        return ""
    if len(inside) == len(judged):
        return "every difference that has an error over tokens is within it"
    names = f": {'; '.join(d.quantity.title for d in inside)}" if len(inside) <= MOST_NAMED else ""
    return (
        f"of {len(judged)} differences with an error over tokens {len(inside)} "
        f"{'is' if len(inside) == 1 else 'are'} within it{names}"
    )

"""What stands out in a comparison, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embgeo.comparison.change import (
    explain,
    is_carried,
    is_made_by_spread,
    is_noticed,
    median_norms,
)
from embgeo.comparison.comparison import Member
from embgeo.comparison.pair import Difference, Pair
from embgeo.comparison.track import Track, join_words, name_steps
from embgeo.core.quantities import compare as q
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum
from embgeo.core.values import format_number

#: Curves of a track whose bends are stated.
HEADLINES = (
    spectrum.EFFECTIVE_RANK.name,
    cosine.MEAN.name,
    isotropy.I1.name,
    isotropy.I1_UNIT.name,
    frequency.PROBE_AUC.name,
)
#: Neighborhoods that overlap less than this many times the chance level have little in common.
LOST = 1.5
#: Most differences within their error that are named.
MOST_NAMED = 4


def sentences(
    members: Sequence[Member], pairs: Sequence[Pair], differences: Sequence[Difference]
) -> tuple[str, ...]:
    """A few for each member but the baseline, which is not named where there is only one."""
    said: list[str] = []
    for place, member in enumerate(members[1:], start=1):
        rows = rows_of(differences, place)
        pair = next((p for p in pairs if (p.first, p.second) == (0, place)), None)
        found = [
            describe_isotropy(rows, norms_of(members, place)),
            neighborhoods(pair),
            counted(list(rows.values())),
        ]
        lead = f"{member.name}: " if len(members) > 2 else ""
        said += [f"{lead}{text if lead else capital(text)}." for text in found if text]
    return tuple(said)


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


def track_sentences(
    members: Sequence[Member], differences: Sequence[Difference], track: Track
) -> tuple[str, ...]:
    """From the first step to the last, and where the headline curves bent."""
    last = len(members) - 1
    text = describe_isotropy(rows_of(differences, last), norms_of(members, last))
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


def rows_of(differences: Sequence[Difference], place: int) -> dict[str, Difference]:
    return {d.name: d for d in differences if d.member == place}


def describe_isotropy(rows: Mapping[str, Difference], norms: tuple[float, float] | None) -> str:
    """I1 as it is and at unit scale, so that shrunken norms cannot pass for isotropy.

    `norms`: median norm of the rows on either side.
    """
    raw, unit = rows.get(isotropy.I1.name), rows.get(isotropy.I1_UNIT.name)
    if raw is None or raw.difference is None:
        return ""
    text = f"I1 {verb(raw)} {span(raw)}"
    if unit is None or unit.difference is None:
        return text
    same = verb(unit) == verb(raw)
    if not is_noticed(raw.difference) or is_carried(raw.difference, unit.difference):
        text += f", and {'' if same else f'{verb(unit)} '}{span(unit)} at unit scale"
        each = rows.get(isotropy.I1_UNIT_ROWS.name)
        if each is None or not is_made_by_spread(unit, each):
            return text
        return (
            f"{text}, but {verb(each)} {span(each)} with every row at norm 1: what moved it is how "
            "norms spread"
        )
    text += f", but {'only ' if same else f'{verb(unit)} '}{span(unit)} at unit scale"
    if norms is None or not explain(*norms, rose=raw.difference > 0):
        return text
    before, after = map(format_value, norms)
    return f"{text}: what moved it are the norms (median {before}, then {after})"


def norms_of(members: Sequence[Member], place: int) -> tuple[float, float] | None:
    return median_norms(members[0].analysis, members[place].analysis)


def verb(row: Difference) -> str:
    """How a number of the size of 1 moved."""
    if row.difference is None or not is_noticed(row.difference):
        return "stayed"
    return "rose" if row.difference > 0 else "fell"


def span(row: Difference) -> str:
    if row.value is None or row.baseline is None:
        return "unknown"
    if verb(row) == "stayed":
        return f"at {format_value(row.value)}"
    return f"from {format_value(row.baseline)} to {format_value(row.value)}"


def format_value(value: float) -> str:
    return format_number(value, 3)


def neighborhoods(pair: Pair | None) -> str:
    """If tokens keep all of their neighbors, or none."""
    overlap = None if pair is None else pair.scalar(q.NEIGHBOR_OVERLAP)
    if overlap is None or overlap.value is None or overlap.reference is None:
        return ""
    if overlap.value == 1.0:
        return "every token that was looked at keeps all its neighbors"
    if overlap.value < LOST * overlap.reference:
        return "tokens keep no more of their neighbors than chance would have it"
    return ""


def counted(rows: Sequence[Difference]) -> str:
    """How many of the judged differences other tokens may explain."""
    judged = [d for d in rows if d.change in ("beyond error", "within error")]
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


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]

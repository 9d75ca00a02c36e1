"""How each finding about the baseline changes in another matrix, in words and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from embgeo.comparison.change import median_norms
from embgeo.comparison.comparison import Comparison
from embgeo.comparison.pair import Change, Difference
from embgeo.core.quantities import compare, cosine, frequency, isotropy, spectrum, tokens
from embgeo.core.values import Scalar, format_number
from embgeo.diagnosis.finding import Finding, Part, Quote, format_percent
from embgeo.diagnosis.verdict import judge

#: What is known of a difference, inside a sentence.
SURENESS: dict[Change, str] = {
    "beyond error": "beyond error",
    "within error": "within error",
    "not judged": "its error over tokens unknown",
    "exact": "exact",
    "equal": "equal",
    "undefined": "not comparable",
}


@dataclass(frozen=True, slots=True)
class Shift:
    """One question, answered for the baseline and for another matrix.

    Attributes
    ----------
    key, title : str
        Of the finding; "tokens" for what takes both matrices.
    before, after : Finding or None
        None for "tokens", which has no state.
    parts : tuple of str and Quote
        The sentence with its numbers.
    """

    key: str
    title: str
    before: Finding | None
    after: Finding | None
    parts: tuple[Part, ...]

    @property
    def sentence(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)


class _Sides:
    """Two analyses and the differences of their numbers."""

    def __init__(self, comparison: Comparison, place: int) -> None:
        self.comparison, self.place = comparison, place
        self.old = comparison.baseline.analysis
        self.new = comparison.members[place].analysis
        self.differences = {d.name: d for d in comparison.differences_of(place)}

    def both(self, name: str) -> tuple[Scalar, Scalar, Difference] | None:
        """The number on both sides, where both have a value and may be compared."""
        old, new = self.old.scalar(name), self.new.scalar(name)
        difference = self.differences.get(name)
        if old is None or new is None or difference is None or difference.difference is None:
            return None
        return None if old.value is None or new.value is None else (old, new, difference)

    def describe_move(self, name: str, share: bool = False) -> list[Part]:
        """``"0.4673 → 0.004687"``, each number linked; empty where there are not two."""
        found = self.both(name)
        if found is None:
            return []
        old, new, _ = found
        text = (lambda s: format_percent(s.value or 0.0)) if share else (lambda s: s.text)
        return [Quote(name, text(old)), " → ", Quote(name, text(new))]

    def sure(self, *names: str) -> str:
        """What is known of these differences, as the end of a clause in brackets."""
        said = [SURENESS[found[2].change] for name in names if (found := self.both(name))]
        return f" ({'; '.join(dict.fromkeys(said))})" if said else ""


def shifts(comparison: Comparison, place: int) -> tuple[Shift, ...]:
    """Every question that both analyses answer, and how the tokens' neighbors changed."""
    sides = _Sides(comparison, place)
    old, new = judge(sides.old), judge(sides.new)
    found = []
    for key, title, tell in _QUESTIONS:
        parts = tell(sides)
        if parts:
            found.append(Shift(key, title, old.finding(key), new.finding(key), tuple(parts)))
    kept = _tokens(sides)
    if kept:
        found.append(Shift("tokens", "Do tokens keep their neighbors?", None, None, tuple(kept)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class StateRow:
    """One question and how each of several matrices answers it; None where one does not."""

    title: str
    findings: tuple[Finding | None, ...]


def state_rows(comparison: Comparison, places: Sequence[int]) -> tuple[StateRow, ...]:
    """The questions, answered for the members at these places."""
    judged = [judge(comparison.members[place].analysis) for place in places]
    rows = (StateRow(title, tuple(v.finding(key) for v in judged)) for key, title, _ in _QUESTIONS)
    return tuple(row for row in rows if any(row.findings))


def _rows(sides: _Sides) -> list[Part]:
    """Only where a row is damaged on either side."""
    found = sides.both(tokens.DAMAGED_ROWS.name)
    if found is None or not (found[0].value or found[1].value):
        return []
    return ["Damaged rows ", *sides.describe_move(tokens.DAMAGED_ROWS.name), "."]


def _cone(sides: _Sides) -> list[Part]:
    mean = sides.describe_move(cosine.MEAN.name)
    if not mean:
        return []
    parts: list[Part] = ["Mean cosine of two rows ", *mean, sides.sure(cosine.MEAN.name)]
    angle = sides.describe_move(cosine.CONE_HALF_ANGLE_MEDIAN.name)
    if angle:
        parts += ["; median angle to the mean direction ", *angle]
    return [*parts, ". Isotropic rows: about 0 and 90°."]


def _spectrum(sides: _Sides) -> list[Part]:
    top = sides.describe_move(spectrum.TOP_SHARE.name, share=True)
    rank = sides.describe_move(spectrum.EFFECTIVE_RANK.name)
    parts: list[Part] = []
    if top:
        parts += ["Energy of the strongest direction ", *top]
    if rank:
        parts += ["; effective rank " if top else "Effective rank ", *rank]
    if not parts:
        return []
    return [*parts, f"{sides.sure(spectrum.TOP_SHARE.name, spectrum.EFFECTIVE_RANK.name)}."]


def _isotropy(sides: _Sides) -> list[Part]:
    unit, raw = sides.describe_move(isotropy.I1_UNIT.name), sides.describe_move(isotropy.I1.name)
    if not unit and not raw:
        return []
    each = sides.describe_move(isotropy.I1_UNIT_ROWS.name)
    parts: list[Part] = []
    if raw:
        parts += ["I1 as stored ", *raw]
    if unit:
        parts += ["; at a mean norm of 1 " if raw else "I1 at a mean norm of 1 ", *unit]
    if each:
        parts += ["; with every row at norm 1 ", *each]
    names = (isotropy.I1.name, isotropy.I1_UNIT.name, isotropy.I1_UNIT_ROWS.name)
    parts += [f"{sides.sure(*names)}."]
    norms = median_norms(sides.old, sides.new)
    if norms:
        before, after = norms
        parts += [
            " Median norm ",
            Quote(tokens.NORM.name, format_number(before)),
            " → ",
            Quote(tokens.NORM.name, format_number(after)),
            "; small norms alone raise I1 as stored, and a few long rows lower it even at a mean "
            "norm of 1.",
        ]
    return parts


def _frequency(sides: _Sides) -> list[Part]:
    parts: list[Part] = []
    for lead, name in (
        ("AUC of a probe that tells rare from popular tokens ", frequency.PROBE_AUC.name),
        ("rare among the neighbors of popular tokens ", frequency.NEIGHBOR_RARITY_POPULAR.name),
    ):
        moved = sides.describe_move(name)
        if moved:
            parts += [*(["; "] if parts else []), lead, *moved, sides.sure(name)]
    if not parts:
        return []
    if isinstance(parts[0], str):
        parts[0] = parts[0][0].upper() + parts[0][1:]
    return [*parts, "."]


def _tokens(sides: _Sides) -> list[Part]:
    pair = sides.comparison.pair(0, sides.place)
    scalars = {s.name: s for s in pair.scalars if s.value is not None} if pair else {}
    parts: list[Part] = []
    for lead, name in (
        ("overlap of nearest neighbors (Jaccard) ", compare.NEIGHBOR_OVERLAP.name),
        ("linear CKA ", compare.CKA.name),
        ("subspace distance ", compare.SUBSPACE_DISTANCE.name),
    ):
        if name in scalars:
            s = scalars[name]
            chance = f" (chance: {s.reference_text})" if s.reference_text else ""
            parts += ["; " if parts else "", lead, Quote(name, s.text), chance]
    if not parts:
        return []
    lead = str(parts[1])
    return [lead[0].upper() + lead[1:], *parts[2:], "."]


_QUESTIONS: tuple[tuple[str, str, Callable[[_Sides], list[Part]]], ...] = (
    ("rows", "Are rows damaged?", _rows),
    ("cone", "Do the rows point the same way?", _cone),
    ("spectrum", "Do a few directions hold everything?", _spectrum),
    ("isotropy", "Are all directions alike?", _isotropy),
    ("frequency", "Do rare and popular tokens live apart?", _frequency),
)

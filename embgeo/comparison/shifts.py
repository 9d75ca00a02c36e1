"""How each finding changes from the baseline to another matrix, in words and numbers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from embgeo.comparison.comparison import Comparison
from embgeo.comparison.pair import Change
from embgeo.core.quantities import compare, cosine, frequency, isotropy, spectrum, suspects
from embgeo.core.text import capital
from embgeo.core.values import Quantity
from embgeo.diagnosis import finding
from embgeo.diagnosis.findings import FINDINGS
from embgeo.diagnosis.verdict import judge

#: What is known of a difference, inside a sentence.
SURENESS: dict[Change, str] = {
    "significant": "significant",
    "not significant": "not significant",
    "not judged": "error over tokens unknown",
    "equal": "equal",
    "undefined": "not comparable",
}


@dataclass(frozen=True, slots=True)
class Shift:
    """One question, answered for the baseline and for another matrix."""

    #: Of the finding; "tokens" for numbers of two matrices.
    key: str
    title: str
    #: None for "tokens", which has no state.
    before: finding.Finding | None
    after: finding.Finding | None
    #: The sentence with its numbers.
    parts: tuple[finding.Part, ...]

    @property
    def sentence(self) -> str:
        return finding.join_text(self.parts)


class _Sides:
    """The baseline, a member, and the differences of their numbers."""

    def __init__(self, comparison: Comparison, place: int) -> None:
        self.comparison, self.place = comparison, place
        self.old = comparison.baseline.analysis
        self.new = comparison.members[place].analysis
        self.differences = {d.name: d for d in comparison.differences_of(place)}

    def describe_move(self, quantity: Quantity, share: bool = False) -> list[finding.Part]:
        """Return ``"0.4673 → 0.004687"``, each number linked.

        Empty unless both sides have a number.
        """
        old, new = finding.find_scalar(self.old, quantity), finding.find_scalar(self.new, quantity)
        difference = self.differences.get(quantity.name)
        if old is None or new is None or difference is None or difference.difference is None:
            return []
        write = finding.quote_percent if share else finding.quote
        return [write(old), " → ", write(new)]

    def describe_change(self, *quantities: Quantity) -> str:
        """Describe what is known of these differences, in brackets; may be empty."""
        changes = [
            SURENESS[self.differences[q.name].change] for q in quantities if self.describe_move(q)
        ]
        return f" ({'; '.join(dict.fromkeys(changes))})" if changes else ""


def shifts(comparison: Comparison, place: int) -> tuple[Shift, ...]:
    """Return every question that both analyses answer, and how the neighbors of tokens changed."""
    sides = _Sides(comparison, place)
    old, new = judge(sides.old), judge(sides.new)
    found = [
        Shift(key, _TITLES[key], old.finding(key), new.finding(key), tuple(parts))
        for key, describe in _QUESTIONS.items()
        if (parts := describe(sides))
    ]
    if kept := _tokens(sides):
        found.append(Shift("tokens", "Do tokens keep their neighbors?", None, None, tuple(kept)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class StateRow:
    """One question, and how each of several matrices answers it; None if one does not."""

    title: str
    findings: tuple[finding.Finding | None, ...]


def state_rows(comparison: Comparison, places: Sequence[int]) -> tuple[StateRow, ...]:
    """Return the questions, answered for the members at these places."""
    judged = [judge(comparison.members[place].analysis) for place in places]
    rows = (StateRow(_TITLES[key], tuple(v.finding(key) for v in judged)) for key in _QUESTIONS)
    return tuple(row for row in rows if any(row.findings))


def _join_moves(moves: Iterable[tuple[str, list[finding.Part]]]) -> list[finding.Part]:
    """Return ``Lead 1 → 2; other lead 3 → 4``, without what did not move; empty if nothing did."""
    parts = finding.join_parts("; ", [[lead, *move] for lead, move in moves if move])
    if parts and isinstance(parts[0], str):
        parts[0] = capital(parts[0])
    return parts


def _suspects(sides: _Sides) -> list[finding.Part]:
    """Write how many rows of each serious reason there are, where there are any."""
    parts = _join_moves(
        (f"{quantity.title} ", sides.describe_move(quantity))
        for quantity in suspects.COUNTS.values()
        if any(finding.find_scalar(a, quantity) for a in (sides.old, sides.new))
    )
    return [*parts, "."] if parts else []


def _cone(sides: _Sides) -> list[finding.Part]:
    mean = sides.describe_move(cosine.MEAN)
    if not mean:
        return []
    parts = _join_moves(
        [
            ("Mean cosine ", [*mean, sides.describe_change(cosine.MEAN)]),
            (
                "median angle to the mean direction ",
                sides.describe_move(cosine.CONE_HALF_ANGLE_MEDIAN),
            ),
        ]
    )
    return [*parts, ". Isotropic rows: about 0 and 90°."]


def _spectrum(sides: _Sides) -> list[finding.Part]:
    parts = _join_moves(
        [
            (
                "variance in the top direction ",
                sides.describe_move(spectrum.TOP_SHARE, share=True),
            ),
            ("effective rank ", sides.describe_move(spectrum.EFFECTIVE_RANK)),
        ]
    )
    change = sides.describe_change(spectrum.TOP_SHARE, spectrum.EFFECTIVE_RANK)
    return [*parts, f"{change}."] if parts else []


def _isotropy(sides: _Sides) -> list[finding.Part]:
    move, change = (f(isotropy.I1_UNIT_ROWS) for f in (sides.describe_move, sides.describe_change))
    return ["I1 of unit rows ", *move, f"{change}. Isotropic rows: about 1."] if move else []


def _frequency(sides: _Sides) -> list[finding.Part]:
    parts = _join_moves(
        (lead, [*move, sides.describe_change(quantity)])
        for lead, quantity in (
            ("Probe AUC ", frequency.PROBE_AUC),
            ("rare neighbors of rare tokens ", frequency.NEIGHBOR_RARITY_RARE),
            ("rare neighbors of frequent tokens ", frequency.NEIGHBOR_RARITY_POPULAR),
        )
        if (move := sides.describe_move(quantity))
    )
    return [*parts, "."] if parts else []


def _tokens(sides: _Sides) -> list[finding.Part]:
    pair = sides.comparison.pair(0, sides.place)
    scalars = [
        (lead, pair.scalar(quantity) if pair else None)
        for lead, quantity in (
            ("neighbor overlap (Jaccard) ", compare.NEIGHBOR_OVERLAP),
            ("linear CKA ", compare.CKA),
            ("subspace distance ", compare.SUBSPACE_DISTANCE),
        )
    ]
    parts = _join_moves(
        (
            lead,
            [
                finding.quote(s),
                "" if s.reference is None else f" (chance: {finding.format_short(s.reference)})",
            ],
        )
        for lead, s in scalars
        if s is not None and s.value is not None
    )
    return [*parts, "."] if parts else []


_QUESTIONS: dict[str, Callable[[_Sides], list[finding.Part]]] = {
    "suspects": _suspects,
    "cone": _cone,
    "spectrum": _spectrum,
    "isotropy": _isotropy,
    "frequency": _frequency,
}
_TITLES = {f.QUESTION.key: f.QUESTION.title for f in FINDINGS}

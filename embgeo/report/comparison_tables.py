"""Numbers of several matrices side by side, in the shape that the templates print."""

from __future__ import annotations

from dataclasses import dataclass

from embgeo.charts.specification import spread
from embgeo.charts.training import TITLES
from embgeo.comparison.comparison import Comparison
from embgeo.comparison.pair import Change, Difference
from embgeo.comparison.track import Curve, Track
from embgeo.core.values import Quantity, Scalar, format_number
from embgeo.core.visible import visible
from embgeo.report.tables import HEADLINES, HeadlineText, group_by_family

#: Checkpoints of a track next to the first in one table, at most: the last, and evenly before it.
MOST_CHECKPOINTS = 4
#: Rows of the first screen's table.
MOST_HEADLINES = 10

#: What is known of a difference, in words; the page explains them once.
WORDS: dict[Change, str] = {
    "beyond error": "beyond error",
    "within error": "within error",
    "not judged": "not judged",
    "exact": "exact",
    "equal": "equal",
    "undefined": "not comparable",
}
#: Size of a small curve, in the units of its drawing; a margin keeps its ends inside.
WIDTH, HEIGHT, MARGIN = 120.0, 26.0, 2.0

AGAINST = {"": "", "first": "with the first", "previous": "with the one before"}


@dataclass(frozen=True, slots=True)
class ValueView:
    """One member's number and its difference from the baseline, ready to print.

    Attributes
    ----------
    text : str
        The number with its error, or why there is none.
    difference, error, interval : str
        Empty where there is none.
    word : str
        What is known of the difference.
    change : Change
    arrow : str
        "▲ better" or "▼ worse"; empty where no direction is good in itself.
    why : str
        How error and interval were found, or what keeps the two from being comparable.
    """

    text: str
    undefined: bool
    difference: str
    error: str
    interval: str
    word: str
    change: Change
    arrow: str
    why: str


@dataclass(frozen=True, slots=True)
class RowView:
    """A number in every shown matrix, the baseline first."""

    quantity: Quantity
    baseline: str
    undefined: bool
    others: tuple[ValueView, ...]


def choose_places(comparison: Comparison) -> list[int]:
    """Places next to the baseline that a table has columns for: all, of a track some."""
    n = len(comparison.others)
    if comparison.track is None:
        return list(range(1, n + 1))
    # The last of a run matters most: counted from the end, so that it is among them.
    return [i + 1 for i in spread(n, MOST_CHECKPOINTS)]


def number_rows(comparison: Comparison, places: list[int]) -> list[RowView]:
    """Every scalar of the analyses, in the order of the differences."""
    found: dict[str, dict[int, Difference]] = {}
    for d in comparison.differences:
        found.setdefault(d.name, {})[d.member] = d
    rows = []
    for name, by_member in found.items():
        first = next(iter(by_member.values()))
        scalar = comparison.baseline.analysis.scalar(name)
        text = _text(scalar, first.baseline, first.quantity)
        others = tuple(_value(comparison, by_member.get(place), place, name) for place in places)
        missing = scalar is None or scalar.value is None
        rows.append(RowView(first.quantity, text, missing, others))
    return rows


def _value(
    comparison: Comparison, difference: Difference | None, place: int, name: str
) -> ValueView:
    scalar = comparison.members[place].analysis.scalar(name)
    missing = scalar is None or scalar.value is None
    if difference is None:
        text = _text(scalar, None, None)
        return ValueView(text, missing, "", "", "", WORDS["undefined"], "undefined", "", "")
    interval = ""
    if difference.interval is not None:
        low, high = (signed(v) for v in difference.interval)
        interval = f"{low} … {high}"
    error = ""
    if difference.standard_error is not None:
        error = f"± {format_number(difference.standard_error, 2)}"
    arrows = {"better": "▲ better", "worse": "▼ worse", None: ""}
    why = "; ".join(p for p in (difference.undefined, difference.note, difference.error_note) if p)
    return ValueView(
        _text(scalar, difference.value, difference.quantity),
        missing,
        _step(difference),
        error,
        interval,
        WORDS[difference.change],
        difference.change,
        arrows[difference.direction],
        why,
    )


def _step(difference: Difference) -> str:
    if difference.difference is None:
        return ""
    if difference.change == "equal" and difference.difference:
        return "≈ 0"
    return _with(signed(difference.difference), difference.quantity.unit)


def _text(scalar: Scalar | None, value: float | None, quantity: Quantity | None) -> str:
    if scalar is not None:
        return scalar.text
    if value is None or quantity is None:
        return "not measured"
    return _with(format_number(value), quantity.unit)


def _with(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


def signed(value: float) -> str:
    """With its sign, also where it is positive; 0 only if exact."""
    return f"+{format_number(value)}" if value > 0 else format_number(value)


def headline_rows(rows: list[RowView]) -> list[tuple[HeadlineText, RowView]]:
    """The rows of the first screen, in the order of importance."""
    by_name = {row.quantity.name: row for row in rows}
    found = [(r, by_name[r.name]) for r in HEADLINES if r.name in by_name]
    return found[:MOST_HEADLINES]


def families(rows: list[RowView]) -> list[tuple[str, list[RowView]]]:
    """Rows by the family of their quantity."""
    return group_by_family(rows, lambda row: row.quantity.family)


@dataclass(frozen=True, slots=True)
class PairCell:
    """A number of two matrices, or why there is none, and the level of chance."""

    text: str
    chance: str
    undefined: bool


@dataclass(frozen=True, slots=True)
class PairRow:
    """A number of two matrices for each shown member against the baseline."""

    quantity: Quantity
    cells: tuple[PairCell, ...]
    taken: str


def pair_rows(comparison: Comparison, places: list[int]) -> list[PairRow]:
    """Every number that takes two matrices, for these members, and how it was taken."""
    pairs = [comparison.pair(0, place) for place in places]
    quantities = {s.name: s.quantity for pair in pairs if pair for s in pair.scalars}
    rows = []
    for quantity in quantities.values():
        scalars = [pair.scalar(quantity) if pair else None for pair in pairs]
        cells = tuple(
            PairCell("–", "", True)
            if s is None
            else PairCell(s.text, s.reference_text, s.value is None)
            for s in scalars
        )
        said = (p for s in scalars if s is not None for p in (s.sample, s.convention) if p)
        rows.append(PairRow(quantity, cells, "; ".join(dict.fromkeys(said))))
    return rows


@dataclass(frozen=True, slots=True)
class MatchView:
    """How the rows of a member were matched with those of the baseline."""

    name: str
    shared: str
    how: str
    left_out: tuple[str, ...]


def matches(comparison: Comparison) -> list[MatchView]:
    """One line for each member that was compared with the baseline."""
    out = []
    for place in range(1, len(comparison.members)):
        pair = comparison.pair(0, place)
        if pair is None:
            continue
        m = pair.matching
        how = {"token": "by token", "row": "by row number", None: "not matched"}[m.by]
        names = (comparison.baseline.name, comparison.members[place].name)
        left_out = []
        for name, side in zip(names, m.left_out, strict=True):
            for count, what, examples in (
                (side.missing, "only there", side.examples),
                (side.ambiguous, "in several rows", side.ambiguous_examples),
            ):
                if count:
                    some = f" ({', '.join(map(visible, examples))})" if examples else ""
                    left_out.append(f"{visible(name)}: {count:,} {what}{some}")
        reason = f"{how}: {m.reason}" if m.reason else how
        out.append(MatchView(names[1], f"{m.shared:,}", reason, tuple(left_out)))
    return out


@dataclass(frozen=True, slots=True)
class CurveView:
    """One number over the run, ready to print.

    Attributes
    ----------
    quantity : Quantity
    against : str
        With which other member it is taken; empty for a number of each matrix alone.
    lines : tuple of str
        ``points`` of polylines, one for each stretch without a gap.
    bend_x : str
        Where the bend lies on the small curve; empty if there is none.
    first, last : str
    bend : str
        The step, or why there is none.
    """

    quantity: Quantity
    against: str
    lines: tuple[str, ...]
    bend_x: str
    first: str
    last: str
    bend: str


def curve_families(comparison: Comparison) -> list[tuple[str, list[CurveView]]]:
    """All curves by family; empty for a comparison that is not a track."""
    track = comparison.track
    if track is None:
        return []
    views = [curve_view(track, curve) for curve in track.curves]
    return group_by_family(views, lambda view: view.quantity.family)


def curve_view(track: Track, curve: Curve) -> CurveView:
    steps = tuple(track.steps[i] for i in track.distinct)
    drawn = tuple(curve.values[i] for i in track.distinct)
    known = [v for v in drawn if v is not None]
    first, last = (format_number(known[0]), format_number(known[-1])) if known else ("–", "–")
    bend = curve.bend
    return CurveView(
        curve.quantity,
        AGAINST[curve.against],
        small_curve(steps, drawn),
        "" if bend is None else _digits(_across(steps, bend.step)),
        first,
        last,
        curve.no_bend if bend is None else f"step {bend.step:,.10g}",
    )


def small_curve(steps: tuple[float, ...], values: tuple[float | None, ...]) -> tuple[str, ...]:
    """Polylines through the values that there are, the largest at the top; a lone one is a dash."""
    known = [v for v in values if v is not None]
    if not known:
        return ()
    low, high = min(known), max(known)
    stretches: list[list[tuple[float, float]]] = [[]]
    for step, value in zip(steps, values, strict=True):
        if value is None:
            stretches.append([])
            continue
        share = (value - low) / (high - low) if high > low else 0.5
        y = HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN)
        stretches[-1].append((_across(steps, step), y))
    return tuple(_points(stretch) for stretch in stretches if stretch)


def _across(steps: tuple[float, ...], step: float) -> float:
    span = steps[-1] - steps[0]
    share = (step - steps[0]) / span if span > 0 else 0.5
    return MARGIN + share * (WIDTH - 2 * MARGIN)


def _points(stretch: list[tuple[float, float]]) -> str:
    if len(stretch) == 1:
        (x, y) = stretch[0]
        stretch = [(x - 1.0, y), (x + 1.0, y)]
    return " ".join(f"{_digits(x)},{_digits(y)}" for x, y in stretch)


def _digits(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def main_curves(track: Track) -> list[tuple[Curve, str]]:
    """The curves that the page draws large, with their titles."""
    by_name = {
        f"{curve.quantity.name}.{curve.against}".rstrip("."): curve for curve in track.curves
    }
    return [
        (by_name[name], title)
        for name, title in TITLES.items()
        if name in by_name and sum(v is not None for v in by_name[name].values) > 1
    ]


def list_bends(track: Track) -> list[dict[str, str]]:
    """Of the curves that the page draws large, those that bend."""
    return [
        {"name": curve.quantity.name, "title": title, "step": f"{curve.bend.step:,.10g}"}
        for curve, title in main_curves(track)
        if curve.bend is not None
    ]


def explain_no_bend(track: Track) -> str:
    """Why none of those curves bends, where all have the same reason."""
    reasons = {curve.no_bend for curve, _ in main_curves(track) if curve.no_bend}
    return reasons.pop() if len(reasons) == 1 else ""

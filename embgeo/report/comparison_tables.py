"""Tables of a comparison as the templates print them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from embgeo.charts.specification import spread
from embgeo.charts.training import TITLES
from embgeo.comparison.comparison import Comparison
from embgeo.comparison.pair import Difference
from embgeo.comparison.sentences import has_error
from embgeo.comparison.track import Track
from embgeo.core.numbers import format_optional
from embgeo.core.text import visible
from embgeo.core.values import Quantity, Scalar
from embgeo.report.tables import HEADLINES, group_by_family

#: Checkpoints of a track in one table next to the first, at most; the last is among them.
MOST_CHECKPOINTS = 4
#: Rows of the first screen's table.
MOST_HEADLINES = 10

#: Size of a small curve, in the units of its drawing; a margin keeps its ends inside.
WIDTH, HEIGHT, MARGIN = 120.0, 26.0, 2.0

AGAINST = {"": "", "first": "with the first", "previous": "with the one before"}


@dataclass(frozen=True, slots=True)
class NumberRow:
    """A number of every shown matrix, the baseline first, and the differences of the others."""

    quantity: Quantity
    baseline: Scalar | None
    others: tuple[tuple[Scalar | None, Difference], ...]


def choose_places(comparison: Comparison) -> list[int]:
    """Choose places of the members that have columns: all but the baseline, some of a track."""
    n = len(comparison.others)
    if comparison.track is None:
        return list(range(1, n + 1))
    # The last of a run matters most: counted from the end, so that it is among them.
    return [i + 1 for i in spread(n, MOST_CHECKPOINTS)]


def number_rows(comparison: Comparison, places: list[int]) -> list[NumberRow]:
    """Return every scalar of the analyses, in the order of the differences."""
    differences = {(d.name, d.member): d for d in comparison.differences}
    rows = []
    for quantity in {d.name: d.quantity for d in comparison.differences}.values():
        baseline, *others = (
            comparison.members[place].analysis.find_scalar(quantity.name) for place in (0, *places)
        )
        known = [
            differences.get((quantity.name, place))
            or Difference(quantity, place, None, None, None, change="undefined")
            for place in places
        ]
        rows.append(NumberRow(quantity, baseline, tuple(zip(others, known, strict=True))))
    return rows


def headline_rows(rows: list[NumberRow]) -> list[tuple[Quantity, str, NumberRow]]:
    """Return the rows of the first screen: those with errors first, then by importance."""
    by_name = {row.quantity.name: row for row in rows}
    found = [(q, text, by_name[q.name]) for q, text in HEADLINES if q.name in by_name]
    found.sort(key=lambda one: any(has_error(d) for _, d in one[2].others), reverse=True)
    return found[:MOST_HEADLINES]


@dataclass(frozen=True, slots=True)
class PairRow:
    """A number of two matrices, for each shown member with the baseline, and how it was taken."""

    quantity: Quantity
    scalars: tuple[Scalar | None, ...]
    taken: str


def pair_rows(comparison: Comparison, places: list[int]) -> list[PairRow]:
    """Return every number that takes two matrices, for these members."""
    pairs = [comparison.pair(0, place) for place in places]
    quantities = {s.name: s.quantity for pair in pairs if pair for s in pair.scalars}
    rows = []
    for quantity in quantities.values():
        scalars = tuple(pair.scalar(quantity) if pair else None for pair in pairs)
        known = [s for s in scalars if s is not None]
        taken = filter(None, (text for s in known for text in (s.sample, s.convention)))
        rows.append(PairRow(quantity, scalars, "; ".join(dict.fromkeys(taken))))
    return rows


def matches(comparison: Comparison) -> list[dict[str, Any]]:
    """Describe how the rows of each member were matched with those of the baseline."""
    found = []
    for place, member in enumerate(comparison.members):
        pair = comparison.pair(0, place)
        if pair is None:
            continue
        matching = pair.matching
        left_out = [
            f"{visible(name)}: {count:,} {what}{f' ({examples})' if examples else ''}"
            for name, side in zip(
                (comparison.baseline.name, member.name), matching.left_out, strict=True
            )
            for count, what, examples in (
                (side.missing, "only there", list_examples(side.examples)),
                (side.ambiguous, "in several rows", list_examples(side.ambiguous_examples)),
            )
            if count
        ]
        how = {"token": "by token", "row": "by row number", None: "not matched"}[matching.by]
        found.append(
            {
                "name": member.name,
                "shared": f"{matching.shared:,}",
                "how": f"{how}: {matching.reason}" if matching.reason else how,
                "left_out": left_out,
            }
        )
    return found


def list_examples(tokens: Iterable[str]) -> str:
    return ", ".join(map(visible, tokens))


def curve_families(track: Track) -> list[tuple[str, list[dict[str, Any]]]]:
    """List the numbers over a run by family.

    `lines` are the ``points`` of polylines, one for each stretch without a gap. `bend` is a step,
    or why there is none; then `bend_x`, its place on the small curve, is empty.
    """
    steps = tuple(track.steps[i] for i in track.distinct)
    views: list[dict[str, Any]] = []
    for curve in track.curves:
        drawn = tuple(curve.values[i] for i in track.distinct)
        known = [v for v in drawn if v is not None]
        bend = curve.change_point
        views.append(
            {
                "quantity": curve.quantity,
                "against": AGAINST[curve.against],
                "lines": small_curve(steps, drawn),
                "bend_x": "" if bend is None else _digits(_across(steps, bend.step)),
                "first": format_optional(next(iter(known), None)),
                "last": format_optional(known[-1] if known else None),
                "bend": curve.no_change_point if bend is None else f"step {bend.step:,.10g}",
            }
        )
    return group_by_family(views, lambda view: view["quantity"].family)


def small_curve(steps: tuple[float, ...], values: tuple[float | None, ...]) -> tuple[str, ...]:
    """Draw polylines through the known values, the largest at the top; a lone value is a dash."""
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


def list_bends(track: Track) -> list[dict[str, str]]:
    """List the curves that the page draws large, and that bend."""
    by_name = {f"{c.quantity.name}.{c.against}".rstrip("."): c for c in track.curves}
    return [
        {"name": by_name[name].quantity.name, "title": title, "step": f"{bend.step:,.10g}"}
        for name, title in TITLES.items()
        if name in by_name and (bend := by_name[name].change_point) is not None
    ]

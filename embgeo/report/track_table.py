"""Every number of a run over its steps: a small curve, both ends, and where it bends."""

from __future__ import annotations

from dataclasses import dataclass

from embgeo.charts.training import TITLES
from embgeo.comparison.comparison import Comparison
from embgeo.comparison.track import Curve, Track
from embgeo.core.values import Quantity, format_number
from embgeo.report.tables import group_by_family

#: Size of a small curve, in the units of its drawing; a margin keeps its ends inside.
WIDTH, HEIGHT, MARGIN = 120.0, 26.0, 2.0

AGAINST = {"": "", "first": "with the first", "previous": "with the one before"}


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
    known = [v for v in curve.values if v is not None]
    first, last = (format_number(known[0]), format_number(known[-1])) if known else ("–", "–")
    bend = curve.bend
    return CurveView(
        curve.quantity,
        AGAINST[curve.against],
        small_curve(track.steps, curve.values),
        "" if bend is None else _digits(_across(track.steps, bend.step)),
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

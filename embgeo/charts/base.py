"""What a figure is: a name, a caption, and a function from an analysis to a drawing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from embgeo.core.values import Histogram, Points, Series, Table
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a report.

    Attributes
    ----------
    name : str
        Unique; the prefix of every id inside its SVG.
    caption : str
        What is seen, for a reader who does not know the papers.
    alternative : str
        What a person who cannot see the figure is told.
    draw : callable
        From an analysis to a matplotlib figure, or None where the analysis lacks the values.
    """

    name: str
    caption: str
    alternative: str
    draw: Callable[[Analysis], Drawing | None]


def series(analysis: Analysis, name: str) -> Series | None:
    """The series of that name, or None."""
    return next((s for s in analysis.series if s.name == name and len(s.x) and s.y), None)


def singular_values(analysis: Analysis, name: str) -> Series | None:
    """The series of that name up to the numerical rank: what lies beyond is rounding error."""
    curve, rank = series(analysis, name), analysis.scalar("spectrum.numerical_rank")
    if curve is None or rank is None or not rank.value:
        return curve
    kept = int(rank.value)
    return replace(curve, x=curve.x[:kept], y={label: y[:kept] for label, y in curve.y.items()})


def histogram(analysis: Analysis, name: str) -> Histogram | None:
    """The histogram of that name, or None."""
    return next((h for h in analysis.histograms if h.name == name and len(h.counts)), None)


def points(analysis: Analysis, name: str) -> Points | None:
    """The projection of that name, or None."""
    return next((p for p in analysis.points if p.name == name and len(p.xy)), None)


def table(analysis: Analysis, name: str) -> Table | None:
    """The table of that name, or None."""
    return next((t for t in analysis.tables if t.name == name and t.rows), None)

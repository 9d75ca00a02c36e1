"""Numbers over the steps of a run, with the step where each bent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import style
from embgeo.charts.compared.base import ComparedFigure
from embgeo.comparison.comparison import Comparison, Curve, Track

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

#: What is drawn, in this order: name, what it is taken against, and a short title.
CHOSEN: tuple[tuple[str, str, str], ...] = (
    ("cosine.mean", "", "mean cosine"),
    ("spectrum.effective_rank", "", "effective rank"),
    ("spectrum.top_share", "", "energy of direction 1"),
    ("isotropy.i1", "", "I1, as stored"),
    ("isotropy.i1_unit", "", "I1, mean norm 1"),
    ("isotropy.isoscore", "", "IsoScore"),
    ("frequency.probe_auc", "", "rare/popular probe, AUC"),
    ("frequency.norm_ratio", "", "norm, popular : rare"),
    ("compare.neighbor_overlap", "first", "neighbor overlap with the first"),
    ("compare.neighbor_overlap", "previous", "neighbor overlap with the one before"),
    ("compare.subspace_distance", "first", "subspace distance from the first"),
    ("compare.cka", "first", "linear CKA with the first"),
)
COLUMNS = 3


def draw(comparison: Comparison) -> Drawing | None:
    if comparison.track is None:
        return None
    shown = chosen(comparison.track)
    if not shown:
        return None
    lines = -(-len(shown) // COLUMNS)
    drawing, grid = style.axes(10.2, 2.3 * lines, COLUMNS, lines)
    for ax, (curve, title) in zip(grid, shown, strict=False):
        draw_curve(ax, comparison.track.steps, curve, title)
    for ax in grid[len(shown) :]:
        ax.set_axis_off()
    for ax in grid[max(0, len(shown) - COLUMNS) : len(shown)]:
        ax.set_xlabel("step")
    return drawing


def chosen(track: Track) -> list[tuple[Curve, str]]:
    """The curves of `CHOSEN` that have two points at least, with their titles."""
    held: dict[tuple[str, str], Curve] = {(c.quantity.name, c.against): c for c in track.curves}
    found = ((held.get((name, against)), title) for name, against, title in CHOSEN)
    return [
        (curve, title)
        for curve, title in found
        if curve is not None and sum(v is not None for v in curve.values) > 1
    ]


def draw_curve(ax: Axes, steps: tuple[float, ...], curve: Curve, title: str) -> None:
    """One curve with bars of two standard errors, and a dashed line where it bends."""
    x = np.asarray(steps)
    y = np.array([np.nan if v is None else v for v in curve.values])
    error = np.array([0.0 if e is None else 2.0 * e for e in curve.standard_errors])
    if np.any(error > 0):
        ax.vlines(x, y - error, y + error, color=style.BLUE, lw=1.0)
    ax.plot(x, y, color=style.BLUE, lw=1.6, marker="o" if len(x) <= 40 else None, ms=3.5)
    if curve.bend is not None:
        ax.axvline(curve.bend.step, color=style.ORANGE, lw=1.2, ls=(0, (4, 3)))
        title = f"{title} · bend at {curve.bend.step:,.10g}"
    ax.set_title(title, fontsize=8.5, color=style.INK)
    ax.margins(y=0.15)
    ax.xaxis.set_major_formatter(lambda value, _position: f"{value:,.10g}")
    ax.locator_params(axis="x", nbins=4)


FIGURE = ComparedFigure(
    "training",
    "Numbers over training; bars are two standard errors where a number was sampled. The dashed "
    "line marks the step at which two straight lines fit the curve best, where they fit it "
    "clearly better than one.",
    "Small line charts of the main numbers over training steps",
    draw,
)

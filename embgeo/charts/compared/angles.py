"""Principal angles between the column spaces of the baseline and of every other matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.compared.base import ComparedFigure, legend_of, looks
from embgeo.comparison.comparison import Comparison
from embgeo.core.values import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

NAME = "compare.principal_angles"


def draw(comparison: Comparison) -> Drawing | None:
    curves = [
        (look, curve)
        for look in looks(comparison)
        if (curve := angles(comparison, look.place)) is not None
    ]
    if not curves:
        return None
    drawing, (ax,) = style.axes()
    for look, curve in curves:
        # One curve a pair, whatever its label.
        y = next(iter(curve.y.values()))
        few = "." if len(y) <= 80 else None
        dash = look.dash if len(curves) > 1 else "-"
        ax.plot(curve.x, y, color=look.color, ls=dash, lw=1.6, marker=few, ms=4)
    ax.set_ylim(0, 90)
    ax.set_yticks(range(0, 91, 15))
    ax.set_xlabel(curves[0][1].x_label)
    ax.set_ylabel(style.subscripts(curves[0][1].y_label))
    if len(curves) > 1:
        legend_of(ax, tuple(look for look, _ in curves))
    return drawing


def angles(comparison: Comparison, place: int) -> Series | None:
    """The angles between the baseline and the member at `place`, or None."""
    pair = comparison.pair(0, place)
    found = next((s for s in pair.series if s.name == NAME), None) if pair else None
    return found if found is not None and len(found.x) and found.y else None


FIGURE = ComparedFigure(
    "angles",
    "Principal angles between the spaces that the columns of the baseline and of the other matrix "
    "span over their shared tokens, smallest first: 0° where they share a direction, 90° where "
    "they do not. A rotation of the rows changes none of them.",
    "Line chart of the principal angles between the baseline and every other matrix",
    draw,
)

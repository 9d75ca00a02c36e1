"""The spectrum with the two fitted priors of spectrum control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.base import Figure, singular_values
from embgeo.charts.curves import draw_curves
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    curve = singular_values(analysis, "spectrum.decay_fit")
    if curve is None:
        return None
    drawing, (ax,) = style.axes()
    draw_curves(ax, curve)
    return drawing


FIGURE = Figure(
    "decay",
    "The singular values and the two laws of decay that spectrum control uses as priors, fitted by "
    "least squares; the table says which fits better.",
    "Line chart of the singular values with two fitted curves",
    draw,
)

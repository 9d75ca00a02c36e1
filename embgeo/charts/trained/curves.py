"""Loss, perplexity and geometry over the steps of training, a line a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.charts import style
from embgeo.charts.trained.base import TrainedFigure, band, looks
from embgeo.training.study.training import Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

#: What is drawn, in this order, with short titles.
CHOSEN: tuple[tuple[str, str], ...] = (
    ("valid.perplexity", "validation perplexity"),
    ("train.loss", "training loss"),
    ("cosine.mean", "mean cosine"),
    ("isotropy.i1", "I1, as stored"),
    ("isotropy.i1_unit", "I1, mean norm 1"),
    ("isotropy.i2", "I2, as stored"),
    ("spectrum.effective_rank", "effective rank"),
    ("frequency.probe_auc", "rare/popular probe, AUC"),
    ("subspace.distance", "input to output space"),
)
COLUMNS = 3
#: Entries of a legend beside each other, and the height of a line of them in inches.
ACROSS, LINE = 9, 0.2
#: Numbers that span more than this may be drawn on a logarithmic axis.
WIDE = 30.0


def chosen(training: Training) -> list[tuple[str, str]]:
    """Those of `CHOSEN` of which some run has two points."""
    return [
        (name, title)
        for name, title in CHOSEN
        if any(len(r.curves[name].steps) > 1 for r in training.runs if name in r.curves)
    ]


def is_log(training: Training, name: str) -> bool:
    """Whether an axis is better logarithmic: perplexities may fall from the size of the vocabulary.

    Within less than this an axis of powers of ten would have one label.
    """
    if not name.endswith(".perplexity"):
        return False
    values = [v for run in training.runs if name in run.curves for v in run.curves[name].values]
    return min(values) > 0.0 and max(values) > WIDE * min(values)


def draw(training: Training) -> Drawing | None:
    shown = chosen(training)
    if not shown:
        return None
    lines = -(-len(shown) // COLUMNS)
    drawing, grid = style.axes(10.2, 2.5 * lines + 0.4, COLUMNS, lines)
    for ax, (name, title) in zip(grid, shown, strict=False):
        panel(ax, training, name, title)
    for ax in grid[len(shown) :]:
        ax.set_axis_off()
    for ax in grid[max(0, len(shown) - COLUMNS) : len(shown)]:
        ax.set_xlabel("step")
    legend(drawing, training)
    return drawing


def panel(ax: Axes, training: Training, name: str, title: str) -> None:
    """One number of all methods; a band from the lowest to the highest seed."""
    values = []
    for look in looks(training):
        found = band(training.runs_of(look.method), name)
        if found is None:
            continue
        values.append(found.mean)
        if len(training.runs_of(look.method)) > 1:
            ax.fill_between(found.steps, found.low, found.high, color=look.color, alpha=0.15, lw=0)
        few = len(found.steps) <= 30
        ax.plot(
            found.steps,
            found.mean,
            color=look.color,
            linestyle=look.dash,
            linewidth=1.5,
            marker=look.marker if few else None,
            markersize=3,
        )
    if values and is_log(training, name):
        style.log_axis(ax.yaxis, np.concatenate(values))
    ax.set_title(title, fontsize=8.5, color=style.INK)
    ax.xaxis.set_major_formatter(lambda value, _position: f"{value:,.10g}")
    ax.locator_params(axis="x", nbins=4)


def legend(drawing: Drawing, training: Training) -> None:
    """One entry a method, in room of its own below all panels."""
    from matplotlib.lines import Line2D

    drawn = looks(training)
    handles = [
        Line2D([], [], color=k.color, ls=k.dash, marker=k.marker, ms=3.5, lw=1.5) for k in drawn
    ]
    lines = -(-len(drawn) // ACROSS)
    room = (0.1 + LINE * lines) / float(drawing.get_size_inches()[1])
    engine: Any = drawing.get_layout_engine()
    engine.set(rect=(0.0, room, 1.0, 1.0 - room))
    drawing.legend(
        handles,
        [look.label for look in drawn],
        loc="lower center",
        ncols=-(-len(drawn) // lines),
        frameon=False,
        fontsize=8.5,
        labelcolor=style.INK,
    )


FIGURE = TrainedFigure(
    "trained-curves",
    "Numbers over the steps of training, a line a method. With several seeds the line is their "
    "mean and the band reaches from the lowest to the highest.",
    "Small line charts of perplexity, loss and geometry over training steps, a line a method",
    draw,
)

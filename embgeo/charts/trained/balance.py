"""Perplexity against geometry: whether a cure of the one helps the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.trained.base import TrainedFigure, looks
from embgeo.charts.trained.curves import legend
from embgeo.training.study.deciding import perplexity_name
from embgeo.training.study.spread import spread
from embgeo.training.study.training import Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CHOSEN = (
    ("cosine.mean", "mean cosine"),
    ("isotropy.i1_unit", "I1, mean norm 1"),
    ("frequency.probe_auc", "rare/popular probe, AUC"),
)


def draw(training: Training) -> Drawing | None:
    across = perplexity_name(training.runs)
    held = {name for run in training.runs for name in run.numbers}
    shown = [(name, title) for name, title in CHOSEN if name in held]
    if across not in held or not shown or len(training.methods) < 2:
        return None
    drawing, grid = style.axes(10.2, 3.6, len(shown))
    split = "test" if across.startswith("test") else "validation"
    for ax, (name, title) in zip(grid, shown, strict=True):
        panel(ax, training, across, name)
        ax.set_xlabel(f"{split} perplexity")
        ax.set_title(title, fontsize=8.5, color=style.INK)
        ax.locator_params(axis="x", nbins=5)
    legend(drawing, training)
    return drawing


def panel(ax: Axes, training: Training, across: str, name: str) -> None:
    """A mark a method at the means over seeds, a small one for each seed."""
    for look in looks(training):
        x, y = training.values(look.method, across), training.values(look.method, name)
        seeds = sorted(x.keys() & y.keys())
        middle = spread([x[s] for s in seeds]), spread([y[s] for s in seeds])
        if middle[0] is None or middle[1] is None:
            continue
        if len(seeds) > 1:
            ax.plot([x[s] for s in seeds], [y[s] for s in seeds], ls="", marker=".", ms=4,
                    color=look.color, alpha=0.7)  # fmt: skip
        ax.plot(middle[0].mean, middle[1].mean, ls="", marker=look.marker, ms=7,
                color=look.color)  # fmt: skip
    ax.margins(0.12)


FIGURE = TrainedFigure(
    "trained-balance",
    "Each method by its perplexity (to the left is better) and its geometry. With several seeds "
    "the large mark is their mean, the dots are the seeds.",
    "Scatter of methods: perplexity across, geometry upwards",
    draw,
)

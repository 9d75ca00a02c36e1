"""What figures of methods share: how each method looks, and its numbers over seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.charts import style
from embgeo.charts.compared.base import COLORS
from embgeo.core.arrays import FloatArray
from embgeo.core.visible import drawable
from embgeo.training.study.training import Run, Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True, slots=True)
class TrainedFigure:
    """One figure of methods; the fields are those of :class:`embgeo.charts.base.Figure`."""

    name: str
    caption: str
    alternative: str
    draw: Callable[[Training], Drawing | None]


@dataclass(frozen=True, slots=True)
class Look:
    """A method as it is drawn.

    Attributes
    ----------
    method, label : str
    color, dash, marker
        For matplotlib.
    shade : int
        Index of the color in `COLORS`.
    turn : int
        Index of the dash.
    """

    method: str
    label: str
    color: str
    dash: Any
    marker: str
    shade: int
    turn: int


def looks(training: Training) -> tuple[Look, ...]:
    """Every method, in the colors that its embedding has among the others."""
    out = []
    for i, method in enumerate(training.methods):
        shade, turn = i % len(COLORS), i % len(style.DASHES)
        out.append(
            Look(
                method.name,
                drawable(method.name),
                COLORS[shade],
                style.DASHES[turn],
                MARKERS[shade],
                shade,
                turn,
            )
        )
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Band:
    """A curve over seeds: mean, lowest and highest at the steps that all of them have."""

    steps: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def band(runs: tuple[Run, ...], name: str) -> Band | None:
    """None where no run has the curve, or no two steps are common to those that have."""
    found = [run.curves[name] for run in runs if name in run.curves]
    if not found:
        return None
    common = set(found[0].steps).intersection(*(curve.steps for curve in found))
    if not common:
        return None
    steps = sorted(common)
    table = np.array(
        [[dict(zip(c.steps, c.values, strict=True))[step] for step in steps] for c in found]
    )
    return Band(np.array(steps), table.mean(axis=0), table.min(axis=0), table.max(axis=0))

"""Layouts that keep their ticks, and ticks of logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.core.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def settle(figure: Figure, axes: Sequence[Axes]) -> None:
    """Lay the figure out, and keep the places of its panels and their ticks.

    Matplotlib would do both anew for each file, and find other ticks than it made room for.
    """
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)
    figure.set_layout_engine("none")
    keep_ticks(axes)


def keep_ticks(axes: Sequence[Axes]) -> None:
    """Keep the ticks that each panel shows now, whatever becomes of its size and limits."""
    from matplotlib.ticker import FixedLocator

    for ax in axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            rim = 1e-9 * (high - low)  # a tick at an end is rounded
            ticks = [at for at in axis.get_majorticklocs() if low - rim <= at <= high + rim]
            axis.set_major_locator(FixedLocator(ticks))


def set_log_ticks(axis: Any, values: FloatArray, write_power: Callable[[str, int], str]) -> None:
    """Make an axis logarithmic, with ticks at decades; within a decade and a half also at 2 and 5.

    Minor ticks of many decades would merge. ``decades`` in ``static/charts.js`` has the same rule.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    positive = values[np.isfinite(values) & (values > 0)]
    span = math.log10(positive.max()) - math.log10(positive.min()) if len(positive) else 0.0
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    subs = (1.0, 2.0, 5.0) if span < 1.5 else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _position: write_tick(value, write_power)))
    axis.set_minor_locator(NullLocator())


def write_tick(value: float, write_power: Callable[[str, int], str]) -> str:
    """Write a label of a logarithmic axis: 0.001 to 1000 as numbers, others as powers of ten."""
    if 1e-3 <= value < 1e4:
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return write_power(mantissa, int(exponent))


def shorten(value: float) -> str:
    """Write 5,000 in full and 40000 as 40k: steps and counts are large, and panels are narrow."""
    return f"{value:,.10g}" if abs(value) < 10_000 else f"{value / 1000:,.10g}k"

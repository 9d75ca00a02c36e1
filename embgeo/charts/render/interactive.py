"""Charts as data for the line charts of a page: plain lists, few digits."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from embgeo.charts import theme
from embgeo.charts.render.drawing import is_guide
from embgeo.charts.render.svg import write_label
from embgeo.charts.specification import (
    HistogramSteps,
    Line,
    Panel,
    Specification,
    step_values,
)
from embgeo.core.arrays import FloatArray
from embgeo.core.text import drawable

#: Forms of lines that have readings.
DRAWN = ("line", "hollow")
#: The place of dots among the dashes in ``static/charts.js``.
DOTTED = 2


def render_interactive(spec: Specification) -> dict[str, dict[str, Any]]:
    """Return what ``static/charts.js`` draws: an entry for each panel of lines, by `chart_key`."""
    return {
        chart_key(spec, panel): describe(panel) for panel in spec.panels if is_interactive(panel)
    }


def chart_key(spec: Specification, panel: Panel) -> str:
    """Return the name of a panel on a page."""
    return f"{spec.name}.{panel.key}" if panel.key else spec.name


def is_interactive(panel: Panel) -> bool:
    """Tell whether a panel has lines to read values from; for marks alone a figure is as good."""
    return any(not isinstance(line, Line) or line.form == "line" for line in panel.lines)


def describe(panel: Panel) -> dict[str, Any]:
    """Write one panel: the x of all lines, and the values of each line there."""
    steps = [line for line in panel.lines if isinstance(line, HistogramSteps)]
    curves = [line for line in panel.lines if isinstance(line, Line)]
    guides = [line for line in curves if is_guide(line)]
    # The isotropic curves of several matrices coincide.
    lines = [line for line in curves if line.form in DRAWN] + guides[:1]
    x = np.unique(np.concatenate([*(s.edges for s in steps), *(line.x for line in lines)]))
    marks = [
        [guide.value, guide.label, guide.listed]
        for guide in panel.guides
        if guide.label and guide.axis == "x"
    ]
    limits, heights = [panel.x.low, panel.x.high], [panel.y.low, panel.y.high]
    described = [
        *(describe_line(s, steps, panel, step_values(s, x)) for s in steps),
        *(describe_line(line, lines, panel, spread_values(line, x)) for line in lines),
    ]
    return {
        "kind": "steps" if steps else "line",
        "x": plain(x),
        "lines": described,
        "labels": [write_label(panel.x.label), write_label(panel.y.label)],
        "log": [panel.x.log, panel.y.log],
        "range": None if None in limits else limits,
        "shows": panel.y.shows,
        "mark": marks[0] if marks else None,
        # The density of isotropic rows falls by many decades, below what is measured.
        **({"heights": heights} if panel.y.log and None not in heights else {}),
    }


def describe_line(
    line: Line | HistogramSteps,
    among: Sequence[Line | HistogramSteps],
    panel: Panel,
    values: FloatArray,
) -> dict[str, Any]:
    """Name, color, dashes and values; a single line needs no dashes.

    Of several lines of a member the first one names it.
    """
    lines = sum(not is_guide(other) for other in among)
    first = next(other for other in among if other.member == line.member)
    names = [drawable(line.member)] if line.member and (line is first or not line.part) else []
    names += [write_label(line.part)] if line.part else []
    names += ["same matrix as before"] if is_hollow(line) else []
    guide = is_guide(line)
    scale = theme.LINES if line.style.scale == "line" else theme.AGES
    return {
        "label": ", ".join(names) or write_label(panel.y.label or panel.title),
        "color": "--guide" if guide else f"--{line.style.scale}-{line.style.index % len(scale)}",
        "dash": DOTTED if guide else theme.dash_index(line.style) if lines > 1 else 0,
        "hollow": is_hollow(line),
        "fill": lines == 1 and isinstance(line, HistogramSteps) and not guide,
        "y": plain(values, positive=panel.y.log),
        **describe_error(line, values),
    }


def describe_error(line: Line | HistogramSteps, values: FloatArray) -> dict[str, Any]:
    """Return half the length of each error bar of a line, if it has error bars."""
    if not isinstance(line, Line) or line.error is None:
        return {}
    out = np.full(len(values), np.nan)
    out[np.isfinite(values)] = line.error[np.isfinite(line.y)]
    return {"error": plain(out)}


def is_hollow(line: Line | HistogramSteps) -> bool:
    return isinstance(line, Line) and line.form == "hollow"


def spread_values(line: Line, x: FloatArray) -> FloatArray:
    """Return the values of a line at its own places among `x`, and gaps elsewhere."""
    out = np.full(len(x), np.nan)
    out[np.searchsorted(x, line.x)] = line.y
    return out


def plain(values: FloatArray, positive: bool = False) -> list[float | None]:
    """Round each number to six digits; None if it is not finite, or has no logarithm."""
    return [
        float(f"{v:.6g}") if math.isfinite(v) and not (positive and v <= 0) else None
        for v in values.tolist()
    ]

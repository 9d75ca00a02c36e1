"""Curves and histograms as the page's line charts want them: plain lists, few digits."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from embgeo.charts.base import singular_values
from embgeo.charts.style import subscripts
from embgeo.core.arrays import FloatArray
from embgeo.core.values import Series
from embgeo.result.analysis import Analysis

#: Where isotropic rows lie on the axis of a histogram.
ISOTROPIC = {
    "cosine.histogram": [0, "isotropic rows: 0"],
    "cosine.cone_angles": [90, "isotropic rows: 90°"],
}


def chart_data(analysis: Analysis) -> dict[str, Any]:
    """Every series and histogram of an analysis by name."""
    charts: dict[str, Any] = {}
    for s in (_drawn(analysis, stored) for stored in analysis.series):
        charts[s.name] = {
            "kind": "line",
            "x": plain(s.x),
            "lines": [
                {"label": subscripts(label), "y": plain(y, positive=s.log_y)}
                for label, y in s.y.items()
            ],
            "labels": [subscripts(s.x_label), subscripts(s.y_label)],
            "log": [s.log_x, s.log_y],
        }
    for h in analysis.histograms:
        # A step at each left edge, and one more point that closes the last bin.
        counts = np.append(h.counts, h.counts[-1:])
        charts[h.name] = {
            "kind": "steps",
            "x": plain(h.edges),
            "lines": [{"label": h.y_label, "y": plain(counts)}],
            "labels": [h.x_label, h.y_label],
            "log": [False, False],
            "mark": ISOTROPIC.get(h.name),
        }
    return charts


def _drawn(analysis: Analysis, stored: Series) -> Series:
    singular = stored.quantity.family == "spectrum"
    return (singular and singular_values(analysis, stored.name)) or stored


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plain(values: FloatArray, positive: bool = False) -> list[float | None]:
    """Six digits of each number; None where it is not finite, or has no logarithm."""
    return [
        float(f"{v:.6g}") if math.isfinite(v) and not (positive and v <= 0) else None
        for v in values.tolist()
    ]

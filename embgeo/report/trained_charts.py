"""Curves over training as the page's line charts want them, a line a method."""

from __future__ import annotations

from typing import Any

import numpy as np

from embgeo.charts.trained.base import Look, band, looks
from embgeo.charts.trained.curves import chosen, is_log
from embgeo.core.arrays import FloatArray
from embgeo.report.charts import plain
from embgeo.training.study.training import Training


def chart_data(training: Training) -> dict[str, Any]:
    """Each curve by the name of its chart."""
    return {chart_name(name): chart(training, name, title) for name, title in chosen(training)}


def chart_name(name: str) -> str:
    return f"trained.{name}"


def chart(training: Training, name: str, title: str) -> dict[str, Any]:
    lines: list[tuple[Look, FloatArray, FloatArray]] = []
    for look in looks(training):
        found = band(training.runs_of(look.method), name)
        if found is not None:
            lines.append((look, found.steps, found.mean))
    log = is_log(training, name)
    x = np.unique(np.concatenate([steps for _, steps, _ in lines]))
    return {
        "kind": "line",
        "x": plain(x),
        "lines": [
            {
                "label": look.label,
                "color": f"--line-{look.shade}",
                "dash": look.turn,
                "y": plain(over(x, steps, values), positive=log),
            }
            for look, steps, values in lines
        ],
        "labels": ["step", title],
        "log": [False, log],
    }


def over(x: FloatArray, steps: FloatArray, values: FloatArray) -> FloatArray:
    """`values` at the places of their steps among `x`, not a number elsewhere."""
    out = np.full(len(x), np.nan)
    out[np.searchsorted(x, steps)] = values
    return out

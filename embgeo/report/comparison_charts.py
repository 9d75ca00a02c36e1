"""Overlaid curves and histograms of a comparison as the page's line charts want them."""

from __future__ import annotations

from typing import Any

import numpy as np

from embgeo.charts.base import series, singular_values, table
from embgeo.charts.compared.angles import angles
from embgeo.charts.compared.bars import density, found
from embgeo.charts.compared.base import Look, looks
from embgeo.charts.compared.overlaps import overlaps
from embgeo.charts.compared.partitions import PANELS as PARTITIONS
from embgeo.charts.compared.spectra import LINE
from embgeo.charts.compared.training import chosen
from embgeo.charts.frequency import column
from embgeo.charts.style import subscripts
from embgeo.comparison.comparison import Comparison
from embgeo.core.arrays import FloatArray
from embgeo.core.values import Histogram, Series
from embgeo.report.charts import ISOTROPIC, plain

#: Histograms that are overlaid, by the name of their chart.
HISTOGRAMS = {
    "cosines": "cosine.histogram",
    "cones": "cosine.cone_angles",
    "norms": "tokens.norms",
}

Curves = list[tuple[Look, FloatArray, FloatArray]]


def chart_data(comparison: Comparison) -> dict[str, Any]:
    """Every overlay by name; what no member has is left out."""
    charts: dict[str, Any] = {
        "spectra": _spectra(comparison),
        "angles": _angles(comparison),
        "overlaps": _steps(overlaps(comparison), None),
    }
    for key, name in HISTOGRAMS.items():
        charts[key] = _steps(found(comparison, name), ISOTROPIC.get(name))
    for name, _ in PARTITIONS:
        charts[name] = _partition(comparison, name)
    for key, name in BY_FREQUENCY.items():
        charts[key] = _by_frequency(comparison, name)
    charts |= _training(comparison)
    return {name: chart for name, chart in charts.items() if chart is not None}


BY_FREQUENCY = {
    "by_frequency.norm": "median norm",
    "by_frequency.cosine": "mean cosine to mean direction",
}


def line_chart(
    curves: Curves, labels: tuple[str, str], log: tuple[bool, bool] = (False, False)
) -> dict[str, Any]:
    """Curves over the union of their x, with gaps where one has no point."""
    x = np.unique(np.concatenate([x for _, x, _ in curves]))
    return {
        "kind": "line",
        "x": plain(x),
        "lines": [
            {**_face(look, len(curves)), "y": plain(_spread(x, own, y), positive=log[1])}
            for look, own, y in curves
        ],
        "labels": [subscripts(label) for label in labels],
        "log": list(log),
    }


def _spread(x: FloatArray, own: FloatArray, y: FloatArray) -> FloatArray:
    out = np.full(len(x), np.nan)
    out[np.searchsorted(x, own)] = y
    return out


def _face(look: Look, lines: int) -> dict[str, Any]:
    """Name, color and dashes; a line alone needs no dashes."""
    aged = look.member.step is not None
    color = f"--{'age' if aged else 'line'}-{look.shade}"
    return {"label": look.label, "color": color, "dash": 0 if aged or lines == 1 else look.shade}


def _steps(members: list[tuple[Look, Histogram]], mark: Any) -> dict[str, Any] | None:
    """Densities over the union of all edges: bins of one may lie inside those of another."""
    if not members:
        return None
    edges = np.unique(np.concatenate([bars.edges for _, bars in members]))
    return {
        "kind": "steps",
        "x": plain(edges),
        "lines": [
            {**_face(look, len(members)), "y": plain(step_values(bars, edges))}
            for look, bars in members
        ],
        "labels": [members[0][1].x_label, "density"],
        "log": [False, False],
        "mark": mark,
    }


def step_values(bars: Histogram, edges: FloatArray) -> FloatArray:
    """The density on each interval of `edges`, 0 outside the bins; the last one closes it."""
    at = np.searchsorted(bars.edges, edges, side="right") - 1
    inside = (at >= 0) & (at < len(bars.counts))
    return np.where(inside, density(bars)[np.clip(at, 0, len(bars.counts) - 1)], 0.0)


def _spectra(comparison: Comparison) -> dict[str, Any] | None:
    curves: Curves = []
    shown: Series | None = None
    for look in looks(comparison):
        curve = singular_values(look.member.analysis, "spectrum.singular_values")
        if curve is not None and LINE in curve.y:
            curves.append((look, curve.x, curve.y[LINE]))
            shown = curve
    if shown is None:
        return None
    return line_chart(curves, (shown.x_label, shown.y_label), (False, True))


def _angles(comparison: Comparison) -> dict[str, Any] | None:
    held = [(look, angles(comparison, look.place)) for look in looks(comparison)]
    curves = [(look, s.x, next(iter(s.y.values()))) for look, s in held if s is not None]
    return line_chart(curves, ("index i", "angle (°)")) if curves else None


def _partition(comparison: Comparison, name: str) -> dict[str, Any] | None:
    held = [(look, series(look.member.analysis, name)) for look in looks(comparison)]
    curves = [
        (look, s.x, y, label) for look, s in held if s is not None for label, y in s.y.items()
    ]
    first = next((s for _, s in held if s is not None), None)
    if first is None:
        return None
    chart = line_chart(
        [(look, x, y) for look, x, y, _ in curves],
        (first.x_label, first.y_label),
        (False, first.log_y),
    )
    for line, (look, _, _, label) in zip(chart["lines"], curves, strict=True):
        line["label"] = f"{look.label}, {subscripts(label)}"
    return chart


def _by_frequency(comparison: Comparison, name: str) -> dict[str, Any] | None:
    held = [
        (look, table(look.member.analysis, "frequency.by_frequency_bin"))
        for look in looks(comparison)
    ]
    curves = [
        (look, np.arange(1.0, len(bins.rows) + 1), np.array(column(bins, name)))
        for look, bins in held
        if bins is not None
    ]
    return line_chart(curves, ("frequency bin (1 = most frequent)", name)) if curves else None


def _training(comparison: Comparison) -> dict[str, Any]:
    track = comparison.track
    if track is None:
        return {}
    x = np.asarray(track.steps)
    charts = {}
    for curve, title in chosen(track):
        y = np.array([np.nan if v is None else v for v in curve.values])
        charts[f"training.{curve.quantity.name}.{curve.against}"] = {
            "kind": "line",
            "x": plain(x),
            "lines": [{"label": title, "y": plain(y)}],
            # The heading above the chart names the number.
            "labels": ["step", ""],
            "log": [False, False],
            "mark": curve.bend and [curve.bend.step, f"bend at {curve.bend.step:,.10g}"],
        }
    return charts

"""Values of an analysis by name, where it holds them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import spectrum
from embgeo.core.values import Histogram, Points, Series, Table
from embgeo.result.analysis import Analysis


def find_series(analysis: Analysis, name: str) -> Series | None:
    """The series of that name, or None."""
    return next((s for s in analysis.series if s.name == name and len(s.x) and s.y), None)


def find_singular_values(analysis: Analysis, name: str) -> Series | None:
    """The series of that name up to the numerical rank: what lies beyond is rounding error."""
    curve, rank = find_series(analysis, name), analysis.scalar(spectrum.NUMERICAL_RANK.name)
    if curve is None or rank is None or not rank.value:
        return curve
    kept = int(rank.value)
    return replace(curve, x=curve.x[:kept], y={label: y[:kept] for label, y in curve.y.items()})


def find_histogram(analysis: Analysis, name: str) -> Histogram | None:
    """The histogram of that name, or None."""
    return next((h for h in analysis.histograms if h.name == name and len(h.counts)), None)


def find_points(analysis: Analysis, name: str) -> Points | None:
    """The projection of that name, or None."""
    return next((p for p in analysis.points if p.name == name and len(p.xy)), None)


def find_table(analysis: Analysis, name: str) -> Table | None:
    """The table of that name, or None."""
    return next((t for t in analysis.tables if t.name == name and t.rows), None)


def column_of(table: Table, name: str) -> FloatArray:
    """One column of numbers; NaN where a row has none."""
    index = table.columns.index(name)
    cells = (row[index] for row in table.rows)
    return np.array([float(c) if isinstance(c, int | float) else np.nan for c in cells])

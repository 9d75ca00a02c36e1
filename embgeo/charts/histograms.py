"""What charts of stored histograms share: counts of one member, densities of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embgeo.charts.specification import (
    Axis,
    FigureTable,
    Guide,
    HistogramSteps,
    Panel,
    StyledSubjects,
)
from embgeo.core.arrays import FloatArray
from embgeo.core.values import Cell, Histogram


def compute_density(bars: Histogram) -> FloatArray:
    """Share of all counts by unit of x; the area under it is 1."""
    widths = np.diff(bars.edges)
    total = bars.counts.sum()
    return np.asarray(bars.counts / (widths * total if total else widths))


def overlay(
    subjects: StyledSubjects,
    histograms: Sequence[Histogram],
    *,
    guides: tuple[Guide, ...] = (),
    limits: tuple[float, float] | None = None,
    ticks: tuple[float, ...] = (),
    density: str = "",
) -> Panel:
    """One panel with all histograms.

    `density`: label of the axis of densities, where one member has densities too; by default it has
    counts. Bins of several members may differ: only their densities compare.
    """
    alone = len(subjects) == 1
    counted = alone and not density
    lines = tuple(
        HistogramSteps(
            bars.edges,
            bars.counts if counted else compute_density(bars),
            style,
            "" if alone else subject.label,
            bars.y_label if counted else "",
        )
        for (subject, style), bars in zip(subjects, histograms, strict=True)
    )
    low, high = limits or (None, None)
    label = histograms[0].y_label if counted else density or "density"
    return Panel(
        Axis(histograms[0].x_label, low=low, high=high, ticks=ticks),
        Axis(label, low=0.0, whole=counted),
        lines,
        guides,
    )


def tabulate(subjects: StyledSubjects, histograms: Sequence[Histogram]) -> FigureTable:
    """A row for each bin: its ends, the count and the density."""
    rows: list[tuple[Cell, ...]] = [
        (subject.label, *map(float, cells))
        for (subject, _), bars in zip(subjects, histograms, strict=True)
        for cells in zip(
            bars.edges[:-1], bars.edges[1:], bars.counts, compute_density(bars), strict=True
        )
    ]
    return FigureTable(("analysis", "from", "to", histograms[0].y_label, "density"), rows)

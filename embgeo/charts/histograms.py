"""What charts of stored histograms share: counts of one member, densities of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from embgeo.charts.lookup import find_histogram
from embgeo.charts.specification import (
    Axis,
    Choices,
    FigureTable,
    Guide,
    HistogramSteps,
    Panel,
    StyledSubjects,
)
from embgeo.charts.subject import Subject, Unrelated
from embgeo.core.arrays import FloatArray
from embgeo.core.values import Cell, Histogram


def refuse_without_histogram(name: str, reason: str) -> Callable[[Subject, Choices], str]:
    """Why a subject lacks the histogram of that name, as a function of the subject."""

    def refuse(subject: Subject, _choices: Choices) -> str:
        if subject.analysis is None:
            return Unrelated.NO_ANALYSIS
        bars = find_histogram(subject.analysis, name)
        return reason if bars is None or not bars.counts.sum() else ""

    return refuse


def stored_histograms(subjects: StyledSubjects, name: str) -> list[Histogram]:
    """The histogram of each subject, all of which have it."""
    analyses = [subject.analysis for subject, _ in subjects if subject.analysis is not None]
    return [bars for a in analyses if (bars := find_histogram(a, name)) is not None]


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

    Parameters
    ----------
    density : str
        Label of the axis of densities, where one member has densities too; by default it has
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

"""Cosines of pairs of rows: histograms of several matrices over each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embgeo.charts.base import histogram
from embgeo.charts.paper import style
from embgeo.charts.paper.base import NO_ANALYSIS, Choices, Data, Made, PaperFigure, Subject
from embgeo.charts.paper.lines import name_lines, one_panel
from embgeo.charts.paper.style import Page
from embgeo.core.values import Cell

NAME = "cosine.histogram"
#: Peaks further apart than this need a logarithmic axis, or the lower ones cannot be seen.
WIDE = 6.0


def missing(subject: Subject, _choices: Choices) -> str:
    if subject.analysis is None:
        return NO_ANALYSIS
    found = histogram(subject.analysis, NAME)
    if found is None or not found.counts.sum():
        return "its analysis holds no cosines of pairs"
    return ""


def draw(subjects: Sequence[Subject], page: Page, _choices: Choices) -> Made:
    drawing, ax = one_panel(page)
    rows: list[tuple[Cell, ...]] = []
    handles = []
    low, high = 0.0, 0.0
    peaks = []
    for place, subject in enumerate(subjects):
        assert subject.analysis is not None
        found = histogram(subject.analysis, NAME)
        assert found is not None
        density = found.counts / found.counts.sum() / np.diff(found.edges)
        peaks.append(density.max())
        style_of = style.line(place, len(density))
        handles.append(
            ax.stairs(
                density,
                found.edges,
                color=style_of["color"],
                linestyle=style_of["linestyle"],
                linewidth=1.1,
            )
        )
        ax.stairs(density, found.edges, color=style_of["color"], fill=True, alpha=0.12, lw=0)
        occupied = np.flatnonzero(found.counts)
        low = min(low, float(found.edges[occupied[0]]))
        high = max(high, float(found.edges[occupied[-1] + 1]))
        for left, right, count, height in zip(
            found.edges[:-1], found.edges[1:], found.counts, density, strict=True
        ):
            rows.append((subject.label, float(left), float(right), float(count), float(height)))
    ax.axvline(0.0, color=style.GRAY, lw=0.7, ls=(0, (4, 3)), zorder=0)
    margin = 0.03 * (high - low)
    ax.set_xlim(max(-1.0, low - margin), min(1.0, high + margin))
    if max(peaks) > WIDE * min(peaks):
        style.log_ticks(ax.yaxis)
        ax.set_ylim(0.01 * min(peaks), 2.0 * max(peaks))
    else:
        ax.set_ylim(bottom=0)
    ax.set_xlabel("cosine of two rows")
    ax.set_ylabel("density of pairs")
    name_lines(drawing, page, handles, subjects)
    columns = ("analysis", "from", "to", "pairs", "density")
    caption = (
        "Cosines between pairs of rows of the embedding matrix. Isotropic rows lie around 0 "
        "(dashed)."
    )
    return Made(drawing, Data(columns, rows), caption)


FIGURE = PaperFigure("cosines", missing, draw)

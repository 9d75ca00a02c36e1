"""Arora's partition function at the eigenvectors of WᵀW and at their negatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embgeo.charts.base import series
from embgeo.charts.paper import style
from embgeo.charts.paper.base import NO_ANALYSIS, Choices, Data, Made, PaperFigure, Subject
from embgeo.charts.paper.lines import name_lines
from embgeo.charts.paper.style import Page
from embgeo.core.values import Cell

#: Quantity of a panel, its title, and what the data call it.
PANELS = (
    ("isotropy.z", r"$W$", "raw"),
    ("isotropy.z_unit", r"$W$ / mean row norm", "unit"),
)
CAPTION = (
    "Partition function Z(a) at the eigenvectors v of WᵀW and at their negatives (two branches for "
    "each matrix), divided by its mean. Isotropic rows give a flat line at 1; I1 is the smallest "
    "value divided by the largest. Z depends on the norms of the rows: only the panel with the "
    "mean norm scaled to 1 compares matrices of different norms."
)


def missing(subject: Subject, _choices: Choices) -> str:
    if subject.analysis is None:
        return NO_ANALYSIS
    if any(series(subject.analysis, name) is None for name, _, _ in PANELS):
        return "its analysis left out the section isotropy"
    return ""


def draw(subjects: Sequence[Subject], page: Page, _choices: Choices) -> Made:
    across, down = (2, 1) if page.width >= 4.0 else (1, 2)
    height = down * float(np.clip(0.45 * page.width, 1.2, 2.0))
    drawing, axes = style.panels(page, 2, across, height)
    rows: list[tuple[Cell, ...]] = []
    handles: list[Any] = []
    for ax, (name, title, scale) in zip(axes, PANELS, strict=True):
        drawn = []
        for place, subject in enumerate(subjects):
            assert subject.analysis is not None
            found = series(subject.analysis, name)
            assert found is not None
            line = style.line(place, len(found.x))
            for sign, z in zip("+-", found.y.values(), strict=True):
                curve = ax.plot(found.x, z, **line)
                handles += curve if sign == "+" else []
                drawn.append(z)
                rows += [
                    (subject.label, scale, int(k), sign, value)
                    for k, value in zip(found.x.tolist(), z.tolist(), strict=True)
                ]
        style.log_ticks(ax.xaxis)
        if style.is_wide(np.concatenate(drawn), 3.0):
            style.log_ticks(ax.yaxis)
        ax.axhline(1.0, color=style.GRAY, lw=0.7, ls=(0, (4, 3)), zorder=0)
        ax.set_title(title)
        ax.set_xlabel("eigenvector $k$, strongest first")
        ax.set_ylabel(r"$Z(\pm v_k)\,/\,\bar{Z}$")
    name_lines(drawing, page, handles[: len(subjects)], subjects)
    return Made(drawing, Data(("analysis", "scale", "k", "sign", "z"), rows), CAPTION)


FIGURE = PaperFigure("partition", missing, draw)

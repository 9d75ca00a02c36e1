"""Clouds of tokens in the plane, a panel an analysis: what both scatter figures share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embgeo.charts.base import points
from embgeo.charts.paper import style
from embgeo.charts.paper.base import NO_ANALYSIS, Choices, Data, Made, Subject
from embgeo.charts.paper.coloring import coloring
from embgeo.charts.paper.style import Page
from embgeo.charts.paper.vocabulary import NO_FREQUENCIES, frequencies, token_cells
from embgeo.core.values import Cell, Points, format_number
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

FloatArray = npt.NDArray[np.float64]

#: Share of points at each end of an axis that may lie outside the picture.
OUTSIDE = 0.0005
#: More than these are thinned out evenly.
MOST_PANELS = 12
#: Inches that labels and ticks take beside and below a panel, and a title above it.
MARGIN = 0.45


@dataclass(frozen=True, slots=True)
class View:
    """The part of the plane that a panel shows."""

    left: float
    right: float
    bottom: float
    top: float

    def holds(self, xy: FloatArray) -> npt.NDArray[np.bool_]:
        """Which points lie inside."""
        x, y = xy[:, 0], xy[:, 1]
        inside = (self.left <= x) & (x <= self.right) & (self.bottom <= y) & (y <= self.top)
        return np.asarray(inside)


def missing_cloud(subject: Subject, choices: Choices, name: str) -> str:
    """Why this subject has no cloud of that name; empty if it has one."""
    if subject.analysis is None:
        return NO_ANALYSIS
    if points(subject.analysis, name) is None:
        return "its analysis left out the section projection"
    if choices.color == "frequency" and frequencies(subject.analysis) is None:
        return NO_FREQUENCIES
    return ""


def draw_clouds(
    subjects: Sequence[Subject], page: Page, choices: Choices, name: str, caption: str
) -> Made:
    """One panel for each subject, with equal scales on both axes."""
    every = len(subjects)
    if every > MOST_PANELS:
        subjects = [subjects[i] for i in np.linspace(0, every - 1, MOST_PANELS).round().astype(int)]
    across, down = style.grid(page, len(subjects), least=1.5)
    inner = page.width / across - MARGIN
    height = down * (min(2.3, inner) + MARGIN)
    drawing, axes = style.panels(page, len(subjects), across, height)
    analyses = [subject.analysis for subject in subjects if subject.analysis is not None]
    clouds = [cloud for a in analyses if (cloud := points(a, name)) is not None]
    colors = coloring(analyses, choices.color)
    for ax, subject, analysis, cloud in zip(axes, subjects, analyses, clouds, strict=True):
        scatter(ax, cloud.xy, colors.of(analysis), min(2.3, inner))
        name_axes(ax, cloud)
        if len(subjects) > 1:
            ax.set_title(style.plain_text(subject.label))
    colors.explain(drawing, page, axes)
    views = fill_panels(drawing, axes, clouds)
    rows: list[tuple[Cell, ...]] = []
    notes = [f"{len(subjects)} of {every} are shown"] if len(subjects) < every else []
    panels = zip(axes, subjects, analyses, clouds, views, strict=True)
    for ax, subject, analysis, cloud, view in panels:
        if len(subjects) > 1:
            ax.set_title(page.text(subject.label))
        outside = int((~view.holds(cloud.xy)).sum())
        if outside:
            total = f"{len(cloud.xy):,} points"
            notes.append(f"{subject.label}: {outside:,} of {total} lie outside the picture")
        rows += cloud_rows(subject.label, analysis, cloud)
    columns = ("analysis", "row", "token", "class", "count", "rank", "x", "y")
    return Made(drawing, Data(columns, rows), f"{caption} {colors.caption}".strip(), tuple(notes))


def fill_panels(drawing: Drawing, axes: Sequence[Axes], clouds: Sequence[Points]) -> list[View]:
    """Show as much of the plane as each panel has room for, with equal scales on both axes.

    Labels take room from panels, and limits change labels: after two rounds the layout is kept as
    it is, so that scales are equal whatever the format of the file.
    """
    for _ in range(2):
        drawing.draw_without_rendering()
        views = []
        for ax, cloud in zip(axes, clouds, strict=True):
            box = ax.get_window_extent()
            view = view_box(cloud.xy, float(box.height / box.width))
            ax.set_xlim(view.left, view.right)
            ax.set_ylim(view.bottom, view.top)
            views.append(view)
    drawing.set_layout_engine("none")
    return views


def view_box(xy: FloatArray, shape: float) -> View:
    """What a panel of this height by width shows: nearly all points, and the origin.

    The origin is always in the picture: whether a cloud surrounds it or lies to one side of it is
    what the picture is about.
    """
    low, high = np.quantile(xy, [OUTSIDE, 1.0 - OUTSIDE], axis=0)
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    middle = (low + high) / 2.0
    half = 1.08 * (high - low) / 2.0
    wide = max(float(half[0]), float(half[1]) / shape, float(np.finfo(np.float64).tiny))
    return View(
        float(middle[0] - wide),
        float(middle[0] + wide),
        float(middle[1] - shape * wide),
        float(middle[1] + shape * wide),
    )


def scatter(ax: Axes, xy: FloatArray, colors: Any, side: float) -> None:
    """Every point as a dot in a picture inside the vector file.

    `side` is about the panel's, in inches. Dots are drawn in random order, the same every time:
    drawn class by class, the last class would hide the others. Edges are not smoothed: few colors
    make the picture compress well.
    """
    from matplotlib.colors import to_rgba_array

    order = np.random.default_rng(0).permutation(len(xy))
    # Of a single color matplotlib would draw smoothed dots nevertheless.
    rgba = np.broadcast_to(to_rgba_array(colors), (len(xy), 4))
    ax.scatter(
        xy[order, 0],
        xy[order, 1],
        s=dot_size(len(xy), side),
        c=rgba[order],
        linewidths=0,
        antialiased=False,
        zorder=2,
    )
    # With the white of the panel in the picture it needs no transparency, which would take as
    # much room again.
    ax.set_rasterization_zorder(2.5)


def dot_size(count: int, side: float) -> float:
    """Area of a dot in square points for so many in a square panel of this side in inches.

    Smaller where there are many, never below what prints.
    """
    return float(np.clip(760.0 * side**2 / max(count, 1), 0.4, 6.0))


def name_axes(ax: Axes, cloud: Points) -> None:
    """Axes through the origin, and the share of the energy that each direction holds."""
    ax.axhline(0.0, color=style.GRAY, lw=0.5, zorder=1)
    ax.axvline(0.0, color=style.GRAY, lw=0.5, zorder=1)
    ax.plot([0.0], [0.0], marker="+", ms=6, mew=1.0, color=style.INK, zorder=3)
    first, second = (format_number(100 * share, 2) for share in cloud.share)
    ax.set_xlabel(f"direction 1 ({first} %)")
    ax.set_ylabel(f"direction 2 ({second} %)")
    ax.locator_params(nbins=4)


def cloud_rows(label: str, analysis: Analysis, cloud: Points) -> list[tuple[Cell, ...]]:
    """The points of one panel, a row of the data each."""
    places = zip(token_cells(analysis), cloud.xy.tolist(), strict=True)
    return [(label, *cells, x, y) for cells, (x, y) in places]

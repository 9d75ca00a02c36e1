"""Singular values of several matrices, each divided by its largest: what both spectra share."""

from __future__ import annotations

from collections.abc import Sequence

from embgeo.charts.base import singular_values
from embgeo.charts.paper import style
from embgeo.charts.paper.base import NO_ANALYSIS, Choices, Data, Made, Subject
from embgeo.charts.paper.lines import cells, name_lines, one_panel
from embgeo.charts.paper.style import Page
from embgeo.core.values import Cell, Series
from embgeo.result.analysis import Analysis

NAME = "spectrum.singular_values"
REFERENCE = "isotropic reference"


def curve(analysis: Analysis | None) -> Series | None:
    """The singular values up to the numerical rank, None where the analysis has none."""
    found = None if analysis is None else singular_values(analysis, NAME)
    return found if found is not None and "uncentered" in found.y else None


def missing_spectrum(subject: Subject, _choices: Choices) -> str:
    if subject.analysis is None:
        return NO_ANALYSIS
    return "" if curve(subject.analysis) else "its analysis left out the section spectrum"


def draw_spectra(subjects: Sequence[Subject], page: Page, *, logarithmic: bool) -> Made:
    """One line for each subject, and thin dotted ones for isotropic rows of the same norms."""
    drawing, ax = one_panel(page)
    rows: list[tuple[Cell, ...]] = []
    handles = []
    referenced = False
    for place, subject in enumerate(subjects):
        found = curve(subject.analysis)
        assert found is not None
        values, reference = found.y["uncentered"], found.y.get(REFERENCE)
        handles += ax.plot(found.x, values, **style.line(place, len(values)), zorder=3)
        if reference is not None:
            referenced = True
            ax.plot(found.x, reference, color=style.GRAY, ls=(0, (1, 1)), lw=0.7, zorder=2)
        beside = [None] * len(values) if reference is None else cells(reference)
        numbered = zip(found.x.tolist(), cells(values), beside, strict=True)
        rows += [(subject.label, int(k), value, other) for k, value, other in numbered]
    ax.set_xlabel("index $k$")
    ax.set_ylabel(r"$\sigma_k / \sigma_1$")
    ax.set_xlim(left=0)
    if logarithmic:
        style.log_ticks(ax.yaxis)
    else:
        ax.set_ylim(0, 1.03)
    name_lines(drawing, page, handles, subjects)
    caption = (
        "Singular values of the embedding matrix (not centered), divided by the largest, up to its "
        "numerical rank."
    )
    if referenced:
        caption += " Dotted: isotropic Gaussian rows of the same number, dimension and norms."
    columns = ("analysis", "k", "normalized singular value", "isotropic rows")
    return Made(drawing, Data(columns, rows), caption)

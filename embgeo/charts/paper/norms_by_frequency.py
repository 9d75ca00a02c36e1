"""Norms of rows against the frequency of their tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embgeo.charts.paper import style
from embgeo.charts.paper.base import NO_ANALYSIS, Choices, Data, Made, PaperFigure, Subject
from embgeo.charts.paper.clouds import scatter
from embgeo.charts.paper.lines import name_lines, one_panel
from embgeo.charts.paper.style import Page
from embgeo.charts.paper.vocabulary import NO_FREQUENCIES, alike, frequencies
from embgeo.core.values import Cell
from embgeo.result.analysis import Analysis

FloatArray = npt.NDArray[np.float64]

NAME = "tokens.norm"
BINS = 16
#: A median of fewer tokens than this jumps about: such a bin is joined with the next.
LEAST_TOKENS = 20
PALE = "#b9c4d0"
CAPTION = (
    "Norms of the rows by token frequency: medians (lines) and quartiles (bands) in bins of equal "
    "width on the logarithmic axis."
)


def missing(subject: Subject, _choices: Choices) -> str:
    if subject.analysis is None:
        return NO_ANALYSIS
    if frequencies(subject.analysis) is None:
        return NO_FREQUENCIES
    return (
        ""
        if row_norms(subject.analysis) is not None
        else "its analysis left out the section tokens"
    )


def row_norms(analysis: Analysis) -> FloatArray | None:
    return next((c.values for c in analysis.columns if c.name == NAME), None)


def draw(subjects: Sequence[Subject], page: Page, _choices: Choices) -> Made:
    drawing, ax = one_panel(page)
    analyses = [subject.analysis for subject in subjects if subject.analysis is not None]
    known = alike([f for f in map(frequencies, analyses) if f is not None])
    columns = [norms for norms in map(row_norms, analyses) if norms is not None]
    rows: list[tuple[Cell, ...]] = []
    handles = []
    highest = 0.0
    for place, (subject, of, norms) in enumerate(zip(subjects, known, columns, strict=True)):
        x = of.positive
        if len(subjects) == 1:
            scatter(ax, np.stack([x, norms], axis=1), PALE, 2.0)
            highest = float(norms.max())
        bins = quartiles(x, norms)
        line = style.line(place, len(bins))
        ax.fill_between(bins[:, 0], bins[:, 1], bins[:, 3], color=line["color"], alpha=0.15, lw=0)
        handles += ax.plot(bins[:, 0], bins[:, 2], **line, zorder=3)
        highest = max(highest, float(bins[:, 3].max()))
        rows += [(subject.label, int(n), *q) for *q, n in bins.tolist()]
    ax.set_ylim(0, 1.05 * highest)
    style.log_ticks(ax.xaxis)
    ax.set_xlabel(known[0].positive_label)
    ax.set_ylabel("row norm")
    name_lines(drawing, page, handles, subjects)
    quartile_names = ("lower quartile", "median norm", "upper quartile")
    names = ("analysis", "tokens", f"median {known[0].positive_label}", *quartile_names)
    return Made(drawing, Data(names, rows), CAPTION)


def quartiles(x: FloatArray, norms: FloatArray) -> FloatArray:
    """Median of x, quartiles of the norm and number of tokens in bins of equal width in log x.

    Returns
    -------
    FloatArray
        Shape (bins, 5): median x, lower quartile, median and upper quartile of the norm, tokens.
    """
    order = np.argsort(x, kind="stable")
    x, norms = x[order], norms[order]
    edges = np.geomspace(x[0], x[-1], BINS + 1)[1:-1]
    ends = [*np.searchsorted(x, edges, side="right").tolist(), len(x)]
    starts = [0]
    for end in ends:
        # Equal frequencies stay together; too few tokens wait for the next bin.
        if end - starts[-1] >= min(LEAST_TOKENS, len(x)) and end < len(x):
            starts.append(end)
    if len(starts) > 1 and len(x) - starts[-1] < LEAST_TOKENS:
        starts.pop()
    bins = zip(starts, [*starts[1:], len(x)], strict=True)
    return np.array(
        [(np.median(x[a:b]), *np.quantile(norms[a:b], [0.25, 0.5, 0.75]), b - a) for a, b in bins]
    )


FIGURE = PaperFigure("norms-by-frequency", missing, draw)

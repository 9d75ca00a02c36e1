"""Cosines of pairs of rows: densities of one or several matrices over each other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from embgeo.charts.isotropic import isotropic_cosines
from embgeo.charts.lookup import collect_stored, find_histogram, refuse_without
from embgeo.charts.panels import overlay, tabulate
from embgeo.charts.specification import (
    Chart,
    Choices,
    Guide,
    HistogramSteps,
    Panel,
    Specification,
    StyledSubjects,
)
from embgeo.core.quantities import cosine

NAME = cosine.HISTOGRAM.name
find = partial(find_histogram, name=NAME)
#: Peaks further apart than this need a logarithmic axis, or the lower ones cannot be seen.
WIDE = 6.0
#: Of the peak, what counts as empty.
NEGLIGIBLE = 1e-3
ONE = (
    "Cosines between pairs of rows. Isotropic rows give a hump around 0 (dotted) that is narrower "
    "the more dimensions there are; a hump to the right of it is a cone, two humps near −1 and 1 "
    "are a collapse on both sides."
)
SEVERAL = (
    "Cosines between pairs of rows of each matrix. A hump around 0 (dashed) is what isotropic "
    "rows give; the further to the right it lies, the narrower the cone."
)
PRINT = (
    "Cosines between pairs of rows of the embedding matrix. Isotropic rows lie around 0 (dashed)."
)


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    histograms = collect_stored(subjects, find)
    isotropic = isotropic_cosines(subjects)
    guides = (Guide(0.0, "isotropic rows: 0"),)
    panel = overlay(subjects, histograms, guides=guides, isotropic=isotropic)
    table = tabulate(subjects, histograms, isotropic)
    columns = ("analysis", "from", "to", "pairs", "density")
    return Specification(
        (fit_limits(panel),),
        ONE if len(subjects) == 1 else SEVERAL,
        PRINT,
        NAME,
        table=replace(table, columns=columns),
    )


def fit_limits(panel: Panel) -> Panel:
    """The occupied part of −1 … 1 with the 0, on an axis that shows every peak."""
    low, high = 0.0, 0.0
    peaks = []
    for steps in panel.lines:
        assert isinstance(steps, HistogramSteps)
        occupied = np.flatnonzero(steps.heights > NEGLIGIBLE * steps.heights.max())
        low = min(low, float(steps.edges[occupied[0]]))
        high = max(high, float(steps.edges[occupied[-1] + 1]))
        peaks.append(float(steps.heights.max()))
    margin = 0.03 * (high - low)
    x = replace(panel.x, low=max(-1.0, low - margin), high=min(1.0, high + margin))
    y = panel.y
    if max(peaks) > WIDE * min(peaks):
        y = replace(y, log=True, low=0.01 * min(peaks), high=2.0 * max(peaks))
    return replace(panel, x=x, y=y)


CHART = Chart(
    "cosines",
    "Histogram of the cosines between pairs of rows",
    refuse_without(find, "its analysis holds no cosines of pairs"),
    build,
    section="cosine",
)

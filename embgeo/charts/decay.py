"""The fitted laws of decay, a panel a matrix."""

from __future__ import annotations

from dataclasses import replace

from embgeo.charts.curves import refuse_without_curve, series_lines, series_panel, stored_curves
from embgeo.charts.lookup import find_singular_values
from embgeo.charts.specification import (
    Chart,
    Choices,
    MemberStyle,
    Panel,
    Specification,
    StyledSubjects,
)
from embgeo.core.quantities import spectrum
from embgeo.core.values import Series
from embgeo.result.analysis import Analysis

NAME = spectrum.DECAY_FIT.name


def find(analysis: Analysis) -> Series | None:
    return find_singular_values(analysis, NAME)


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    panels: list[Panel] = []
    for (subject, _), curve in zip(subjects, stored_curves(subjects, find), strict=True):
        panel = series_panel(curve, series_lines([(subject, MemberStyle())], [curve]))
        if len(subjects) > 1:
            panel = replace(panel, key=str(len(panels)), member=subject.label)
        panels.append(panel)
    return Specification(
        tuple(panels),
        "The singular values and the two laws of decay that spectrum control uses as priors, "
        "fitted by least squares; the table says which fits better.",
        "The singular values and the two laws of decay that spectrum control uses as priors "
        "(Wang et al. 2020), fitted by least squares.",
        NAME,
    )


CHART = Chart(
    "decay",
    "Line chart of the singular values with two fitted curves",
    refuse_without_curve(find, "spectrum"),
    build,
    section="spectrum",
    pages=("analysis",),
    most=12,
)

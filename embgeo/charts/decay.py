"""The fitted laws of decay, a panel a matrix."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from embgeo.charts.lookup import collect_stored, find_singular_values, refuse_without
from embgeo.charts.panels import series_lines, series_panel
from embgeo.charts.specification import (
    Chart,
    Choices,
    MemberStyle,
    Panel,
    Specification,
    StyledSubjects,
)
from embgeo.core.quantities import spectrum

NAME = spectrum.DECAY_FIT.name
find = partial(find_singular_values, name=NAME)


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    panels: list[Panel] = []
    for (subject, _), curve in zip(subjects, collect_stored(subjects, find), strict=True):
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
    refuse_without(find, "its analysis left out the section spectrum"),
    build,
    section="spectrum",
    pages=("analysis",),
    most=12,
)

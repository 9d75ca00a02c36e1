"""Principal angles between the input and the output space of an untied model."""

from __future__ import annotations

from functools import partial

from embgeo.charts.lookup import collect_stored, find_series, refuse_without
from embgeo.charts.panels import series_lines, series_panel
from embgeo.charts.specification import Chart, Choices, Specification, StyledSubjects
from embgeo.charts.subject import Unrelated
from embgeo.core.quantities import subspace

NAME = subspace.PRINCIPAL_ANGLES.name
find = partial(find_series, name=NAME)


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    curves = collect_stored(subjects, find)
    return Specification(
        (series_panel(curves[0], series_lines(subjects, curves)),),
        "Principal angles between the spaces that the columns of the input and of the output "
        "matrix span, smallest first: 0° where they share a direction, 90° where they do not.",
        quantity=NAME,
    )


CHART = Chart(
    "subspaces",
    "Line chart of the principal angles between input and output space",
    refuse_without(find, Unrelated.NO_OUTPUT),
    build,
    section="subspace",
    pages=("analysis",),
)

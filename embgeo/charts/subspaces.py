"""Principal angles between the input and the output space of an untied model."""

from __future__ import annotations

from embgeo.charts.curves import series_lines, series_panel, stored_curves
from embgeo.charts.lookup import find_series
from embgeo.charts.specification import Chart, Choices, Specification, StyledSubjects
from embgeo.charts.subject import Subject, Unrelated
from embgeo.core.quantities import subspace
from embgeo.core.values import Series
from embgeo.result.analysis import Analysis

NAME = subspace.PRINCIPAL_ANGLES.name


def find(analysis: Analysis) -> Series | None:
    return find_series(analysis, NAME)


def refuse(subject: Subject, _choices: Choices) -> str:
    if subject.analysis is None:
        return Unrelated.NO_ANALYSIS
    return Unrelated.NO_OUTPUT if find(subject.analysis) is None else ""


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    curves = stored_curves(subjects, find)
    return Specification(
        (series_panel(curves[0], series_lines(subjects, curves)),),
        "Principal angles between the spaces that the columns of the input and of the output "
        "matrix span, smallest first: 0° where they share a direction, 90° where they do not.",
        quantity=NAME,
    )


CHART = Chart(
    "subspaces",
    "Line chart of the principal angles between input and output space",
    refuse,
    build,
    section="subspace",
    pages=("analysis",),
)

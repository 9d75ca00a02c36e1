"""Principal angles between the column spaces of the baseline and of every other matrix."""

from __future__ import annotations

from dataclasses import replace

from embgeo.charts.lookup import find_series
from embgeo.charts.panels import first_line, series_lines, series_panel
from embgeo.charts.specification import Chart, Choices, Specification, StyledSubjects
from embgeo.charts.subject import Subject, Unrelated
from embgeo.core.quantities import compare
from embgeo.core.values import Series

NAME = compare.PRINCIPAL_ANGLES.name


def find(subject: Subject) -> Series | None:
    """The angles between the baseline and this subject, or None."""
    return find_series(subject.pair, NAME) if subject.pair else None


def refuse(subject: Subject, _choices: Choices) -> str:
    return Unrelated.NO_PAIR if find(subject) is None else ""


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    found = [curve for subject, _ in subjects if (curve := find(subject)) is not None]
    # One line a pair, whatever its label.
    curves = [replace(curve, y={"": first_line(curve)}) for curve in found]
    panel = series_panel(curves[0], series_lines(subjects, curves))
    angle = replace(panel.y, low=0.0, high=90.0, ticks=tuple(range(0, 91, 15)))
    return Specification(
        (replace(panel, y=angle),),
        "Principal angles between the spaces that the columns of the baseline and of the other "
        "matrix span over their shared tokens, smallest first: 0° where they share a direction, "
        "90° where they do not. A rotation of the rows changes none of them.",
        quantity=NAME,
    )


CHART = Chart(
    "angles",
    "Line chart of the principal angles between the baseline and every other matrix",
    refuse,
    build,
    section="together",
)

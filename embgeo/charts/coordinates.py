"""The share of the mean cosine that each coordinate makes."""

from __future__ import annotations

from dataclasses import replace

from embgeo.charts.curves import refuse_without_curve, series_lines, series_panel, stored_curves
from embgeo.charts.lookup import find_series
from embgeo.charts.specification import Chart, Choices, Specification, StyledSubjects
from embgeo.core.quantities import cosine
from embgeo.core.values import Series
from embgeo.result.analysis import Analysis

NAME = cosine.MEAN_SHARE_BY_DIMENSION.name


def find(analysis: Analysis) -> Series | None:
    return find_series(analysis, NAME)


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    curves = stored_curves(subjects, find)
    panel = series_panel(curves[0], series_lines(subjects, curves))
    return Specification(
        (replace(panel, y=replace(panel.y, low=0.0)),),
        "How much of the mean cosine each coordinate makes. A single high peak is a rogue "
        "coordinate: the cone is then a matter of that one coordinate.",
        quantity=NAME,
    )


CHART = Chart(
    "coordinates",
    "Line chart of the share of the mean cosine by coordinate",
    refuse_without_curve(find, "cosine"),
    build,
    section="cosine",
    pages=("analysis",),
)

"""The share of the mean cosine that each coordinate makes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from embgeo.charts.lookup import collect_stored, find_series, refuse_without
from embgeo.charts.panels import series_lines, series_panel
from embgeo.charts.specification import Chart, Choices, Specification, StyledSubjects
from embgeo.core.quantities import cosine

NAME = cosine.MEAN_SHARE_BY_DIMENSION.name
find = partial(find_series, name=NAME)


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    curves = collect_stored(subjects, find)
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
    refuse_without(find, "its analysis left out the section cosine"),
    build,
    section="cosine",
    pages=("analysis",),
)

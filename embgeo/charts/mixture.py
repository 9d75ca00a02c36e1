"""Where rare and popular tokens lie: the share of rare tokens in each part of the plane."""

from __future__ import annotations

from functools import partial

from embgeo.charts.lookup import NO_FREQUENCIES
from embgeo.charts.scatter import (
    MOST_PANELS,
    UNCENTERED,
    map_panels,
    refuse_without_points,
    tabulate,
)
from embgeo.charts.specification import Chart, Choices, Specification, StyledSubjects
from embgeo.charts.subject import Subject

CAPTION = (
    "The same plane as the map of tokens, shaded by the share of rare tokens. If frequency played "
    "no part, all of it would have the color of the base rate."
)
PRINT = (
    "The plane of the two strongest singular directions, shaded by the share of rare tokens in "
    "each hexagon."
)


def refuse(subject: Subject, choices: Choices) -> str:
    reason = refuse_without_points(UNCENTERED)(subject, choices)
    if not reason and subject.analysis is not None and subject.analysis.popular is None:
        return NO_FREQUENCIES
    return reason


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    return Specification(
        map_panels(subjects, UNCENTERED),
        CAPTION,
        PRINT,
        shading="share",
        table=partial(tabulate, subjects, UNCENTERED),
    )


CHART = Chart(
    "mixture",
    "Map of the share of rare tokens in the plane of the first two singular directions",
    refuse,
    build,
    section="plane",
    pages=("analysis",),
    most=MOST_PANELS,
)

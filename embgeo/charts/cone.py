"""Angles of rows to the mean direction of their matrix."""

from __future__ import annotations

from functools import partial

from embgeo.charts.isotropic import isotropic_angles
from embgeo.charts.lookup import collect_stored, find_histogram, refuse_without
from embgeo.charts.panels import overlay, tabulate
from embgeo.charts.specification import Chart, Choices, Guide, Specification, StyledSubjects
from embgeo.core.quantities import cosine

NAME = cosine.CONE_ANGLES.name
find = partial(find_histogram, name=NAME)


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    histograms = collect_stored(subjects, find)
    isotropic = isotropic_angles(subjects)
    panel = overlay(
        subjects,
        histograms,
        guides=(Guide(90.0, "90°"),),
        limits=(0.0, 180.0),
        ticks=tuple(range(0, 181, 30)),
        isotropic=isotropic,
    )
    whose = "the mean direction" if len(subjects) == 1 else "the mean direction of its own matrix"
    return Specification(
        (panel,),
        f"Angle between each row and {whose}. Isotropic rows lie near 90° (dashed); rows in a "
        "cone lie well below.",
        quantity=NAME,
        table=tabulate(subjects, histograms, isotropic),
    )


CHART = Chart(
    "cone",
    "Histogram of the angles between rows and the mean direction",
    refuse_without(find, "its analysis left out the section cosine"),
    build,
    section="cosine",
)

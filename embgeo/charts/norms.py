"""Norms of the rows."""

from __future__ import annotations

from functools import partial

from embgeo.charts.lookup import collect_stored, find_histogram, refuse_without
from embgeo.charts.panels import overlay, tabulate
from embgeo.charts.specification import Chart, Choices, Specification, StyledSubjects
from embgeo.core.quantities import tokens

NAME = tokens.NORMS.name
find = partial(find_histogram, name=NAME)
SEVERAL = (
    "Norms of the rows of each matrix. Where they shrank, I1 at the matrix's own scale rises "
    "without any change of shape: compare it at a mean norm of 1."
)


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    histograms = collect_stored(subjects, find)
    return Specification(
        (overlay(subjects, histograms),),
        "Norms of the rows." if len(subjects) == 1 else SEVERAL,
        quantity=NAME,
        table=tabulate(subjects, histograms),
    )


CHART = Chart(
    "norms",
    "Histogram of the row norms",
    refuse_without(find, "its analysis left out the section tokens"),
    build,
    section="tokens",
)

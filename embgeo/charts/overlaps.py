"""How many tokens keep which share of their nearest neighbors."""

from __future__ import annotations

from embgeo.charts.lookup import find_histogram
from embgeo.charts.panels import overlay, tabulate
from embgeo.charts.specification import Chart, Choices, Specification, StyledSubjects
from embgeo.charts.subject import Subject, Unrelated
from embgeo.core.quantities import compare
from embgeo.core.values import Histogram

NAME = compare.OVERLAP_HISTOGRAM.name


def find(subject: Subject) -> Histogram | None:
    """The overlaps of this subject with the baseline, or None."""
    return find_histogram(subject.pair, NAME) if subject.pair else None


def refuse(subject: Subject, _choices: Choices) -> str:
    return Unrelated.NO_PAIR if find(subject) is None else ""


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    histograms = [bars for subject, _ in subjects if (bars := find(subject)) is not None]
    return Specification(
        (overlay(subjects, histograms, limits=(0.0, 1.0)),),
        "How much of its neighborhood a token keeps: shared nearest neighbors as a share of all "
        "those in either matrix (Jaccard). At 1 nothing moved, at 0 every neighbor is another. "
        "Only as many values can occur as there are neighbors, and 0: hence the gaps.",
        quantity=NAME,
        table=tabulate(subjects, histograms),
    )


CHART = Chart(
    "overlaps",
    "Histogram of the overlap of nearest neighbors with the baseline",
    refuse,
    build,
    section="together",
)

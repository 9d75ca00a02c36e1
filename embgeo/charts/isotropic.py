"""Densities of isotropic rows, in the background of those of a matrix."""

from __future__ import annotations

import numpy as np

from embgeo.charts.specification import HistogramSteps, MemberStyle, StyledSubjects
from embgeo.core.arrays import FloatArray

LABEL = "isotropic rows"
#: Bins from end to end: finer than the hump of thousands of dimensions.
BINS = 400


def isotropic_cosines(subjects: StyledSubjects) -> tuple[HistogramSteps, ...]:
    """The density of the cosine of two random directions; none if dimensions differ."""
    edges = np.linspace(-1.0, 1.0, BINS + 1)
    return tuple(
        make_steps(edges, share_below(edges, d)) for d in find_dimensions(subjects) if d > 1
    )


def isotropic_angles(subjects: StyledSubjects) -> tuple[HistogramSteps, ...]:
    """The density per degree of the angle between two random directions."""
    edges = np.linspace(0.0, 180.0, BINS + 1)
    below = np.cos(np.radians(edges))
    return tuple(
        make_steps(edges, 1.0 - share_below(below, d)) for d in find_dimensions(subjects) if d > 1
    )


def find_dimensions(subjects: StyledSubjects) -> tuple[int, ...]:
    """The number of columns, if all members have the same."""
    found = {s.analysis.provenance.get("d", 0) for s, _ in subjects if s.analysis is not None}
    return tuple(found) if len(found) == 1 else ()


def share_below(cosines: FloatArray, d: int) -> FloatArray:
    """The share of pairs of random directions in d dimensions with a smaller cosine.

    The square of the cosine has the beta distribution with 1/2 and (d − 1)/2.
    """
    from scipy.special import betainc

    return np.asarray(0.5 + 0.5 * np.sign(cosines) * betainc(0.5, (d - 1) / 2.0, cosines**2))


def make_steps(edges: FloatArray, below: FloatArray) -> HistogramSteps:
    return HistogramSteps(edges, np.diff(below) / np.diff(edges), MemberStyle("guide"), part=LABEL)

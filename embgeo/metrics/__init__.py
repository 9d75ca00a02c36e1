"""Metric families, one a file: what each needs from the passes, then its values."""

from embgeo.metrics import (
    clusters,
    coordinates,
    cosine,
    decay,
    dimension,
    frequency,
    hidden,
    hubs,
    isotropy,
    neighbors,
    probe,
    projection,
    spectrum,
    subspace,
    suspects,
    tokens,
)
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics

#: Every family, in the order of the report. A new one is a file and a line here.
FAMILIES: tuple[Family, ...] = (
    spectrum.FAMILY,
    decay.FAMILY,
    projection.FAMILY,
    cosine.FAMILY,
    clusters.FAMILY,
    isotropy.FAMILY,
    coordinates.FAMILY,
    frequency.FAMILY,
    probe.FAMILY,
    neighbors.FAMILY,
    subspace.FAMILY,
    hidden.FAMILY,
    suspects.FAMILY,
    tokens.FAMILY,
    hubs.FAMILY,
    dimension.FAMILY,
)

#: What ``--sections`` takes.
SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(family.section for family in FAMILIES))

__all__ = ["FAMILIES", "SECTIONS", "Facts", "Family", "Measurement", "SharedStatistics"]

"""Metric families, one a file: what each needs from the passes, then its values."""

from embgeo.metrics import (
    centroid,
    clump,
    clusters,
    coordinates,
    cosine,
    decay,
    frequency,
    hidden,
    hubs,
    isotropy,
    neighborhoods,
    neighbors,
    probe,
    projection,
    row_norms,
    row_states,
    spectrum,
    subspace,
    tail,
    token_groups,
    tokenizer_fit,
    tokens,
    undertrained,
    unigram,
    unreachable,
    weighted,
)
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Family
from embgeo.metrics.shared import SharedStatistics

#: Every family, in the order of the report. A new one is a file and a line here.
FAMILIES: tuple[Family, ...] = (
    spectrum,
    decay,
    tail,
    projection,
    cosine,
    clusters,
    isotropy,
    coordinates,
    frequency,
    weighted,
    unigram,
    probe,
    neighbors,
    subspace,
    hidden,
    row_states,
    row_norms,
    tokenizer_fit,
    tokens,
    token_groups,
    centroid,
    clump,
    unreachable,
    undertrained,
    hubs,
    neighborhoods,
)

#: What ``--sections`` takes.
SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(family.FAMILY for family in FAMILIES))

__all__ = ["FAMILIES", "SECTIONS", "Facts", "Family", "SharedStatistics"]

"""The numbers of the first screen, each with a reading that needs no paper."""

from __future__ import annotations

from dataclasses import dataclass

from embgeo.result import Analysis
from embgeo.values import Scalar

#: Rows of the headline table, at most.
MOST = 10


@dataclass(frozen=True, slots=True)
class Reading:
    """How a number is called and read on the first screen."""

    name: str
    label: str
    reading: str


READINGS: tuple[Reading, ...] = (
    Reading(
        "cosine.mean", "Mean cosine of two rows", "0: no common direction; 1: all rows parallel"
    ),
    Reading(
        "cosine.cone_half_angle_median",
        "Median angle to the mean direction",
        "90°: no preference; the smaller, the narrower the cone",
    ),
    Reading(
        "spectrum.top_share",
        "Energy in the first direction",
        "1: one direction holds everything",
    ),
    Reading(
        "spectrum.effective_rank", "Effective rank", "how many directions are in use, at most d"
    ),
    Reading(
        "isotropy.i1",
        "I1, as stored",
        "1: all directions alike; falls with large norms, too",
    ),
    Reading("isotropy.i1_unit", "I1, mean norm 1", "the same without the effect of scale"),
    Reading("isotropy.isoscore", "IsoScore", "1: variance even in all directions; 0: in one only"),
    Reading(
        "frequency.probe_auc",
        "Rare or popular: probe AUC",
        "0.5: cannot be told apart; 1: always",
    ),
    Reading(
        "frequency.neighbor_rarity_rare",
        "Rare neighbours of rare tokens",
        "base rate: neighbours ignore frequency",
    ),
    Reading(
        "frequency.norm_ratio", "Norm, popular over rare", "1: norms do not depend on frequency"
    ),
    Reading(
        "subspace.distance",
        "Distance of input and output space",
        "0: the same space; 1: orthogonal",
    ),
    Reading(
        "spectrum.energy_90", "Directions for 90 % of the energy", "the fewer, the more collapsed"
    ),
    Reading(
        "cosine.positive_share", "Pairs with a positive cosine", "0.5: half point away; 1: a cone"
    ),
)


def headline_rows(analysis: Analysis) -> list[tuple[Reading, Scalar]]:
    """The first readings that the analysis holds, in the order of importance."""
    found = [(r, analysis.scalar(r.name)) for r in READINGS]
    return [(r, s) for r, s in found if s is not None][:MOST]

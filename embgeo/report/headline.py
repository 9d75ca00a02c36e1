"""The numbers of the first screen, each with a reading that needs no paper."""

from __future__ import annotations

from dataclasses import dataclass

from embgeo.core.values import Scalar
from embgeo.result.analysis import Analysis

#: Rows of the headline table, at most.
MOST = 10


@dataclass(frozen=True, slots=True)
class Reading:
    """How a number is called and read on the first screen."""

    name: str
    label: str
    reading: str


READINGS: tuple[Reading, ...] = (
    Reading("cosine.mean", "Mean cosine", "0: no common direction; 1: all parallel"),
    Reading("cosine.cone_half_angle_median", "Median angle to mean", "90°: none; small: a cone"),
    Reading("spectrum.top_share", "Energy of direction 1", "1: one direction holds all"),
    Reading("spectrum.effective_rank", "Effective rank", "directions in use, at most d"),
    Reading("isotropy.i1", "I1, as stored", "1: directions alike; falls with norms"),
    Reading("isotropy.i1_unit", "I1, mean norm 1", "the same without the scale"),
    Reading("isotropy.isoscore", "IsoScore", "1: variance even; 0: on one axis"),
    Reading("frequency.probe_auc", "Rare/popular probe, AUC", "0.5: not told apart; 1: always"),
    Reading("frequency.neighbor_rarity_rare", "Rare beside rare", "reference: frequency ignored"),
    Reading("frequency.norm_ratio", "Norm, popular : rare", "1: norms ignore frequency"),
    Reading("subspace.distance", "Input to output space", "0: the same; 1: orthogonal"),
    Reading("spectrum.energy_90", "Directions for 90 %", "few: a collapsed spectrum"),
    Reading("cosine.positive_share", "Positive cosines", "0.5: half; 1: a cone"),
)


def headline_rows(analysis: Analysis) -> list[tuple[Reading, Scalar]]:
    """The first readings that the analysis holds, in the order of importance."""
    found = [(r, analysis.scalar(r.name)) for r in READINGS]
    return [(r, s) for r, s in found if s is not None][:MOST]

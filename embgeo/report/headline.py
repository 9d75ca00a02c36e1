"""The numbers of the first screen, each with a reading that needs no paper."""

from __future__ import annotations

from dataclasses import dataclass

from embgeo.core.quantities import cosine, frequency, isotropy, spectrum, subspace
from embgeo.core.values import Quantity, Scalar
from embgeo.result.analysis import Analysis

#: Rows of the headline table, at most.
MOST = 10


@dataclass(frozen=True, slots=True)
class HeadlineText:
    """How a number is called and read on the first screen."""

    quantity: Quantity
    label: str
    reading: str

    @property
    def name(self) -> str:
        """The name of the quantity."""
        return self.quantity.name


HEADLINES: tuple[HeadlineText, ...] = (
    HeadlineText(cosine.MEAN, "Mean cosine", "0: no common direction; 1: all parallel"),
    HeadlineText(cosine.CONE_HALF_ANGLE_MEDIAN, "Median angle to mean", "90°: none; small: a cone"),
    HeadlineText(spectrum.TOP_SHARE, "Energy of direction 1", "1: one direction holds all"),
    HeadlineText(spectrum.EFFECTIVE_RANK, "Effective rank", "directions in use, at most d"),
    HeadlineText(isotropy.I1, "I1, as stored", "1: directions alike; falls with norms"),
    HeadlineText(isotropy.I1_UNIT, "I1, mean norm 1", "the same without the scale"),
    HeadlineText(isotropy.ISOSCORE, "IsoScore", "1: variance even; 0: on one axis"),
    HeadlineText(frequency.PROBE_AUC, "Rare/popular probe, AUC", "0.5: not told apart; 1: always"),
    HeadlineText(
        frequency.NEIGHBOR_RARITY_RARE, "Rare beside rare", "reference: frequency ignored"
    ),
    HeadlineText(frequency.NORM_RATIO, "Norm, popular : rare", "1: norms ignore frequency"),
    HeadlineText(subspace.DISTANCE, "Input to output space", "0: the same; 1: orthogonal"),
    HeadlineText(spectrum.ENERGY_90, "Directions for 90 %", "few: a collapsed spectrum"),
    HeadlineText(cosine.POSITIVE_SHARE, "Positive cosines", "0.5: half; 1: a cone"),
)


def headline_rows(analysis: Analysis) -> list[tuple[HeadlineText, Scalar]]:
    """The first readings that the analysis holds, in the order of importance."""
    pairs = [(text, analysis.scalar(text.name)) for text in HEADLINES]
    return [(text, scalar) for text, scalar in pairs if scalar is not None][:MOST]

"""The spectrum that limits are relative to: eigenvalues that fall like λ_k ∝ 1/k.

Trained representations have spectra near this power law (Stringer et al. 2019, Nature 571; Agrawal
et al. 2022, α-ReQ, NeurIPS). The fewer dimensions there are, the larger the share of its first
direction: limits that are multiples of it follow d.
"""

from __future__ import annotations

import math

from embgeo.diagnosis.finding import Numbers, dimensions


def ordinary_share(analysis: Numbers) -> float:
    """Share of the first eigenvalue, 1/H_n with n the smaller of d and the number of rows."""
    return 1.0 / sum(1.0 / k for k in range(1, _directions(analysis) + 1))


def ordinary_squares(analysis: Numbers) -> float:
    """Sum of the squared shares: the mean squared cosine of rows with that spectrum."""
    share = ordinary_share(analysis)
    return sum((share / k) ** 2 for k in range(1, _directions(analysis) + 1))


def relative_odds(share: float, ordinary: float) -> float:
    """The odds share/(1 − share) over those of the ordinary share; infinite at a share of 1.

    0 if the ordinary share is 1: a single direction cannot hold more than its share.
    """
    if ordinary >= 1.0:
        return 0.0
    if share >= 1.0:
        return math.inf
    return (share / (1.0 - share)) / (ordinary / (1.0 - ordinary))


def _directions(analysis: Numbers) -> int:
    kept = int(analysis.provenance.get("kept") or 0)
    return min(dimensions(analysis), kept) if kept else dimensions(analysis)

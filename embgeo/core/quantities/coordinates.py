"""Coordinates that hold more than their share: rogue dimensions."""

from __future__ import annotations

from embgeo.core.values import Quantity

_ROGUE = "Timkey & van Schijndel 2021, §3; Kovaleva et al. 2021, §3"

VARIANCE_SHARE = Quantity(
    "coordinates.variance_share",
    "Largest variance share of a coordinate",
    "How much of the total variance one coordinate of the rows holds; 1/d if all hold the same.",
    "max_k Var(w_k) / Σ_j Var(w_j)",
    _ROGUE,
)
VARIANCE_RATIO = Quantity(
    "coordinates.variance_ratio",
    "Largest over median variance of a coordinate",
    "How far the widest coordinate stands out. Near 1: none does; 100: one coordinate spreads ten "
    "times as far as an ordinary one, whatever its mean.",
    "max_k Var(w_k) / median_k Var(w_k)",
    _ROGUE,
)
FIRST_DIRECTION_SHARE = Quantity(
    "coordinates.first_direction_share",
    "Largest coordinate of the first direction",
    "Largest squared entry of the strongest right singular vector. Near 1: that direction is a "
    "single coordinate; 2·ln(d)/d for a direction without preference.",
    "max_k v₁ₖ²",
    _ROGUE,
)


def _mean_cosine(count: int, title: str) -> Quantity:
    return Quantity(
        f"coordinates.mean_cosine_without_{count}",
        f"Mean cosine without {title}",
        "The mean cosine after the coordinates of largest energy are set to zero. Far below the "
        "mean cosine itself: these coordinates make the cone.",
        "mean cosine of w_i with w_ik = 0 for the k of largest Σ_i w_ik²",
        "Timkey & van Schijndel 2021, §3.2",
    )


def _i1(count: int, title: str) -> Quantity:
    return Quantity(
        f"coordinates.i1_without_{count}",
        f"I1, unit rows, without {title}",
        "I1 of the rows divided by their norms, after the coordinates of largest energy are set "
        "to zero; E is made of the eigenvectors of what is left.",
        "min_E Z(a) / max_E Z(a) of w_i / ‖w_i‖ with w_ik = 0 for the k of largest Σ_i w_ik²",
        "Timkey & van Schijndel 2021, §3.2; Mu & Viswanath 2018",
    )


_TITLES = {1: "the top coordinate", 3: "the top 3 coordinates", 5: "the top 5 coordinates"}
MEAN_COSINE_WITHOUT_1, MEAN_COSINE_WITHOUT_3, MEAN_COSINE_WITHOUT_5 = (
    _mean_cosine(count, title) for count, title in _TITLES.items()
)
I1_WITHOUT_1, I1_WITHOUT_3, I1_WITHOUT_5 = (_i1(count, title) for count, title in _TITLES.items())
LARGEST = Quantity(
    "coordinates.largest",
    "Coordinates of largest energy",
    "The coordinates that hold most of the sum of squares, with what each makes of the variance, "
    "of the mean cosine and of the strongest direction.",
    "Σ_i w_ik² / ‖W‖_F²",
    _ROGUE,
)

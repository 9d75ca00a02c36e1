"""Coordinates that hold more than their share: rogue dimensions."""

from embgeo.core.values import Quantity

_ROGUE = "Timkey & van Schijndel 2021, §3; Kovaleva et al. 2021, §3"

VARIANCE_RATIO = Quantity(
    "coordinates.variance_ratio",
    "Largest over median variance of a coordinate",
    "How far the widest coordinate stands out. Near 1: none does; 100: one coordinate spreads ten "
    "times as far as an ordinary one, regardless of its mean.",
    "max_k Var(w_k) / median_k Var(w_k)",
    _ROGUE,
    why="verdict: rogue coordinates",
)
ROGUE_COORDINATES = Quantity(
    "coordinates.rogue_coordinates",
    "Wide coordinates",
    "Coordinates with at least 25 times the variance of the median one, five times its spread, "
    "that stand apart: each has more than three times the variance of any other. 0 where variances "
    "fall gradually.",
    "largest k : v_k ≥ 25·median v and v_k > 3·v_(k+1), v = falling Var(w_j)",
    _ROGUE,
    why="verdict: rogue coordinates",
)
ROGUE_SHARE = Quantity(
    "coordinates.rogue_share",
    "Variance share of wide coordinates",
    "How much of the total variance the wide coordinates hold together.",
    "Σ Var(w_k) over wide coordinates / Σ_j Var(w_j)",
    _ROGUE,
    why="verdict: rogue coordinates",
)
MEAN_COSINE_WITHOUT_1 = Quantity(
    "coordinates.mean_cosine_without_1",
    "Mean cosine without the top coordinate",
    "The mean cosine after the coordinate with the largest sum of squares is set to zero. Far "
    "below the mean cosine: this coordinate makes the cone.",
    "mean cosine of w_i with w_ik = 0 for the k of largest Σ_i w_ik²",
    "Timkey & van Schijndel 2021, §3.2",
    why="verdict: rogue coordinates",
)
LARGEST = Quantity(
    "coordinates.largest",
    "Largest coordinates",
    "The coordinates that hold most of the sum of squares, with what each makes of the variance, "
    "of the mean cosine and of the top direction.",
    "Σ_i w_ik² / ‖W‖_F²",
    _ROGUE,
)

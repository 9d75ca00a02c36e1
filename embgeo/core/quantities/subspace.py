"""Input embedding against output embedding."""

from embgeo.core.values import Quantity

DISTANCE = Quantity(
    "subspace.distance",
    "Subspace distance, input to output",
    "How far the column spaces of the input embedding and of the output matrix lie apart, "
    "over the same tokens. 0: one contains the other; 1: orthogonal. Two random subspaces lie "
    "near the chance level, close to 1.",
    "√( ‖V − UUᵀV‖_F² / C ) = √(mean sin²θ_i)",
    "Inan et al. 2017, appendix B",
    why="chart of sweeps; gate; Inan et al. 2017, appendix B",
)
PRINCIPAL_ANGLES = Quantity(
    "subspace.principal_angles",
    "Principal angles, input to output",
    "The angles between the two column spaces, smallest first. All near 0°: the same space.",
    "θ_i, cos θ_i the singular values of UᵀV",
    "Inan et al. 2017, appendix B; Björck & Golub 1973",
    unit="°",
)

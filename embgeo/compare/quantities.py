"""The facts of every number that takes two matrices (definitions, section 9)."""

from __future__ import annotations

from embgeo.values import Quantity

SUBSPACE_DISTANCE = Quantity(
    "compare.subspace_distance",
    "Subspace distance",
    "How far the column spaces of the two matrices lie apart, over their shared tokens. 0: one "
    "contains the other; 1: orthogonal. Two random subspaces lie near the chance level.",
    "√( ‖V − UUᵀV‖_F² / C ) = √(mean sin²θ_i)",
    "Inan et al. 2017, appendix B",
)
PRINCIPAL_ANGLES = Quantity(
    "compare.principal_angles",
    "Principal angles",
    "The angles between the two column spaces, smallest first. All near 0°: the same space.",
    "θ_i, cos θ_i the singular values of UᵀV",
    "Inan et al. 2017, appendix B; Björck & Golub 1973",
    unit="°",
)
CKA = Quantity(
    "compare.cka",
    "Linear CKA",
    "How similar the two matrices are as pictures of which tokens lie near which, whatever the "
    "rotation and the scale. 1: equal but for these; near the chance level: unrelated.",
    "‖YᵀX‖_F² / (‖XᵀX‖_F ‖YᵀY‖_F), X and Y centred",
    "Kornblith et al. 2019",
)
PROCRUSTES = Quantity(
    "compare.procrustes",
    "Procrustes residual",
    "What is left of the difference of the two matrices after the best rotation, both scaled to "
    "Frobenius norm 1. 0: one is a rotated copy of the other; √2: nothing in common.",
    "min_Q ‖X/‖X‖_F − (Y/‖Y‖_F)·Q‖_F, QᵀQ = 1",
    "Schönemann 1966; Williams et al. 2021",
)
NEIGHBOR_OVERLAP = Quantity(
    "compare.neighbor_overlap",
    "Neighbour overlap",
    "Share of a token's nearest neighbours that it has in both matrices, mean over tokens. 1: all "
    "neighbourhoods are the same; near the chance level: none survived.",
    "mean |A_i ∩ B_i| / |A_i ∪ B_i|, A_i and B_i the k nearest by cosine",
    "mean Jaccard index of the nearest neighbours; Hamilton et al. 2016",
)
OVERLAP_HISTOGRAM = Quantity(
    "compare.overlap_histogram",
    "Neighbour overlap by token",
    "How many of the tokens that were looked at keep which share of their neighbours.",
    "|A_i ∩ B_i| / |A_i ∪ B_i|",
    "mean Jaccard index of the nearest neighbours; Hamilton et al. 2016",
)
MOVED = Quantity(
    "compare.moved",
    "Tokens that moved most",
    "The tokens whose nearest neighbours changed most, with those before and after.",
    "smallest |A_i ∩ B_i| / |A_i ∪ B_i|",
    "Hamilton et al. 2016",
)

#: Numbers of a pair, in the order in which they are shown.
SCALARS = (SUBSPACE_DISTANCE, CKA, PROCRUSTES, NEIGHBOR_OVERLAP)

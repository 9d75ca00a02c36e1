"""Two matrices over the same rows."""

from embgeo.core.values import Quantity

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
    "How similarly the two matrices arrange the tokens, independent of rotation and scale. 1: "
    "equal up to these; near the chance level: unrelated.",
    "‖YᵀX‖_F² / (‖XᵀX‖_F ‖YᵀY‖_F), X and Y centered",
    "Kornblith et al. 2019",
)
CKA_DEBIASED = Quantity(
    "compare.cka_debiased",
    "Linear CKA, debiased",
    "Linear CKA from unbiased estimates, which few tokens and many columns do not raise. 1: equal "
    "but for rotation and scale; 0: unrelated, also below 0 by chance.",
    "h(K, L) / √(h(K, K)·h(L, L)), h(K, L) = Σ_ij K_ij L_ij − S/(S − 2)·Σ_i K_ii L_ii + "
    "tr K·tr L/((S − 1)(S − 2)), K = XXᵀ and L = YYᵀ, X and Y centered",
    "Song et al. 2012, Eq. 5 (HSIC₁); Kornblith et al. 2019; Murphy et al. 2024",
)
CKA_P = Quantity(
    "compare.cka_p",
    "Chance of the debiased CKA",
    "How often tokens paired at random give a debiased CKA that is at least as large. Small: the "
    "two matrices are related.",
    "(1 + #{π : CKA(X, Y_π) ≥ CKA(X, Y)}) / (1 + #π), random permutations π of drawn tokens",
    "permutation test; Phipson & Smyth 2010",
)
PROCRUSTES = Quantity(
    "compare.procrustes",
    "Procrustes residual",
    "What is left of the difference of the two matrices after the best rotation, both scaled to "
    "Frobenius norm 1. 0: one is a rotated copy of the other; √2: nothing in common.",
    "min_Q ‖X/‖X‖_F − (Y/‖Y‖_F)·Q‖_F, QᵀQ = 1",
    "Schönemann 1966; Williams et al. 2021",
)
RELATIVE_CHANGE = Quantity(
    "compare.relative_change",
    "Relative change",
    "Length of the difference of the two matrices, entry by entry, next to that of the first. Says "
    "how far training moved the rows; a rotation counts as movement.",
    "‖Y − X‖_F / ‖X‖_F",
    "Frobenius norm",
)
MATRIX_COSINE = Quantity(
    "compare.matrix_cosine",
    "Cosine of the matrices",
    "The two matrices as two long vectors: the cosine of the angle between them.",
    "⟨X, Y⟩_F / (‖X‖_F ‖Y‖_F)",
    "Frobenius inner product",
)
TOKEN_COSINE = Quantity(
    "compare.token_cosine",
    "Cosine by token",
    "The cosine between a token's row in one matrix and in the other, mean over tokens; a long row "
    "counts as much as a short one. 1: every row keeps its direction; 0: none does, on average.",
    "mean ⟨x_i, y_i⟩ / (‖x_i‖ ‖y_i‖)",
    "mean cosine of paired rows",
)
CHANGE_EFFECTIVE_RANK = Quantity(
    "compare.change_effective_rank",
    "Effective rank of the change",
    "Over how many directions the difference of the two matrices is spread. 1: every row moved "
    "along one direction; d: evenly in all.",
    "exp(−Σ p_k ln p_k), p_k = σ_k / Σσ, σ the singular values of Y − X",
    "Roy & Vetterli 2007",
)
NEIGHBOR_OVERLAP = Quantity(
    "compare.neighbor_overlap",
    "Neighbor overlap",
    "Of the tokens that are among a token's nearest neighbors in either matrix, the share that is "
    "in both; mean over tokens. 1: all neighborhoods are the same; near the chance level: none "
    "survived.",
    "mean |A_i ∩ B_i| / |A_i ∪ B_i|, A_i and B_i the k nearest by cosine",
    "mean Jaccard index of the nearest neighbors; Hamilton et al. 2016",
)
MOVED = Quantity(
    "compare.moved",
    "Tokens that moved most",
    "The tokens that lost most cosine with their former nearest neighbors, on average, with their "
    "neighbors before and after.",
    "largest mean over j in A_i of cos(x_i, x_j) − cos(y_i, y_j)",
    "Hamilton et al. 2016",
)

#: Numbers of a pair, in the order in which they are shown.
SCALARS = (
    SUBSPACE_DISTANCE,
    CKA,
    CKA_DEBIASED,
    CKA_P,
    PROCRUSTES,
    NEIGHBOR_OVERLAP,
    RELATIVE_CHANGE,
    MATRIX_COSINE,
    TOKEN_COSINE,
    CHANGE_EFFECTIVE_RANK,
)

#: What two equal matrices have.
OF_EQUALS = {
    SUBSPACE_DISTANCE: 0.0,
    CKA: 1.0,
    CKA_DEBIASED: 1.0,
    PROCRUSTES: 0.0,
    NEIGHBOR_OVERLAP: 1.0,
    RELATIVE_CHANGE: 0.0,
    MATRIX_COSINE: 1.0,
    TOKEN_COSINE: 1.0,
}

#: Those that sum up a pair where there is no room for more.
HEADLINE = (SUBSPACE_DISTANCE, CKA, PROCRUSTES, NEIGHBOR_OVERLAP)

"""Hidden states against the hull of the output rows, and the final LayerNorm."""

from embgeo.core.values import Quantity

_GAO = "Gao et al. 2019, §4.1, Theorem 2"

HULL_DISTANCE = Quantity(
    "hidden.hull_distance",
    "Distance of the origin to the hull",
    "How far the origin lies from the convex hull of the hidden states. Above 0: there is a "
    "direction that every hidden state points away from, and rows of unseen tokens drift along "
    "it; 0: there is none.",
    "min ‖Σ λ_i h_i‖ over λ ≥ 0, Σλ = 1",
    _GAO,
    why="Gao et al. 2019, Theorem 2",
)
MARGIN = Quantity(
    "hidden.margin",
    "Margin of the negative direction",
    "By how much every hidden state lies on the far side of the origin: above 0, the certificate "
    "that it is outside.",
    "−max_i ⟨v, h_i⟩ for the unit direction v found",
    _GAO,
    why="Gao et al. 2019, Theorem 2: the certificate",
)
LAYERNORM_CONDITION = Quantity(
    "hidden.layernorm_condition",
    "LayerNorm condition",
    "Whether the final LayerNorm alone keeps the origin out of the hull: any value other than 0 "
    "does. Relative to its own scale, so that 1 is as far as it can be.",
    "|1ᵀ(b/g)| / Σ|b_k/g_k|",
    "Gao et al. 2019, appendix C",
    why="Gao et al. 2019, appendix C",
)
WEIGHTS = Quantity(
    "hidden.weights",
    "Convex weights",
    "All hidden states of the combination with their weights: the weighted sum verifies that "
    "the origin is inside.",
    "λ_i",
    _GAO,
)
DIRECTION = Quantity(
    "hidden.direction",
    "Uniformly negative direction",
    "Entries of the unit direction v that every hidden state points away from: the products "
    "with all of them verify that the origin is outside.",
    "v",
    _GAO,
)

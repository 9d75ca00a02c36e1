"""Rows one by one: norms, fit with the tokenizer, hubs, dimension."""

from embgeo.core.values import Quantity

DAMAGED_GAP = Quantity(
    "tokens.damaged_gap",
    "Gap between norms",
    "How many powers of ten lie between the norms of damaged rows and those of all others; where "
    "no rows are damaged, the widest gap between the smallest norms.",
    "log₁₀ of the ratio of neighboring norms",
    unit="decades",
    why="verdict: which tokens stand out",
)
NORM_MEDIAN = Quantity(
    "tokens.norm_median",
    "Median norm",
    "Median norm of the rows, damaged ones included.",
    "median_i ‖w_i‖₂",
    why="verdict: rows; chart of training",
)
NORM_RMS = Quantity(
    "tokens.norm_rms",
    "Root mean square norm",
    "Root mean square of the norms of the rows that are not damaged.",
    "√(Σ‖w_i‖² / M)",
    why="verdict: collapsed spectrum; embgeo repair",
)
NORM_VARIATION = Quantity(
    "tokens.norm_variation",
    "Variation of norms",
    "How much norms vary, relative to their mean; of independent normal entries about 1/√(2d), of "
    "uniform ones less.",
    "standard deviation of ‖w_i‖ / mean ‖w_i‖",
    why="verdict: rows like those of an initialization",
)
LONG_ROWS = Quantity(
    "tokens.long_rows",
    "Long rows",
    "Rows with a norm that lognormal norms with the same quartiles would exceed in one matrix "
    "of a thousand.",
    "#{i : ln ‖w_i‖ > median + s·Φ⁻¹(1 − 0.001/M)}; s: interquartile range of ln ‖w‖ over 1.349, "
    "at least that of Gaussian rows, 1/√(2d)",
    why="verdict: long rows",
)
LONG_ROWS_ENERGY = Quantity(
    "tokens.long_rows_energy",
    "Variance in long rows",
    "Share of the sum of squared norms that the long rows hold.",
    "Σ ‖w_i‖² over long rows / Σ ‖w_i‖²",
    why="verdict: long rows",
)
MISSING_ROWS = Quantity(
    "tokens.missing_rows",
    "Tokens without a row",
    "Tokens of the tokenizer, else of the configuration, for which the matrix has no row.",
    "#{tokens with an id of at least N}",
    better="lower",
    why="gate preset finetune-ready",
)
TIED_AS_CONFIGURED = Quantity(
    "tokens.tied_as_configured",
    "Tied as configured",
    "Whether input embedding and output matrix are one as the model's configuration says "
    "(tie_word_embeddings): 1 if what the file holds agrees, 0 if not.",
    "1 or 0",
    better="higher",
    why="gate preset finetune-ready",
)
NORM = Quantity("tokens.norm", "Norm", "Norm of the token's row.", "‖w_i‖₂", "Gong et al. 2018, §3")
NORMS = Quantity(
    "tokens.norms",
    "Norms",
    "Distribution of the norms of the rows.",
    "‖w_i‖₂",
    "Gong et al. 2018, §3",
)
SMALLEST_NORMS = Quantity(
    "tokens.smallest_norms", "Smallest norms", "The tokens with the shortest rows.", "‖w_i‖₂"
)
LARGEST_NORMS = Quantity(
    "tokens.largest_norms", "Largest norms", "The tokens with the longest rows.", "‖w_i‖₂"
)
NEAREST_TO_MEAN = Quantity(
    "tokens.nearest_to_mean",
    "Closest to the mean direction",
    "The tokens whose rows point most nearly along the mean direction.",
    "angle(w_i, Σŵ_j)",
)
HUBNESS = Quantity(
    "tokens.hubness",
    "Hubness",
    "Skewness of how often a token is among the nearest neighbors of others. 0: all equally "
    "often; large: a few hubs are neighbors of nearly everything. It depends on the number of "
    "rows.",
    "skewness of N_k(i) = #{j : i among the k nearest of j by cosine}, equally near rows sharing",
    "Radovanović et al. 2010",
    why="question: are a few rows neighbors of nearly everything?",
)
HUBS = Quantity(
    "tokens.hubs",
    "Hubs",
    "The tokens that are most often among the nearest neighbors of others; the mean is k.",
    "N_k(i)",
    "Radovanović et al. 2010",
)
INTRINSIC_DIMENSION = Quantity(
    "tokens.intrinsic_dimension",
    "Intrinsic dimension",
    "In how many dimensions the rows spread locally, from the ratio of the distances to the two "
    "nearest rows. Every point counts once: equal rows are one.",
    "TwoNN: (n − 1) / Σ ln(r₂/r₁)",
    "Facco et al. 2017 (maximum-likelihood form)",
    why="question: in how many dimensions do rows spread locally?",
)
UNREACHABLE_ROWS = Quantity(
    "tokens.unreachable_rows",
    "Unreachable tokens",
    "Tokens that no text leads to: decoded and encoded again, alone or behind another character, "
    "they become other tokens. Their input rows are never used.",
    "#{i : i ∉ encode(decode(i))}",
    "Land & Bartolo 2024, §3.1",
    why="question: which tokens does no text lead to?",
)
UNREACHABLE = Quantity(
    "tokens.unreachable",
    "Unreachable tokens",
    "Tokens that no text leads to, the longest rows first.",
    "‖w_i‖₂",
    "Land & Bartolo 2024, §3.1",
)

"""Rows one by one: what was left out, norms, duplicates, groups, hubs."""

from __future__ import annotations

from embgeo.core.values import Quantity

MASKED_ROWS = Quantity(
    "tokens.masked_rows",
    "Rows masked",
    "Rows left out because no token belongs to them (padding beyond the vocabulary) or on request.",
    "count",
)
ZERO_ROWS = Quantity(
    "tokens.zero_rows",
    "Zero rows",
    "Rows that are exactly zero, left out of every statistic.",
    "#{i : w_i = 0}",
)
NONFINITE_ROWS = Quantity(
    "tokens.nonfinite_rows",
    "Non-finite rows",
    "Rows with an infinite or NaN entry, left out of every statistic.",
    "#{i : w_i has an entry that is not finite}",
)
DAMAGED_ROWS = Quantity(
    "tokens.damaged_rows",
    "Damaged rows",
    "Rows of the vocabulary that are zero, non-finite, or far shorter than all others: below the "
    "widest gap between norms, if that is a factor of 10 or more with at most 5 % of the rows "
    "below it, or below --min-norm. They are left out of every other statistic.",
    "#{i : w_i = 0, w_i not finite, or ‖w_i‖ below the gap}",
    better="lower",
)
DAMAGED_GAP = Quantity(
    "tokens.damaged_gap",
    "Gap between norms",
    "How many powers of ten lie between the norms of damaged rows and those of all others; where "
    "no row is damaged, the widest gap among the smallest norms.",
    "log₁₀ of the ratio of neighboring norms",
    unit="decades",
)
CONSTANT_ROWS = Quantity(
    "tokens.constant_rows",
    "Constant rows",
    "Rows whose entries are all alike, as an initialization leaves them; they are kept.",
    "#{i : standard deviation of the entries of w_i < 1e-8·‖w_i‖}",
    better="lower",
)
MEAN_ROWS = Quantity(
    "tokens.mean_rows",
    "Rows equal to the mean row",
    "Rows that equal the mean row within the rounding of the stored type, as tokens that were "
    "added with the mean of the others and never trained; they are kept.",
    "#{i : ‖w_i − μ‖ ≤ ε·√(mean ‖w_j‖²), and less than a tenth of the median distance}; ε: "
    "distance of 1 to the next larger number of the stored type",
    better="lower",
)
ONE_SIDED_ROWS = Quantity(
    "tokens.one_sided_rows",
    "One-sided rows",
    "Tokens whose row is damaged in one of the input embedding and the output matrix, and not in "
    "the other.",
    "#{i : exactly one of input and output row is damaged}",
    better="lower",
)
NORM_MIN = Quantity(
    "tokens.norm_min",
    "Smallest norm",
    "Norm of the shortest row of the vocabulary, damaged ones included.",
    "min_i ‖w_i‖₂",
)
NORM_MEDIAN = Quantity(
    "tokens.norm_median",
    "Median norm",
    "Median norm of the rows, damaged ones included.",
    "median_i ‖w_i‖₂",
)
NORM_MAX = Quantity(
    "tokens.norm_max", "Largest norm", "Norm of the longest row of the vocabulary.", "max_i ‖w_i‖₂"
)
NORM_RMS = Quantity(
    "tokens.norm_rms",
    "Root mean square norm",
    "Root mean square of the norms of the rows that are not damaged.",
    "√(Σ‖w_i‖² / M)",
)
NORM_SPREAD = Quantity(
    "tokens.norm_spread",
    "Spread of norms",
    "How many times longer the long rows are than the short ones, damaged rows included.",
    "99th over 1st percentile of ‖w_i‖₂",
)
LONG_ROWS = Quantity(
    "tokens.long_rows",
    "Long rows",
    "Rows with a norm that lognormal norms with the same quartiles would exceed in one matrix "
    "of a thousand.",
    "#{i : ln ‖w_i‖ > median + s·Φ⁻¹(1 − 0.001/M)}; s: interquartile range of ln ‖w‖ over 1.349, "
    "at least that of Gaussian rows, 1/√(2d)",
)
LONG_ROWS_ENERGY = Quantity(
    "tokens.long_rows_energy",
    "Energy of long rows",
    "Share of the sum of squared norms that the long rows hold.",
    "Σ ‖w_i‖² over long rows / Σ ‖w_i‖²",
)
OUTPUT_DAMAGED_ROWS = Quantity(
    "tokens.output_damaged_rows",
    "Damaged output rows",
    "Damaged rows of the output matrix of an untied model, by the same rule.",
    "as for damaged rows",
    better="lower",
)
OUTPUT_DAMAGED_GAP = Quantity(
    "tokens.output_damaged_gap",
    "Gap between output norms",
    "As the gap between norms, for the rows of the output matrix.",
    "log₁₀ of the ratio of neighboring norms",
    unit="decades",
)
OUTPUT_NORM_MIN = Quantity(
    "tokens.output_norm_min",
    "Smallest output norm",
    "Norm of the shortest row of the output matrix of an untied model.",
    "min_i ‖u_i‖₂",
)
OUTPUT_NORM_MEDIAN = Quantity(
    "tokens.output_norm_median",
    "Median output norm",
    "Median norm of the rows of the output matrix.",
    "median_i ‖u_i‖₂",
)
OUTPUT_NORM_MAX = Quantity(
    "tokens.output_norm_max",
    "Largest output norm",
    "Norm of the longest row of the output matrix.",
    "max_i ‖u_i‖₂",
)
OUTPUT_NORM_RMS = Quantity(
    "tokens.output_norm_rms",
    "Root mean square output norm",
    "Root mean square of the norms of the rows of the output matrix that are not damaged.",
    "√(mean of ‖u_i‖²)",
)
OUTPUT_NORM_SPREAD = Quantity(
    "tokens.output_norm_spread",
    "Spread of output norms",
    "As the spread of norms, for the rows of the output matrix.",
    "99th over 1st percentile of ‖u_i‖₂",
)
DAMAGED = Quantity(
    "tokens.damaged",
    "Damaged and untrained rows",
    "The tokens whose rows are damaged, constant or equal to the mean row, on either side of an "
    "untied model.",
    "state and ‖w_i‖₂",
)
SPECIAL = Quantity(
    "tokens.special",
    "Special tokens",
    "Tokens that the tokenizer or the chat template names, with the norms of their rows: a chat "
    "template that uses a row which was never trained makes fine-tuning fail.",
    "‖w_i‖₂ and the share of the vocabulary with a norm at most as large",
)
SPECIAL_DAMAGED_ROWS = Quantity(
    "tokens.special_damaged_rows",
    "Damaged special tokens",
    "Special tokens with a damaged row, in the input embedding or the output matrix; a zero row of "
    "the padding token is intended and does not count.",
    "#{special i : row i is damaged}",
    better="lower",
)
MISSING_ROWS = Quantity(
    "tokens.missing_rows",
    "Tokens without a row",
    "Tokens of the tokenizer for which the matrix has no row.",
    "#{tokens with an id of at least N}",
    better="lower",
)
SURPLUS_ROWS = Quantity(
    "tokens.surplus_rows",
    "Rows beyond the vocabulary",
    "Rows at the end to which no token of the tokenizer belongs; they are padding and left out, "
    "unless they are kept by request.",
    "#{i : no token has the id i}",
)
TIED_AS_CONFIGURED = Quantity(
    "tokens.tied_as_configured",
    "Tied as configured",
    "Whether input embedding and output matrix are one as the model's configuration says "
    "(tie_word_embeddings): 1 if what the file holds agrees, 0 if not.",
    "1 or 0",
    better="higher",
)
DUPLICATE_ROWS = Quantity(
    "tokens.duplicate_rows",
    "Duplicate rows",
    "Rows that equal an earlier row exactly; they are kept.",
    "#{i : w_i = w_j for some j < i}",
)
MEAN_COSINE_DISTINCT = Quantity(
    "tokens.mean_cosine_distinct",
    "Mean cosine of distinct rows",
    "The mean cosine with every row counted once, however often it occurs: what is left of the "
    "cone without duplicates.",
    "(‖Σŵ_i‖² − M) / (M(M−1)) over the M distinct rows",
    "Gao et al. 2019, §4",
)
NORM = Quantity("tokens.norm", "Norm", "Norm of the token's row.", "‖w_i‖₂", "Gong et al. 2018, §3")
NORMS = Quantity(
    "tokens.norms",
    "Norms",
    "Distribution of the norms of the rows.",
    "‖w_i‖₂",
    "Gong et al. 2018, §3",
)
DUPLICATES = Quantity(
    "tokens.duplicates",
    "Duplicate rows",
    "Groups of tokens whose rows are equal in every entry.",
    "w_i = w_j",
)
SMALLEST_NORMS = Quantity(
    "tokens.smallest_norms", "Smallest norms", "The tokens with the shortest rows.", "‖w_i‖₂"
)
LARGEST_NORMS = Quantity(
    "tokens.largest_norms", "Largest norms", "The tokens with the longest rows.", "‖w_i‖₂"
)
NEAREST_TO_MEAN = Quantity(
    "tokens.nearest_to_mean",
    "Nearest to the common direction",
    "The tokens whose rows point most nearly along the mean direction.",
    "angle(w_i, Σŵ_j)",
)
FARTHEST_FROM_MEAN = Quantity(
    "tokens.farthest_from_mean",
    "Farthest from the common direction",
    "The tokens whose rows point farthest from the mean direction.",
    "angle(w_i, Σŵ_j)",
)
GROUPS = Quantity(
    "tokens.groups",
    "Groups of tokens",
    "Tokens that are not ordinary words, recognized by their spelling or their count. Their rows "
    "often stand apart and explain outliers in the picture.",
    "median ‖w‖ of the group",
)
UNDERTRAINED = Quantity(
    "tokens.undertrained",
    "Under-trained tokens",
    "Tokens that look as if training hardly touched them, most suspicious first. An indicator, "
    "not a proof: ask the model to repeat them.",
    "tied: 1 − cos(w_i, mean of unused rows), first right singular vector of W removed from "
    "both; untied: ‖w_i‖ of the input row",
    "Land & Bartolo 2024, §3",
)
UNDERTRAINED_INDICATOR = Quantity(
    "tokens.undertrained_indicator",
    "Under-training indicator",
    "How much a token looks under-trained: the smaller, the more. In an untied model the norm "
    "of the input row, in a tied one the cosine distance to unused tokens.",
    "as in the table of under-trained tokens",
    "Land & Bartolo 2024, §3",
)
HUBNESS = Quantity(
    "tokens.hubness",
    "Hubness",
    "Skewness of how often a token is among the nearest neighbors of others. 0: all equally "
    "often; large: a few hubs are neighbors of nearly everything. It depends on the number of "
    "rows.",
    "skewness of N_k(i) = #{j : i among the k nearest of j by cosine}, equally near rows sharing",
    "Radovanović et al. 2010",
)
ANTIHUB_SHARE = Quantity(
    "tokens.antihub_share",
    "Anti-hubs",
    "Share of the tokens that are among the nearest neighbors of no other. It depends on the "
    "number of rows.",
    "#{i : N_k(i) = 0} / M",
    "Feldbauer et al. 2018; Radovanović et al. 2010",
)
ROBIN_HOOD = Quantity(
    "tokens.robin_hood",
    "Robin Hood index",
    "Share of all places among nearest neighbors that would have to change hands for every token "
    "to have equally many. 0: all have; near 1: a few hubs have them all. It depends on the number "
    "of rows.",
    "Σ_i |N_k(i) − k| / (2·M·k)",
    "Feldbauer et al. 2018",
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
    "nearest rows.",
    "TwoNN: (n − 1) / Σ ln(r₂/r₁)",
    "Facco et al. 2017 (maximum-likelihood form)",
)
INTRINSIC_DIMENSION_TRIMMED = Quantity(
    "tokens.intrinsic_dimension_trimmed",
    "Intrinsic dimension, trimmed",
    "The same without the tenth of the rows whose second neighbor is much farther than the first: "
    "a few outliers do not move it.",
    "slope through the origin of −ln(1 − F) on ln(r₂/r₁), over the 90 % smallest ratios",
    "Facco et al. 2017 (its fitted form)",
)
LOCAL_DIMENSION = Quantity(
    "tokens.local_dimension",
    "Local dimension",
    "In how many dimensions the nearest twenty rows spread around a row, on average.",
    "1 / mean_i [ (1/(k−1)) Σ_(j<k) ln(T_k/T_j) ], T_j the distance of row i to its j-th nearest",
    "Levina & Bickel 2005, Eq. 8; mean after MacKay & Ghahramani 2005",
)
LOCAL_DIMENSIONS = Quantity(
    "tokens.local_dimensions",
    "Local dimensions",
    "Quantiles of the dimension around single rows, over all of them and by frequency.",
    "quantiles of 1 / [ (1/(k−1)) Σ_(j<k) ln(T_k/T_j) ]",
    "Levina & Bickel 2005, Eq. 8",
)

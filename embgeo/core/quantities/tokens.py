"""Rows one by one: what was left out, norms, duplicates, groups, hubs."""

from embgeo.core.values import Quantity

ZERO_ROWS = Quantity(
    "tokens.zero_rows",
    "Zero rows",
    "Rows that are exactly zero, left out of every statistic.",
    "#{i : w_i = 0}",
    why="gate: names the rows",
)
NONFINITE_ROWS = Quantity(
    "tokens.nonfinite_rows",
    "Non-finite rows",
    "Rows with an infinite or NaN entry, left out of every statistic.",
    "#{i : w_i has an entry that is not finite}",
    why="gate preset finetune-ready",
)
DAMAGED_ROWS = Quantity(
    "tokens.damaged_rows",
    "Damaged rows",
    "Rows of the vocabulary that are zero, non-finite, or far shorter than all others: below a "
    "gap between norms of a factor of 100 or more, regardless of their share, or of 10 or more "
    "with at most 5% of the rows below it, or below --min-norm. They are left out of every other "
    "statistic.",
    "#{i : w_i = 0, w_i not finite, or ‖w_i‖ below the gap}",
    better="lower",
    why="verdict: rows; gate preset finetune-ready",
)
DAMAGED_GAP = Quantity(
    "tokens.damaged_gap",
    "Gap between norms",
    "How many powers of ten lie between the norms of damaged rows and those of all others; where "
    "no rows are damaged, the widest gap between the smallest norms.",
    "log₁₀ of the ratio of neighboring norms",
    unit="decades",
    why="verdict: rows",
)
CONSTANT_ROWS = Quantity(
    "tokens.constant_rows",
    "Constant rows",
    "Rows whose entries are all alike, as an initialization leaves them; they are kept. 0 where "
    "entries take so few values that rows are constant by chance.",
    "#{i : standard deviation of the entries of w_i < 1e-8·‖w_i‖}, if more than E + 3√E, "
    "E = M·p^(d−1), p the share of w_ik = w_j(k+1) over pairs i, j of a sample of other rows",
    better="lower",
    why="verdict: rows",
)
MEAN_ROWS = Quantity(
    "tokens.mean_rows",
    "Rows equal to the mean row",
    "Rows that equal the mean row within the rounding of the stored type, or nearly, as tokens "
    "that were added with the mean of the others and never trained; they are kept.",
    "#{i : ‖w_i − μ‖ ≤ ε·√(mean ‖w_j‖²), and less than a tenth of the median distance; or at most "
    "a thousandth of it and a hundredth of ‖μ‖ (d ≥ 3)}; ε: distance of 1 to the next larger "
    "number of the stored type",
    better="lower",
    why="verdict: rows",
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
UNTOUCHED_ROWS = Quantity(
    "tokens.untouched_rows",
    "Untouched rows",
    "Rows of the shorter of two modes of norms, or below a gap of norms too wide for chance, that "
    "look like an initialization: training never touched them. They stay in every number; 0 where "
    "there are none.",
    "#{i : ln ‖w_i‖ below the valley between two modes, or at most x_(k)}, x_(k+1) − x_(k) ≥ "
    "s·max(1, ln(1000·M)/k) with s as for long rows and 5 ≤ k ≤ M/4, if a sample of these rows "
    "has a mean cosine and a top eigenvalue within chance, and norms no more varied than those of "
    "normal entries",
    "two modes: Müller & Sawitzki 1991; top eigenvalue: Johnstone 2001",
    better="lower",
    why="verdict: rows",
)
OUTPUT_DAMAGED_ROWS = Quantity(
    "tokens.output_damaged_rows",
    "Damaged output rows",
    "Damaged rows of the output matrix of an untied model, by the same rule.",
    "as for damaged rows",
    better="lower",
    why="gate preset finetune-ready",
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
    why="gate preset finetune-ready",
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
DUPLICATE_ROWS = Quantity(
    "tokens.duplicate_rows",
    "Duplicate rows",
    "Rows that equal an earlier row exactly; they are kept.",
    "#{i : w_i = w_j for some j < i}",
    why="verdict: duplicates",
)
NEAR_DUPLICATE_SHARE = Quantity(
    "tokens.near_duplicate_share",
    "Near-duplicates",
    "Share of the rows whose nearest other row has a cosine above 0.999.",
    "#{i : max_(j≠i) cos_ij > 0.999} / M",
    why="verdict: duplicates",
)
MEAN_COSINE_DISTINCT = Quantity(
    "tokens.mean_cosine_distinct",
    "Mean cosine of distinct rows",
    "The mean cosine with every row counted once, however often it occurs: what is left of the "
    "cone without duplicates.",
    "(‖Σŵ_i‖² − M) / (M(M−1)) over the M distinct rows",
    "Gao et al. 2019, §4",
    why="verdict: cone, duplicates",
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
    "Closest to the mean direction",
    "The tokens whose rows point most nearly along the mean direction.",
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

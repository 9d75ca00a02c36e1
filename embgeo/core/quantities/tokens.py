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
DUPLICATE_ROWS = Quantity(
    "tokens.duplicate_rows",
    "Duplicate rows",
    "Rows that equal an earlier row exactly; they are kept.",
    "#{i : w_i = w_j for some j < i}",
)
NORM = Quantity(
    "tokens.norm", "Norm", "Length of the token's row.", "‖w_i‖₂", "Gong et al. 2018, §3"
)
NORMS = Quantity(
    "tokens.norms", "Norms", "How many rows have which length.", "‖w_i‖₂", "Gong et al. 2018, §3"
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
    "Tokens that are no ordinary words, recognized by their spelling or their count. Their rows "
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
    "Small values look under-trained.",
    "as in the table of under-trained tokens",
    "Land & Bartolo 2024, §3",
)
HUBNESS = Quantity(
    "tokens.hubness",
    "Hubness",
    "Skewness of how often a token is among the nearest neighbors of others. 0: all equally "
    "often; large: a few hubs are neighbors of nearly everything.",
    "skewness of N_k(i) = #{j : i among the k nearest of j by cosine}, equally near rows sharing",
    "Radovanović et al. 2010",
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

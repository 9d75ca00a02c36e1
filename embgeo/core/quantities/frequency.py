"""Rare tokens against frequent ones: centers, norms, probe, neighbors."""

from embgeo.core.values import Quantity

_GONG = "Gong et al. 2018 (FRAGE), §3"

NORM_RATIO = Quantity(
    "frequency.norm_ratio",
    "Norm ratio, frequent over rare",
    "Median norm of the frequent rows over that of the rare ones. Above 1: rare tokens stay near "
    "the origin.",
    "median ‖w‖ of frequent / median ‖w‖ of rare",
    "Gong et al. 2018 (FRAGE), §3 “Explanation”",
    why="chart of training; Gong et al. 2018, §3",
)
NORM_SPEARMAN = Quantity(
    "frequency.norm_spearman",
    "Norm–frequency correlation",
    "Whether longer rows belong to more frequent tokens: 1 always, 0 no relation, −1 the reverse.",
    "Spearman ρ of ‖w_i‖ and log count",
    "Gong et al. 2018 (FRAGE), §3 “Explanation”",
    why="verdict: norm correlates with frequency",
)
BY_FREQUENCY_BIN = Quantity(
    "frequency.by_frequency_bin",
    "By frequency",
    "Ten bins of equally many tokens, the most frequent first: how long their rows are, how alike "
    "they are to each other and to the mean direction.",
    "within bins: median ‖w‖; mean cosine over pairs; mean cosine with Σŵ over all rows",
    _GONG,
)
LOG_COUNT = Quantity(
    "frequency.log_count",
    "Count",
    "How often the token occurs, on a logarithmic scale.",
    "log10(1 + count)",
    _GONG,
)
RANK = Quantity(
    "frequency.rank",
    "Frequency rank",
    "The token's place in the order of frequency, on a logarithmic scale.",
    "log10(rank)",
    _GONG,
)
PROBE_AUC = Quantity(
    "frequency.probe_auc",
    "Probe AUC",
    "How well a linear probe separates frequent from rare tokens by their rows alone, on rows it "
    "was not fitted to. 0.5: not at all; 1: perfectly.",
    "ROC AUC of out-of-fold scores, logistic regression, stratified 5-fold",
    "Gong et al. 2018 (FRAGE), §4 (its discriminator)",
    why="verdict: frequency can be read linearly; gate; Gong et al. 2018, §4",
)
NEIGHBOR_RARITY_RARE = Quantity(
    "frequency.neighbor_rarity_rare",
    "Rare neighbors of rare tokens",
    "Of the nearest neighbors of a rare token, the share that is rare. At the base rate "
    "neighborhoods ignore frequency; near 1 rare tokens huddle together.",
    "share of rare rows among the k nearest by cosine, mean over rare queries",
    "Gong et al. 2018 (FRAGE), §1 and §3",
    why="verdict: rare tokens are separated",
)
NEIGHBOR_RARITY_POPULAR = Quantity(
    "frequency.neighbor_rarity_popular",
    "Rare neighbors of frequent tokens",
    "Of the nearest neighbors of a frequent token, the share that is rare. At the base rate "
    "neighborhoods ignore frequency; near 0 frequent tokens keep to themselves.",
    "share of rare rows among the k nearest by cosine, mean over frequent queries",
    "Gong et al. 2018 (FRAGE), §1 and §3",
    why="verdict: rare tokens are separated",
)
NEIGHBORS = Quantity(
    "frequency.neighbors",
    "Nearest neighbors",
    "The nearest tokens by cosine of the requested tokens, or of a few random ones; * marks "
    "rare tokens.",
    "rows of largest cosine, the token itself left out",
    "Gong et al. 2018 (FRAGE), Table 5",
)
NEIGHBOR_RANKS = Quantity(
    "frequency.neighbor_ranks",
    "Ranks of given neighbors",
    "Rank of a given token among the neighbors of another one; 1 is nearest.",
    "1 + #{rows closer by cosine}",
    "Gong et al. 2018 (FRAGE), Table 5",
)
WEIGHTED_MEAN_COSINE = Quantity(
    "frequency.weighted_mean_cosine",
    "Mean cosine, by frequency",
    "Average cosine between two different tokens of a text, where each occurs as often as counted.",
    "Σ_(i≠j) p_i p_j cos_ij / Σ_(i≠j) p_i p_j, p_i = share of the counts",
    "Gao et al. 2019, §4, under the weights of Yokoi et al. 2024",
    why="verdict: where it differs from the mean cosine",
)

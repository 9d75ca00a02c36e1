"""Cosines of pairs of rows, and angles to the mean direction."""

from embgeo.core.values import Quantity

MEAN = Quantity(
    "cosine.mean",
    "Mean cosine",
    "Average cosine between two different tokens. 0: directions are spread evenly or cancel; "
    "near 1: all rows point the same way.",
    "(‖Σŵ_i‖² − M) / (M(M−1))",
    "Gao et al. 2019, §4; Mimno & Thompson 2017",
    why="verdict: cone; gate; every chart of a comparison; Gao et al. 2019",
)
STD = Quantity(
    "cosine.std",
    "Standard deviation of the cosine",
    "How much the cosine varies from pair to pair; 1/√d for isotropic rows.",
    "√((‖ŴᵀŴ‖_F² − M) / (M(M−1)) − mean²)",
    "second moment of the same pairs",
    why="verdict: two-sided collapse, by the mean squared cosine",
)


CONE_HALF_ANGLE_MAX = Quantity(
    "cosine.cone_half_angle_max",
    "Cone half angle, largest",
    "Every row lies within this angle of the mean direction.",
    "max angle(w_i, Σŵ_j) over the kept rows",
    "Gao et al. 2019, §5 (the cone that holds the embeddings)",
    unit="°",
    why="Gao et al. 2019, §5: the cone that holds all rows",
)
CONE_HALF_ANGLE_MEDIAN = Quantity(
    "cosine.cone_half_angle_median",
    "Cone half angle, median",
    "Half of the rows lie within this angle of the mean direction; about 90° where there is no "
    "mean direction.",
    "median angle(w_i, Σŵ_j) over the kept rows",
    "Gao et al. 2019, §5 (the cone that holds the embeddings)",
    unit="°",
    why="verdict: cone",
)
MAX_DIMENSION_SHARE = Quantity(
    "cosine.max_dimension_share",
    "Largest share of one coordinate",
    "How much of the mean cosine a single coordinate contributes. Near 1: one rogue dimension "
    "is responsible; 1/d: none stands out.",
    "max_k (Σ_i ŵ_ik)² / ‖Σŵ_i‖²",
    "Timkey & van Schijndel 2021",
    why="verdict: rogue coordinates",
)
TOP_DIMENSIONS = Quantity(
    "cosine.top_dimensions",
    "Coordinates with the largest shares",
    "The coordinates that contribute most to the mean cosine.",
    "(Σ_i ŵ_ik)² / ‖Σŵ_i‖²",
    "Timkey & van Schijndel 2021",
)
ANGLE_TO_MEAN = Quantity(
    "cosine.angle_to_mean",
    "Angle to the mean direction",
    "Angle between a token's row and the mean direction of all rows.",
    "angle(w_i, Σŵ_j)",
    "Gao et al. 2019, §5",
    unit="°",
)
CONE_ANGLES = Quantity(
    "cosine.cone_angles",
    "Angles to the mean direction",
    "Distribution of the angles between the rows and the mean direction. Isotropic rows pile up "
    "at 90°.",
    "angle(w_i, Σŵ_j), exact over the kept rows",
    "Gao et al. 2019, §5",
)
POSITIVE_SHARE = Quantity(
    "cosine.positive_share",
    "Share of positive cosines",
    "Share of pairs of tokens that point to the same side. One half for isotropic rows; 1 "
    "inside a cone narrower than a right angle.",
    "#{i < j : cos_ij > 0} / #{i < j}",
    "Gao et al. 2019, §3.1",
    why="verdict: cone",
)
CONE_APERTURE = Quantity(
    "cosine.cone_aperture",
    "Cone aperture",
    "The largest angle between two rows, of the pairs that were computed.",
    "max angle(w_i, w_j)",
    "Gao et al. 2019, §5 (maximum angle between any two boundaries)",
    unit="°",
    why="Gao et al. 2019, §5: angle between two boundaries",
)
HISTOGRAM = Quantity(
    "cosine.histogram",
    "Cosine of pairs of tokens",
    "Distribution of the cosine over pairs of tokens. That of a cone lies to the right of zero.",
    "histogram of cos_ij over pairs i ≠ j",
    "Gao et al. 2019, §3.1; Mimno & Thompson 2017",
)
_CLUSTERED = "Cai et al. 2021, §3 (isotropy in clusters); Mickus et al. 2024"
CLUSTERS = Quantity(
    "cosine.clusters",
    "Clusters of directions",
    "Number of clusters that the directions of rows form, of those that hold at least 5% of the "
    "rows; 1 where they form none. Rows in tight clusters have a mean cosine without a cone.",
    "clusters of at least 5% of the rows, for the k of largest mean silhouette, if that is at "
    "least 0.6; else 2 if the rows of a cone have two modes between the centers of two groups",
    _CLUSTERED,
    why="verdict: clusters",
)
SILHOUETTE = Quantity(
    "cosine.silhouette",
    "Silhouette of the best clusters",
    "How much nearer rows are to their own cluster than to the next one. 0: no clusters; from 0.5 "
    "a reasonable and from 0.7 a strong structure; 1: points.",
    "mean (b_i − a_i)/max(a_i, b_i), distances of unit rows",
    "Rousseeuw 1987; Kaufman & Rousseeuw 1990, ch. 2",
    why="verdict: clusters",
)
MEAN_BETWEEN_CLUSTERS = Quantity(
    "cosine.mean_between_clusters",
    "Mean cosine between clusters",
    "Mean cosine of two rows of different clusters. Near 0: clusters make the mean cosine; as "
    "large as the mean cosine: the clusters lie inside one cone.",
    "mean cos(ŵ_i, ŵ_j) over pairs of rows of different clusters",
    _CLUSTERED,
    why="verdict: whether clusters or a cone make the mean cosine",
)

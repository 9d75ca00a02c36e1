"""Places of the rows in the plane."""

from embgeo.core.values import Quantity

SVD2 = Quantity(
    "projection.svd2",
    "SVD projection",
    "Each token's row on the top two directions of the matrix as stored. In a narrow cone "
    "the cloud lies to one side of the origin.",
    "rows of W·V₂, V₂ the first two right singular vectors, signs such that ⟨mean row, v⟩ ≥ 0",
    "Gao et al. 2019, §3.1; Gong et al. 2018, Fig. 1c",
)
PCA2 = Quantity(
    "projection.pca2",
    "PCA projection",
    "Each token's row on the two directions of largest variance, after the mean row is subtracted.",
    "rows of (W − 1μᵀ)·V₂ of the centered matrix, signs such that the largest entry is positive",
    "Wang et al. 2020, footnote 1",
)
TSNE = Quantity(
    "projection.tsne",
    "t-SNE",
    "Up to 5,000 rows, evenly over frequencies, placed so that near rows stay near. Sizes of "
    "groups and distances between groups mean nothing.",
    "minimizes KL(P‖Q) of the similarities of rows by cosine and of places; perplexity 30, started "
    "from the PCA",
    "van der Maaten & Hinton 2008",
)
SVD2_SHARE = Quantity(
    "projection.svd2_share",
    "Variance in the SVD plane",
    "Share of the sum of squares that the two axes hold: how much of the matrix the picture shows.",
    "(σ₁² + σ₂²) / Σσ²",
    "Gao et al. 2019, §3.1",
    why="Gao et al. 2019, §3.1: how much of the matrix the map shows",
)

"""The geometry of a matrix after each treatment of the literature: what if it were applied?"""

from dataclasses import dataclass, field

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray

#: Names of the treatments, in the order of the page, and what is done to the rows. The common mean
#: and the top directions of the centered rows are removed as by Mu & Viswanath 2018.
TREATMENTS: dict[str, str] = {
    "none": "as stored",
    "mean": "mean subtracted",
    "top-1": "mean and top direction removed",
    "top-2": "mean and top 2 directions removed",
    "top-3": "mean and top 3 directions removed",
    "whiten": "whitened: mean subtracted, all directions at one variance",
}
#: Lines of NumPy that apply them to an array of rows.
CODE: dict[str, str] = {
    "none": "",
    "mean": "W = W - W.mean(axis=0)",
    **{
        f"top-{k}": "W = W - W.mean(axis=0)\n"
        f"V = np.linalg.svd(W, full_matrices=False)[2][:{k}]; W = W - W @ V.T @ V"
        for k in (1, 2, 3)
    },
    "whiten": "W = W - W.mean(axis=0)\nW = np.linalg.svd(W, full_matrices=False)[0]",
}
#: The line that divides rows by their norms.
UNIT_CODE = "W = W / np.linalg.norm(W, axis=1, keepdims=True)"
#: Products of entries that all of them may take: a few seconds.
MOST_PRODUCTS = 5 * 10**10
#: Products for the neighbors after five treatments where neighbors of all rows were asked for:
#: 50,257 × 768, a few minutes of one core.
MOST_ASKED_PRODUCTS = 5 * 10**12
#: Ending of the name of a treatment after which rows are divided by their norms.
UNIT = "+unit"


@dataclass(frozen=True, slots=True, eq=False)
class Treated:
    """A matrix after a treatment."""

    #: A key of `TREATMENTS`, with `UNIT` if rows are then divided by their norms.
    name: str
    mean_cosine: float
    effective_rank: float
    top_share: float
    #: I1 of unit rows; None if eigenvalues coincide, so that it depends on the choice of
    #: eigenvectors.
    i1: float | None
    #: Counts of the cosines of sampled pairs, in equal bins from −1 to 1; shape (b,).
    cosines: FloatArray = field(metadata={"archive": "cosines"})
    #: The kept rows in the plane of the two strongest directions; shape (M, 2).
    xy: FloatArray = field(metadata={"archive": "xy"})
    #: Positions of the nearest rows by cosine; shape (0, 0) if they were not searched, or are those
    #: without the division by norms.
    neighbors: IntArray = field(metadata={"archive": "neighbors"})


#: What was not searched.
NO_NEIGHBORS: IntArray = np.zeros((0, 0), dtype=np.int64)


def count_neighbor_products(m: int, d: int) -> int:
    """Count the products of entries for the neighbors of all rows after five treatments."""
    return 5 * m * m * d // 2


def fit_products(m: int, d: int) -> bool:
    """Tell whether a matrix is small enough for all treatments, which take about 12·m·d² products.

    >>> fit_products(5_000, 64), fit_products(30_522, 768)
    (True, False)
    """
    return 12 * m * d * d <= MOST_PRODUCTS

"""The geometry of a matrix after each treatment of the literature: what if it were applied?"""

from dataclasses import dataclass, field

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, SingleArray

#: How many top directions are removed, in the order of the page.
REMOVED = (1, 2, 3, 5, 8)
#: Names of the treatments, in the order of the page, and what is done to the rows. The common mean
#: and the top directions of the centered rows are removed as by Mu & Viswanath 2018.
TREATMENTS: dict[str, str] = {
    "none": "as stored",
    "mean": "mean subtracted",
    "standardize": "mean subtracted, all coordinates at one variance",
    "top-1": "mean and top direction removed",
    **{f"top-{k}": f"mean and top {k} directions removed" for k in REMOVED[1:]},
    "whiten": "whitened: mean subtracted, all directions at one variance",
}
#: Lines of NumPy that apply them to an array of rows.
CODE: dict[str, str] = {
    "none": "",
    "mean": "W = W - W.mean(axis=0)",
    "standardize": "W = (W - W.mean(axis=0)) / W.std(axis=0)",
    **{
        f"top-{k}": "W = W - W.mean(axis=0)\n"
        f"V = np.linalg.svd(W, full_matrices=False)[2][:{k}]; W = W - W @ V.T @ V"
        for k in REMOVED
    },
    "whiten": "W = W - W.mean(axis=0)\nW = np.linalg.svd(W, full_matrices=False)[0]",
}
#: The line that divides rows by their norms.
UNIT_CODE = "W = W / np.linalg.norm(W, axis=1, keepdims=True)"
#: Beginning and ending of the name of a treatment before or after which rows are divided by their
#: norms.
UNIT_FIRST, UNIT_AFTER = "unit+", "+unit"
#: Coordinates along the top directions that the map is made of.
COORDINATES = max(REMOVED) + 2
#: Products for the neighbors after the treatments where neighbors of all rows were asked for:
#: 37,000 × 768, a few minutes of one core.
MOST_ASKED_PRODUCTS = 5 * 10**12


def base_of(name: str) -> str:
    """Return the key of `TREATMENTS` of a treatment with or without unit rows.

    >>> base_of("unit+top-2"), base_of("none+unit")
    ('top-2', 'none')
    """
    return name.removeprefix(UNIT_FIRST).removesuffix(UNIT_AFTER)


def write_code(name: str) -> str:
    """Write the lines of NumPy that apply a treatment to an array of rows."""
    first, after = name.startswith(UNIT_FIRST), name.endswith(UNIT_AFTER)
    return "\n".join(filter(None, (first * UNIT_CODE, CODE[base_of(name)], after * UNIT_CODE)))


@dataclass(frozen=True, slots=True, eq=False)
class Treated:
    """A matrix after a treatment."""

    #: A key of `TREATMENTS`, after `UNIT_FIRST` or before `UNIT_AFTER`.
    name: str
    mean_cosine: float
    #: None if they were not estimated, because there are too many columns.
    effective_rank: float | None
    top_share: float | None
    #: I1 of unit rows; None if eigenvalues coincide, so that it depends on the choice of
    #: eigenvectors, and where these are not known: of rows that are divided afterwards, of which
    #: only some are looked at, and of unit or standardized rows of many columns.
    i1: float | None
    #: Which of these numbers are estimated from sampled rows.
    sampled: tuple[str, ...]
    #: Counts of the cosines of pairs of sampled rows, in equal bins from −1 to 1; shape (b,).
    cosines: FloatArray = field(metadata={"archive": "cosines"})
    #: Positions of the nearest rows by cosine; shape (0, 0) if they were not searched, or are those
    #: without the division by norms afterwards.
    neighbors: IntArray = field(metadata={"archive": "neighbors"})


@dataclass(frozen=True, slots=True, eq=False)
class TreatedPlaces:
    """What the map after every treatment is made of.

    Centered rows along the top directions of their scatter, which treatments remove or rescale, so
    that their planes are exact. With unit rows the planes are those of these directions.
    """

    #: Rows that the sampled numbers are from.
    sampled: int
    #: Of the mean row along the axes; shape (c,).
    mean: FloatArray
    #: Standard deviations of the centered rows along all but the last two axes; shape (c − 2,).
    deviations: FloatArray
    #: Of the centered rows along the axes: the top directions, and the plane of the standardized
    #: rows; shape (M, c).
    xs: SingleArray = field(metadata={"archive": "xs"})
    #: Norms of the rows, as stored, centered, standardized and whitened; shape (M, 4).
    norms: SingleArray = field(metadata={"archive": "norms"})


def place_treated(places: TreatedPlaces, name: str) -> FloatArray:
    """Return the places of the rows in the plane of their two strongest directions, shape (M, 2).

    Not for ``none``, whose plane is that of the stored rows.
    """
    base, xs, deviations = base_of(name), places.xs.astype(np.float64), places.deviations
    if name.startswith(UNIT_FIRST):
        unit = find_unit_axes(places)
        xs = (xs + places.mean) / places.norms[:, :1] @ unit.turn - unit.shift
        deviations = unit.deviations
    k = int(base.removeprefix("top-")) if base.startswith("top-") else 0
    xy = xs[:, -2:] if base == "standardize" else xs[:, k : k + 2]
    if base == "whiten":
        xy = _divide(xy, deviations[:2])
    if name.endswith(UNIT_AFTER):
        norms = places.norms[:, {"standardize": 2, "whiten": 3}.get(base, 1)].astype(np.float64)
        squares = np.square(norms) - np.square(xs[:, :k]).sum(axis=1)
        # Rounding may leave less than the plane holds.
        xy = _divide(xy, np.sqrt(np.maximum(squares, np.square(xy).sum(axis=1)))[:, None])
    return np.asarray(xy)


def _divide(xy: FloatArray, by: FloatArray) -> FloatArray:
    """Divide, with 0 where the divisor is 0: rows on a line have no spread across it."""
    return np.divide(xy, by, out=np.zeros_like(xy), where=by > 0)


@dataclass(frozen=True, slots=True, eq=False)
class UnitAxes:
    """The principal axes of unit rows among the top directions of the stored ones."""

    #: Turns coordinates of unit rows into those along the axes; shape (c, c).
    turn: FloatArray
    #: Mean of the unit rows along the axes; shape (c,).
    shift: FloatArray
    #: Shape (c − 2,).
    deviations: FloatArray


def find_unit_axes(places: TreatedPlaces) -> UnitAxes:
    """Find the axes; they point to the side of the directions that they are nearest to."""
    xs = (places.xs + places.mean) / places.norms[:, :1]
    mean = xs.mean(axis=0)
    centered = (xs - mean)[:, :-2]
    values, vectors = np.linalg.eigh(centered.T @ centered / len(xs))
    vectors = vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    turn = np.eye(len(mean))
    turn[:-2, :-2] = vectors * np.where(
        np.take_along_axis(vectors, largest[None], 0) < 0, -1.0, 1.0
    )
    return UnitAxes(turn, mean @ turn, np.sqrt(np.maximum(values[::-1], 0.0)))


#: What was not searched.
NO_NEIGHBORS: IntArray = np.zeros((0, 0), dtype=np.int64)


def count_neighbor_products(m: int, d: int) -> int:
    """Count the products of entries for the neighbors of all rows after the treatments."""
    return (len(TREATMENTS) - 1) * m * m * d // 2

"""What if: the geometry of a matrix after each treatment of the literature, by the definitions."""

from collections.abc import Iterator

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.treated import (
    MOST_ASKED_PRODUCTS,
    NO_NEIGHBORS,
    TREATMENTS,
    UNIT,
    Treated,
    count_neighbor_products,
    fit_products,
)
from embgeo.metrics import Facts
from embgeo.metrics.isotropy import compute_i1_i2, measure_eigengap
from embgeo.metrics.shared import count_rank
from embgeo.numerics.spectra import compute_effective_rank
from embgeo.stats.all_nearest import AllNearest
from embgeo.stats.reader import RowReader

#: Products for the neighbors after five treatments.
MOST_NEIGHBOR_PRODUCTS = 5 * 10**10
#: Sampled pairs of the histogram of cosines, and its bins.
PAIRS, BINS = 40_000, 80
#: Entries outside of this range have no squares, or no places in float32.
PLAIN = (1e-30, 1e30)
#: Copies of the rows in float64 in memory at one time.
COPIES = 5


def treat_matrix(reader: RowReader, facts: Facts) -> tuple[Treated, ...]:
    """Return the matrix after each treatment, with and without unit rows; empty if too large."""
    m, d = facts.m, facts.d
    asked = facts.options.neighbors_of == "all"
    # What was asked for takes what it needs, up to a limit that was given.
    memory = reader.resources.memory if asked else reader.resources.room
    if (
        not reader.is_local
        or (memory is not None and m * d * 8 * COPIES > memory)
        or not (asked or fit_products(m, d))
        or d < 2
        or m <= max(d, facts.options.neighbors)
    ):
        return ()
    most = MOST_ASKED_PRODUCTS if asked else MOST_NEIGHBOR_PRODUCTS
    k = facts.options.neighbors if count_neighbor_products(m, d) <= most else 0
    rows = np.asarray(reader.take_stored(facts.kept), dtype=np.float64)
    if not PLAIN[0] < np.abs(rows).max() < PLAIN[1]:
        return ()
    pairs = facts.generator("what if").integers(0, m, (2, PAIRS))
    pairs = pairs[:, pairs[0] != pairs[1]]
    found: list[Treated] = []
    for name, treated in treat(rows):
        norms = np.linalg.norm(treated, axis=1)
        if not norms.min() > 1e-12 * norms.max():  # a row that is the mean has no direction left
            continue
        unit = treated / norms[:, None]
        near = search(reader, treated, k if name != "none" else 0)
        cosines = measure_cosines(unit, pairs)
        found.append(measure(name, treated, unit, cosines, near))
        found.append(measure(name + UNIT, unit, unit, cosines, NO_NEIGHBORS))
    return tuple(found)


def treat(rows: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Yield each treatment and the rows after it."""
    yield "none", rows
    centered = rows - rows.mean(axis=0)
    _, sigma, directions = np.linalg.svd(np.linalg.qr(centered, mode="r"))
    for name in TREATMENTS:
        if name == "mean":
            yield name, centered
        elif name.startswith("top-"):
            top = directions[: int(name.removeprefix("top-"))]
            yield name, centered - (centered @ top.T) @ top
        elif name == "whiten":
            rank = count_rank(sigma, len(rows))
            scales = sigma[:rank] / np.sqrt(len(rows))
            yield name, centered @ (directions[:rank].T / scales)


def search(reader: RowReader, rows: FloatArray, k: int) -> IntArray:
    """Return the positions of the k nearest rows of each row; none for a k of 0."""
    if not k:
        return NO_NEIGHBORS
    m, d = rows.shape
    return AllNearest(rows.__getitem__, (m, d), k, np.arange(m)).search(
        reader, "neighbors after treatments"
    )[0]


def measure_cosines(unit: FloatArray, pairs: IntArray) -> tuple[float, FloatArray]:
    """Return the mean cosine of all pairs of rows, and counts of the cosines of sampled ones."""
    m = len(unit)
    total = float(np.square(unit.sum(axis=0)).sum())
    # In parts that stay in the cache.
    parts = np.array_split(pairs, -(-pairs.size // 4096), axis=1)
    cosines = np.concatenate([np.vecdot(*unit.take(part, axis=0)) for part in parts])
    counts, _ = np.histogram(np.clip(cosines, -1.0, 1.0), bins=BINS, range=(-1.0, 1.0))
    return (total - m) / (m * (m - 1.0)), counts.astype(np.float64)


def measure(
    name: str,
    rows: FloatArray,
    unit: FloatArray,
    cosines: tuple[float, FloatArray],
    near: IntArray,
) -> Treated:
    """Measure the numbers of a treated matrix; `unit` are its rows divided by their norms."""
    _, sigma, directions = np.linalg.svd(np.linalg.qr(rows, mode="r"))
    powers = np.exp(unit @ directions.T)
    sums = powers.sum(axis=0)
    log_z = np.log(np.stack([sums, np.reciprocal(powers, out=powers).sum(axis=0)]))
    _, unsafe = measure_eigengap(np.square(sigma[: count_rank(sigma, len(rows))]))
    axes = directions[:2]
    mean = axes @ rows.mean(axis=0)
    axes = axes * np.where(mean < 0, -1.0, 1.0)[:, None]
    return Treated(
        name,
        cosines[0],
        compute_effective_rank(sigma),
        float(sigma[0] ** 2 / np.square(sigma).sum()),
        None if unsafe else compute_i1_i2(log_z)[0],
        cosines[1],
        (rows @ axes.T).astype(np.float32),
        near,
    )

"""The nearest rows of every row, searched in a few leading coordinates: many rows, some missed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, SingleArray
from embgeo.core.rows import CANDIDATES, MEASURING
from embgeo.stats.nearest import TopNeighbors
from embgeo.stats.per_row import UnitProjections
from embgeo.stats.reader import RowReader

#: Numbers of coordinates that are tried, in turn.
WIDTHS = (64, 96, 128, 192, 256, 384, 512)
#: Share of the true nearest rows of the queries among the candidates that is enough.
ENOUGH = 0.99
#: Queries that choose the number of coordinates.
CHOOSING = 200
#: Columns of products of which only the largest is compared first, at most.
GROUPED = 64
#: Products in memory at a time: those of some queries with all rows.
HELD = 2**23
#: Entries of rows in memory at a time.
TAKEN = 2**24


class LikelyNearest(NamedTuple):
    """Numbers and cosines of the nearest rows found, the nearest first, shape (m, k).

    Their cosines are exact; `recall` is the share of the true k nearest of sampled queries.
    """

    neighbors: IntArray
    cosines: FloatArray
    recall: float


def find_likely_nearest(
    reader: RowReader,
    rows: IntArray,
    k: int,
    directions: FloatArray,
    rng: np.random.Generator,
    what: str,
) -> LikelyNearest:
    """Find the k nearest of the rows with the largest products of leading coordinates.

    `rows`: all kept rows, more than `CANDIDATES`. `directions`: orthonormal columns, those first
    along which rows are longest; shape (d, d).
    """
    drawn = rng.choice(len(rows), min(len(rows), CHOOSING + MEASURING), replace=False)
    queries = np.sort(rows[drawn])
    true = np.concatenate(
        [
            part.neighbors
            for part in reader.sweep(
                lambda block: TopNeighbors(what, block.index, block.unit, k), queries, what
            )
        ]
    )[np.argsort(np.argsort(drawn))]
    projections = UnitProjections("leading", directions[:, : WIDTHS[-1]])
    reader.fold([projections])
    coordinates = np.asarray(projections.values(), dtype=np.float32)
    choosing = drawn[: len(drawn) * CHOOSING // (CHOOSING + MEASURING)]
    for width in WIDTHS:
        leading = np.ascontiguousarray(coordinates[:, :width])
        found = [choose_candidates(leading, choosing[i : i + 1])[0] for i in range(len(choosing))]
        if measure_recall([rows[places] for places in found], true) >= ENOUGH:
            break
    del coordinates
    step = max(1, min(HELD // len(rows), TAKEN // (2 * CANDIDATES * reader.matrix.d)))

    def search(number: int) -> tuple[IntArray, FloatArray]:
        asked = np.arange(number * step, min((number + 1) * step, len(rows)))
        parts = zip(asked.tolist(), choose_candidates(leading, asked), strict=True)
        near = [choose_nearest(reader, rows, query, found, k) for query, found in parts]
        return np.array([one for one, _ in near]), np.array([one for _, one in near])

    parts = list(reader.spread(search, -(-len(rows) // step), what))
    near, cosines = (np.concatenate(part) for part in zip(*parts, strict=True))
    measuring = drawn[len(choosing) :]
    return LikelyNearest(near, cosines, measure_recall(near[measuring], true[len(choosing) :]))


def measure_recall(found: list[IntArray] | IntArray, true: IntArray) -> float:
    """Measure the share of the true rows that were found, of as many queries as were answered."""
    kept = [np.isin(own, some).mean() for own, some in zip(true, found, strict=False)]
    return float(np.mean(kept))


def choose_candidates(coordinates: SingleArray, queries: IntArray) -> list[IntArray]:
    """Choose the positions with the `CANDIDATES` largest products for each query, and a few more.

    The query itself is left out.
    """
    m = len(coordinates)
    width = max(1, min(GROUPED, m // CANDIDATES))
    scores = np.full((len(queries), -(-m // width) * width), -np.inf, dtype=np.float32)
    np.matmul(coordinates[queries], coordinates.T, out=scores[:, :m])
    scores[np.arange(len(queries)), queries] = -np.inf
    grouped = scores.reshape(len(queries), -1, width)
    peaks = grouped.max(axis=2)
    # As many groups as candidates hold a product of at least this.
    bounds = np.partition(peaks, -CANDIDATES, axis=1)[:, -CANDIDATES]
    found = []
    for own, peak, bound in zip(grouped, peaks, bounds, strict=True):
        groups = np.flatnonzero(peak >= bound)
        inside = own[groups]
        flat = np.flatnonzero(inside >= bound)
        if len(flat) > 2 * CANDIDATES:
            flat = flat[np.argpartition(-inside.ravel()[flat], CANDIDATES)[:CANDIDATES]]
        found.append(groups[flat // width] * width + flat % width)
    return found


def choose_nearest(
    reader: RowReader, rows: IntArray, query: int, found: IntArray, k: int
) -> tuple[IntArray, FloatArray]:
    """Choose the k nearest of some rows by their cosines."""
    near = np.asarray(reader.take_stored(rows[found]))
    own = np.asarray(reader.take_stored(rows[[query]]))[0]
    rough = near @ own / np.sqrt(np.vecdot(near, near))
    best = np.argpartition(-rough, min(2 * k, len(rough) - 1))[: 2 * k]
    wide, mine = near[best].astype(np.float64), own.astype(np.float64)
    cosines = wide @ mine / (np.linalg.norm(wide, axis=1) * np.linalg.norm(mine))
    order = np.argsort(-cosines, kind="stable")[:k]
    return rows[found[best[order]]], cosines[order]

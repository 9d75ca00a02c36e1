"""Which rows of a block may be among the best for some query: most are told by one comparison."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray, WorkingArray

#: Candidates for each wanted row beyond which a block is better searched as a whole.
MOST = 8


def rounding(d: int, dtype: npt.DTypeLike) -> float:
    """Twice what a product of two unit rows of length d may be off by in this precision."""
    return float(8.0 * np.finfo(dtype).eps * np.sqrt(d))


def candidates(scores: WorkingArray, least: FloatArray, k: int) -> tuple[IntArray, IntArray] | None:
    """Query and column of every score that may be among the k best of its query.

    Parameters
    ----------
    scores : array, shape (q, b)
        The larger the better; −inf never is.
    least : float64 array, shape (q,)
        What a score has to reach; −inf where fewer than k rows were seen before. The caller
        allows for rounding.
    k : int

    Returns
    -------
    tuple of two int arrays, or None where there are too many to be worth while
    """
    floor = least.astype(scores.dtype)
    mask = scores >= floor[:, None]
    mask &= scores > -np.inf
    if np.count_nonzero(mask) > MOST * k * len(scores):
        return None
    # In one dimension the search is several times as fast.
    query, column = np.divmod(np.flatnonzero(mask), scores.shape[1])
    return query, column


def kth_best(scores: WorkingArray, k: int) -> FloatArray:
    """The k-th best score of each query; −inf where the block is shorter, shape (q,)."""
    width = scores.shape[1]
    if width < k:
        return np.full(len(scores), -np.inf)
    return np.partition(scores, width - k, axis=1)[:, width - k].astype(np.float64)


def best_of_each(
    query: IntArray, rows: IntArray, scores: FloatArray, queries: int, k: int
) -> tuple[IntArray, FloatArray]:
    """The k best (score falling, then row rising) of each query, shapes (queries, k).

    Every query has at least k entries.
    """
    order = np.lexsort((rows, -scores, query))
    first = np.searchsorted(query[order], np.arange(queries))
    taken = order[first[:, None] + np.arange(k)]
    return rows[taken], scores[taken]

"""The best rows for each query; a comparison of rough scores rules out most rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from embgeo.core.arrays import Array, IntArray
from embgeo.stats.backend.backend import Backend

#: Candidates for each row sought; with more of them, searching the whole block is faster.
MOST = 8


def bound_rounding(backend: Backend, rows: Array) -> float:
    """Twice the rounding error of a product of two unit rows, in the precision of `rows`."""
    return 8.0 * float(backend.xp.finfo(rows.dtype).eps) * float(np.sqrt(rows.shape[1]))


def find_candidates(
    backend: Backend, scores: Array, least: Array, slack: Array | float, k: int
) -> tuple[Array, Array] | None:
    """Find query and column of every score that may be among the k best of its query.

    Parameters
    ----------
    scores : array of the backend, shape (q, b)
        The larger the better; −inf never is.
    least : float64 array of ``backend.wide``, shape (q,)
        Score of the k-th best row so far; −inf where fewer than k rows were seen.
    slack : float, or float64 array of ``backend.wide``, shape (q,)
        Rounding of the scores.
    k : int

    Returns
    -------
    tuple of two int arrays of ``backend.wide``, or None where there are too many to be worthwhile
    """
    xp, wide = backend.xp, backend.wide.xp
    if scores.shape[1] >= k and bool(wide.any(wide.isinf(least))):
        least = wide.maximum(least, backend.widen(backend.kth_largest(scores, k)))
    lowest = float(xp.finfo(scores.dtype).min)  # −inf lies below it
    mask = scores >= xp.clip(backend.put(least - slack, scores.dtype), lowest, None)[:, None]
    if int(xp.count_nonzero(mask)) > MOST * k * scores.shape[0]:
        return None
    # In one dimension the search is several times as fast.
    (flat,) = xp.nonzero(xp.reshape(mask, (-1,)))
    flat = backend.to_wide(flat)
    query = flat // scores.shape[1]
    return query, flat - query * scores.shape[1]


def leave_out_self(backend: Backend, scores: Array, mine: IntArray, theirs: IntArray) -> None:
    """Set the score of each query with its own row to −inf, in place."""
    _, query, column = np.intersect1d(mine, theirs, True, return_indices=True)
    if len(query):
        scores[backend.put(query), backend.put(column)] = -np.inf


def compute_pairs(backend: Backend, count: int, d: int, work: Callable[[slice], Array]) -> Array:
    """``work(slice)`` over `count` pairs of rows of d entries, some at a time, joined."""
    parts = [work(part) for part in backend.slices(count, d) or [slice(0, 0)]]
    return backend.xp.concat(parts)


def keep_best(
    backend: Backend, best: tuple[Array, Array], query: Array, rows: Array, scores: Array
) -> None:
    """Add further rows to the k best of each query, in place: score falling, then row rising.

    Parameters
    ----------
    best : two arrays, shape (queries, k)
        Rows and scores; of a query without new rows they are unchanged.
    query, rows, scores : arrays, shape (c,)
    """
    xp, (best_rows, best_scores) = backend.xp, best
    k = best_scores.shape[1]
    touched, place = xp.unique_inverse(query)
    mine = backend.put(np.repeat(np.arange(len(touched)), k))
    query = xp.concat([mine, place])
    rows = xp.concat([xp.reshape(best_rows[touched], (-1,)), rows])
    scores = xp.concat([xp.reshape(best_scores[touched], (-1,)), scores])
    order = xp.argsort(rows, stable=True)
    order = order[xp.argsort(-scores[order], stable=True)]
    order = order[xp.argsort(query[order], stable=True)]
    first = xp.searchsorted(query[order], backend.put(np.arange(len(touched))))
    taken = order[first[:, None] + backend.put(np.arange(k))]
    best_rows[touched], best_scores[touched] = rows[taken], scores[taken]

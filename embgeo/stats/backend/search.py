"""The best rows of each query: told by one product, as on the host (`embgeo.stats.candidates`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.stats.backend.device import Array, Device
from embgeo.stats.candidates import MOST

#: Entries of the rows that are held at a time while scores are computed again in float64.
EXACT_ENTRIES = 2**24


def on_device(device: Device, queries: Any, dtype: Array) -> Array:
    """The queries of a search, which a search of all rows has on the device already."""
    if isinstance(queries, np.ndarray):
        return device.put(queries, dtype)
    return device.xp.astype(queries, dtype, copy=False)


def leave_out_self(
    device: Device, scores: Array, mine: IntArray, theirs: IntArray, worst: float
) -> None:
    """Set the score of each query with its own row, in place."""
    _, query, column = np.intersect1d(mine, theirs, True, return_indices=True)
    if len(query):
        scores[device.put(query), device.put(column)] = worst


def kth_best(device: Device, scores: Array, k: int) -> Array:
    """The k-th best score of each query in float64; −inf where the block is shorter."""
    xp = device.xp
    if scores.shape[1] < k:
        return xp.full((scores.shape[0],), -np.inf, dtype=xp.float64, device=device.at)
    return xp.astype(device.largest(scores, k)[:, -1], xp.float64)


def candidates(device: Device, scores: Array, floor: Array, k: int) -> tuple[Array, Array] | None:
    """Query and column of whatever reaches the floor; None where there are very many.

    Parameters
    ----------
    scores : tensor, shape (q, b)
        The larger the better; −inf never is.
    floor : tensor, shape (q,)
        In the precision of `scores`.
    """
    xp = device.xp
    mask = scores >= floor[:, None]
    mask &= scores > -np.inf
    if int(xp.count_nonzero(mask)) > MOST * k * scores.shape[0]:
        return None
    query, column = xp.nonzero(mask)
    return query, column


def best_of_each(
    device: Device, query: Array, rows: Array, scores: Array, queries: int, k: int
) -> tuple[Array, Array]:
    """The k best (score falling, then row rising) of each query, shapes (queries, k).

    Every query has at least k entries.
    """
    xp = device.xp
    order = xp.argsort(rows, stable=True)
    order = order[xp.argsort(-scores[order], stable=True)]
    order = order[xp.argsort(query[order], stable=True)]
    first = xp.searchsorted(query[order], xp.arange(queries, device=device.at))
    taken = order[first[:, None] + xp.arange(k, device=device.at)]
    return rows[taken], scores[taken]


def in_pieces(device: Device, count: int, d: int, work: Any) -> Array:
    """``work(slice)`` over `count` pairs of rows of d entries, some at a time, joined."""
    step = max(1, EXACT_ENTRIES // d)
    parts = [work(slice(start, start + step)) for start in range(0, max(count, 1), step)]
    return parts[0] if len(parts) == 1 else device.xp.concat(parts)

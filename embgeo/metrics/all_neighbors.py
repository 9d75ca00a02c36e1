"""The nearest rows of every row, and how often each row is one of them."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.metrics.base import Context, Seen
from embgeo.stats import TopNeighbors

#: Cosines nearer than this are equal: rounding may not choose who is a neighbor.
TIE = 1e-12
KEY = ("top neighbors", "all rows")
#: Cosines that are held at a time where rows are equally near.
HELD = 2**24


def all_neighbors(context: Context, seen: Seen) -> TopNeighbors:
    """The k + 1 nearest rows of every kept row by cosine; searched once, whoever asks.

    One more than asked for, which tells whether the last of the k is equally near as another.
    """
    if KEY not in seen.statistics:
        k = context.options.neighbors + 1
        parts = [
            (found.neighbors, found.cosines)
            for found in context.sweep(
                lambda block: TopNeighbors(KEY[1], block.index, block.unit, k),
                context.kept,
                "neighbors of all rows",
            )
        ]
        every = TopNeighbors(KEY[1], context.kept, np.zeros((0, context.d)), k)
        every.neighbors, every.cosines = (np.concatenate(part) for part in zip(*parts, strict=True))
        seen.statistics[KEY] = every
    return seen.find(TopNeighbors, KEY)


def all_occurrences(context: Context, seen: Seen) -> FloatArray:
    """How often each kept row is among the k nearest of another, shape (M,).

    Where several rows are equally near and not all of them fit, they share the places left.
    """
    k = context.options.neighbors
    found = all_neighbors(context, seen)
    tied = found.cosines[:, k] >= found.cosines[:, k - 1] - TIE
    position = np.searchsorted(context.kept, found.neighbors[~tied, :k])
    counts = np.bincount(position.ravel(), minlength=context.m).astype(np.float64)
    rows = context.kept[tied]
    step = max(1, HELD // context.m)

    def shared(number: int) -> FloatArray:
        part = rows[number * step : (number + 1) * step]
        return places(cosines_with_all(context, part), k)

    for found_places in context.spread(shared, -(-len(rows) // step), "rows equally near"):
        counts += found_places
    return counts


def cosines_with_all(context: Context, rows: IntArray) -> FloatArray:
    """Cosines of some rows with all kept ones, shape (len(rows), M); −∞ with themselves."""
    unit = context.unit_rows(rows)
    cosines = np.hstack([unit @ block.unit.T for block in context.blocks(None)])
    cosines[np.arange(len(rows)), np.searchsorted(context.kept, rows)] = -np.inf
    return cosines


def places(cosines: FloatArray, k: int) -> FloatArray:
    """Places among the k largest of each row of cosines that each column takes, summed.

    Columns that are equally large and do not all fit share the places left.
    """
    m = cosines.shape[1]
    least = np.partition(cosines, m - k, axis=1)[:, m - k, None]
    nearer = cosines > least + TIE
    level = cosines >= least - TIE
    level &= ~nearer
    left = k - nearer.sum(axis=1)
    return np.asarray(nearer.sum(axis=0) + (left / level.sum(axis=1)) @ level)

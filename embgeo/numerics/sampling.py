"""Reproducible random numbers, samples of rows and folds."""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray, Mask

FOLDS = 5

#: Positions for the fit, and positions to predict.
Fold = tuple[IntArray, IntArray]


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return a generator for one purpose, independent of draws for others.

    Examples
    --------
    >>> draws = [int(generator(7, "pairs").integers(100)) for _ in range(3)]
    >>> draws[0] == draws[1] == draws[2]
    True
    """
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


def sample_rows(rows: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """Return at most `count` of the rows without replacement, ascending."""
    if len(rows) <= count:
        return rows
    chosen: npt.NDArray[Any] = rng.choice(rows, size=count, replace=False)
    return np.sort(chosen)


def deal_folds(rng: np.random.Generator, classes: Mask) -> Iterator[Fold]:
    """Return `FOLDS` folds with both classes (bool array, shape (n,)) spread evenly over them."""
    fold = np.empty(len(classes), dtype=np.int64)
    start = 0
    for value in (False, True):
        members = rng.permutation(np.flatnonzero(classes == value))
        fold[members] = (start + np.arange(len(members))) % FOLDS
        start += len(members)
    for number in range(FOLDS):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

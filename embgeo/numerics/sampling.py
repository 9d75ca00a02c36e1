"""Random numbers that repeat: a generator for each purpose, samples of rows, folds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray

FOLDS = 5

#: Positions to fit on, and positions to predict.
Fold = tuple[IntArray, IntArray]


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A generator of its own for each purpose: no draw depends on what was drawn before.

    Examples
    --------
    >>> draws = [int(generator(7, "pairs").integers(100)) for _ in range(3)]
    >>> draws[0] == draws[1] == draws[2]
    True
    """
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


def sample_rows(rows: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """At most `count` of the rows without replacement, ascending."""
    if len(rows) <= count:
        return rows
    chosen: npt.NDArray[Any] = rng.choice(rows, size=count, replace=False)
    return np.sort(chosen)


def deal_folds(rng: np.random.Generator, classes: npt.NDArray[np.bool_]) -> Iterator[Fold]:
    """Positions to fit on and positions to predict, `FOLDS` times.

    Parameters
    ----------
    rng : numpy Generator
    classes : bool array, shape (n,)
        Both values are spread evenly over the folds.
    """
    fold = np.empty(len(classes), dtype=np.int64)
    start = 0
    for value in (False, True):
        members = rng.permutation(np.flatnonzero(classes == value))
        fold[members] = (start + np.arange(len(members))) % FOLDS
        start += len(members)
    for number in range(FOLDS):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

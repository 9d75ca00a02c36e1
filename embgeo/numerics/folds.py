"""Rows dealt into folds at random, each class by itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray

FOLDS = 5

#: Positions to fit on, and positions to predict.
Fold = tuple[IntArray, IntArray]


def folds(rng: np.random.Generator, classes: npt.NDArray[np.bool_]) -> Iterator[Fold]:
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

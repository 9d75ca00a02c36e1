"""Single rows of a matrix that lies elsewhere: the ones that metrics look at one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray

Array = npt.NDArray[Any]


class RowsMissing(Exception):
    """Rows were asked for that are neither gathered nor within reach."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows as they are stored.

    Attributes
    ----------
    index : int array, shape (r,)
        Row numbers, ascending, each once.
    entries : array, shape (r, d), or None
        None where there are no rows yet, of whatever type.
    """

    index: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    entries: Array | None = None

    def __post_init__(self) -> None:
        """Refuse rows without their numbers."""
        rows = 0 if self.entries is None else len(self.entries)
        if rows != len(self.index) or (rows and not (np.diff(self.index) > 0).all()):
            raise ValueError("rows and their numbers do not go together")

    def joined(self, other: Rows) -> Rows:
        """Both, each row once."""
        if self.entries is None or other.entries is None:
            return self if other.entries is None else other
        index, first = np.unique(np.concatenate([self.index, other.index]), return_index=True)
        return Rows(index, np.concatenate([self.entries, other.entries])[first])


class Gathered:
    """Stands in for the entries of a matrix of which some rows are at hand.

    Indexed like an array by row numbers or slices of rows.

    Parameters
    ----------
    shape : tuple of two ints
    dtype : dtype
    rows : Rows
    fetch : callable, optional
        ``fetch(rows)`` gives further rows, or raises `RowsMissing`.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        rows: Rows,
        fetch: Callable[[IntArray], Array] | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.rows = rows
        self._fetch = fetch

    def __getitem__(self, wanted: IntArray | slice) -> Array:
        if isinstance(wanted, slice):
            wanted = np.arange(*wanted.indices(self.shape[0]), dtype=np.int64)
        missing = np.setdiff1d(wanted, self.rows.index)
        if len(missing):
            if self._fetch is None:
                raise RowsMissing(f"{len(missing):,} rows")
            self.rows = self.rows.joined(Rows(missing, self._fetch(missing)))
        if self.rows.entries is None:
            return np.zeros((0, self.shape[1]), dtype=self.dtype)
        return np.asarray(self.rows.entries[np.searchsorted(self.rows.index, wanted)])

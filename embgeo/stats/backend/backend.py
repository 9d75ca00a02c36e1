"""Array libraries that statistics compute with: numpy here, torch in its own module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any
from weakref import finalize

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import Array, FloatArray, IntArray, WorkingArray
from embgeo.numerics.rank_update import add_gram, stack_rows


class Backend(ABC):
    """An array library and the device of its arrays.

    Statistics are written once, on `xp` and these few operations.
    """

    #: As it is recorded: "cpu", "cuda", …
    name: str
    #: The library through the array API standard.
    xp: Any
    #: Where arrays in float64 are: this backend, or numpy's where the device has no float64.
    wide: Backend
    #: Entries of a temporary array that are made at a time.
    chunk: int

    @abstractmethod
    def put(self, array: Array, dtype: Any = None) -> Array:
        """Move the array to this backend and convert it to a dtype of `xp`, if necessary."""

    @cached_property
    def _constants(self) -> dict[tuple[int, Any], Array]:
        return {}

    def constant(self, array: Array, dtype: Any = None) -> Array:
        """Act like `put`, for an array that never changes: it is moved or converted once."""
        key = id(array), dtype
        found = self._constants.get(key)
        if found is None:
            found = self.put(array, dtype)
            if found is not array:
                self._constants[key] = found
                # The copy goes with the array, whose number may then mean another one.
                finalize(array, self._constants.pop, key, None)
        return found

    @abstractmethod
    def to_host(self, array: Any) -> Any:
        """Convert an array of this backend to numpy; return anything else unchanged."""

    def to_wide(self, array: Array) -> Array:
        """Move the array to `wide`, in its own dtype."""
        return array if self.wide is self else self.to_host(array)

    def widen(self, array: Array) -> Array:
        """Move the array to `wide`, in float64."""
        return self.wide.put(self.to_wide(array), self.wide.xp.float64)

    def slices(self, rows: int, width: int) -> list[slice]:
        """Split rows of `width` entries into runs with at most `chunk` entries."""
        step = max(1, self.chunk // max(width, 1))
        return [slice(start, start + step) for start in range(0, rows, step)]

    @abstractmethod
    def sum64(self, array: Array) -> Array:
        """Sum over the first axis in float64, where `wide` is."""

    @abstractmethod
    def empty_gram(self, d: int, dtype: Any) -> Array:
        """Return zeros for `add_gram`, shape (d, d), in the column order of BLAS."""

    @abstractmethod
    def add_gram(self, rows: Array, into: Array) -> None:
        """Add ``rowsᵀ rows`` to the upper triangle in place, which takes no memory.

        Entries below the diagonal are undefined afterwards.
        """

    @abstractmethod
    def stack_rows(self, r: Array, rows: Array) -> Array:
        """Return the R of the QR decomposition of `r`, upper triangular, on top of `rows`."""

    @abstractmethod
    def kth_largest(self, values: Array, k: int) -> Array:
        """Return the k-th largest entry of each row, shape (q,)."""

    @abstractmethod
    def topk(self, values: Array, k: int) -> Array:
        """Return the columns of the k largest entries of each row in any order, shape (q, k)."""

    @abstractmethod
    def histogram(self, values: Array, bins: int) -> Array:
        """Count the values within [−1, 1] in equal bins, int64, shape (bins,)."""

    @abstractmethod
    def words(self, rows: Array) -> Array:
        """Return the stored bits in words of 32, as int64, shape (b, words in a row)."""

    @abstractmethod
    def extremes(self, rows: Array) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return largest and smallest entry of each row, on the host; NaN where there is one."""


class NumpyBackend(Backend):
    """Arrays of numpy; numpy's own namespace follows the standard."""

    name = "cpu"
    xp = np
    chunk = 2**17  # what stays in the cache

    def __init__(self) -> None:
        self.wide = self

    def put(self, array: Array, dtype: Any = None) -> Array:
        return np.asarray(array, dtype=dtype)

    def to_host(self, array: Any) -> Any:
        return array

    def sum64(self, array: WorkingArray) -> FloatArray:
        # Also runs of 256 summed in float32 would lose digits of Z that I2 of short rows needs.
        return np.asarray(array.sum(axis=0, dtype=np.float64))

    def empty_gram(self, d: int, dtype: Any) -> WorkingArray:
        return np.zeros((d, d), dtype=dtype, order="F")

    def add_gram(self, rows: WorkingArray, into: WorkingArray) -> None:
        add_gram(rows, into)

    def stack_rows(self, r: FloatArray, rows: FloatArray) -> FloatArray:
        return stack_rows(r, rows)

    def kth_largest(self, values: WorkingArray, k: int) -> WorkingArray:
        at = values.shape[1] - k
        return np.asarray(np.partition(values, at, axis=1)[:, at])

    def topk(self, values: WorkingArray, k: int) -> IntArray:
        return np.argpartition(-values, k - 1, axis=1)[:, :k]

    def histogram(self, values: WorkingArray, bins: int) -> IntArray:
        half = values.dtype.type(bins / 2)
        at = values * half
        at += half
        np.minimum(at, bins - 1, out=at)
        return np.bincount(at.astype(np.int64), minlength=bins)

    def words(self, rows: WorkingArray) -> IntArray:
        return np.ascontiguousarray(rows).view(np.uint32).astype(np.int64)

    def extremes(self, rows: WorkingArray) -> tuple[WorkingArray, WorkingArray]:
        return rows.max(axis=1), rows.min(axis=1)


#: The one backend of numpy: it has no state.
HOST = NumpyBackend()

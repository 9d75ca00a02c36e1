"""The law every statistic obeys, and the fold that feeds it.

A statistic is a monoid over sets of rows: freshly made it is the identity, ``update(block)`` adds
rows in place, ``merge(other)`` joins the rows of two statistics, and any way of cutting the rows
into blocks and joining the parts gives the same answer up to rounding. State pickles, so passes
may run in threads, on other machines, or be saved and merged later.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Block:
    """Some rows of the matrix, with what several statistics derive from them computed once.

    Parameters
    ----------
    index : int array, shape (b,)
        Row numbers.
    rows : float64 array, shape (b, d)
        No row is zero or non-finite.
    paired : float64 array, shape (b, q), optional
        The same tokens' rows of the output projection.
    """

    def __init__(self, index: IntArray, rows: FloatArray, paired: FloatArray | None = None) -> None:
        self.index = index
        self.rows = rows
        self.paired = paired

    @cached_property
    def norms(self) -> FloatArray:
        """Euclidean norms."""
        if self._exponents is None:
            return _lengths(self.rows)
        return np.asarray(np.ldexp(_lengths(self._scaled()), self._exponents))

    @cached_property
    def unit(self) -> FloatArray:
        """The rows divided by their norms."""
        if self._exponents is None:
            return self.rows / self.norms[:, None]
        scaled = self._scaled()
        return np.asarray(scaled / _lengths(scaled)[:, None])

    @cached_property
    def _exponents(self) -> npt.NDArray[np.int32] | None:
        """Binary exponent of each row's largest entry; None where every square is safe as it is."""
        largest = np.max(np.abs(self.rows), axis=1, initial=0.0)
        if np.all((largest > 1e-140) & (largest < 1e140)):
            return None
        return np.asarray(np.frexp(largest)[1])

    def _scaled(self) -> FloatArray:
        """The rows times a power of two each, so that no square overflows or vanishes."""
        exponents = np.zeros(1, np.int32) if self._exponents is None else self._exponents
        return np.asarray(np.ldexp(self.rows, -exponents[:, None]))


def _lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


class Statistic(Protocol):
    """What the fold needs; equal keys mean equal statistics, which are taken once."""

    @property
    def key(self) -> Hashable: ...

    def update(self, block: Block) -> None: ...

    def merge(self, other: Self) -> None: ...


def fold(
    blocks: Iterable[Block],
    statistics: Sequence[Statistic],
    progress: Callable[[int], None] | None = None,
) -> None:
    """Feed every block to every statistic; `progress` hears how many rows were read."""
    for block in blocks:
        for statistic in statistics:
            statistic.update(block)
        if progress is not None:
            progress(len(block.index))


def concatenated(parts: Sequence[npt.NDArray[Any]], width: int | None = None) -> npt.NDArray[Any]:
    """The parts one below the other; an empty float64 array where there is none."""
    if parts:
        return np.concatenate(parts)
    return np.zeros((0,) if width is None else (0, width))

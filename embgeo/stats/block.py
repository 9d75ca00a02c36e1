"""Some rows of the matrix, with what several statistics derive from them computed once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray, WorkingArray

#: Exponents up to this are good to 5e-7 in float32: half its spacing there.
SINGLE_BOUND = 16.0


class Block:
    """Some rows of the matrix, with what several statistics derive from them computed once.

    Parameters
    ----------
    index : int array, shape (b,)
        Row numbers.
    stored : float32 or float64 array, shape (b, d)
        The rows in the narrower of the two that holds every stored entry exactly. No row is zero
        or non-finite.
    paired : float64 array, shape (b, q), optional
        The same tokens' rows of the output projection.
    """

    def __init__(
        self, index: IntArray, stored: WorkingArray, paired: FloatArray | None = None
    ) -> None:
        self.index = index
        self.stored = stored
        self.paired = paired
        self._products: dict[int, tuple[WorkingArray, WorkingArray]] = {}

    @cached_property
    def rows(self) -> FloatArray:
        """The rows in float64."""
        return np.asarray(self.stored, dtype=np.float64)

    @cached_property
    def norms(self) -> FloatArray:
        """Euclidean norms."""
        if self._exponents is None:
            return _lengths(self.rows)
        return np.asarray(np.ldexp(_lengths(self._scaled()), self._exponents))

    @cached_property
    def unit(self) -> FloatArray:
        """The rows divided by their norms, in float64."""
        if self._exponents is None:
            return self.rows / self.norms[:, None]
        scaled = self._scaled()
        return np.asarray(scaled / _lengths(scaled)[:, None])

    @cached_property
    def stored_unit(self) -> WorkingArray:
        """The rows divided by their norms, in the precision of `stored`."""
        if self.stored.dtype == np.float64:
            return self.unit
        # Norms beyond what float32 squares or inverts are divided out in float64.
        if self.norms.min(initial=1.0) < 1e-30 or self.norms.max(initial=1.0) > 1e30:
            return self.unit.astype(np.float32)
        return np.asarray(self.stored * (1.0 / self.norms).astype(np.float32)[:, None])

    def product(self, directions: WorkingArray) -> WorkingArray:
        """``stored @ directions``, computed once for the same array of directions."""
        if id(directions) not in self._products:
            # The array is kept beside its product, so that its identity stays taken.
            self._products[id(directions)] = (directions, self.stored @ directions)
        return self._products[id(directions)][1]

    @cached_property
    def _exponents(self) -> npt.NDArray[np.int32] | None:
        """Binary exponent of each row's largest entry; None where every square is safe as it is."""
        if self.stored.dtype == np.float32:  # whose squares all lie well inside float64
            return None
        largest = np.max(np.abs(self.rows), axis=1, initial=0.0)
        if np.all((largest > 1e-140) & (largest < 1e140)):
            return None
        return np.asarray(np.frexp(largest)[1])

    def _scaled(self) -> FloatArray:
        """The rows times a power of two each, so that no square overflows or vanishes."""
        exponents = np.zeros(1, np.int32) if self._exponents is None else self._exponents
        return np.asarray(np.ldexp(self.rows, -exponents[:, None]))


def row_products(left: WorkingArray, right: WorkingArray) -> WorkingArray:
    """⟨left_i, right_i⟩ of each pair of rows, shape (b,): BLAS is twice as fast as einsum."""
    return np.asarray(np.matmul(left[:, None, :], right[:, :, None])[:, 0, 0])


def _lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(row_products(rows, rows)))

"""Eigenpairs of a symmetric matrix, in falling order and with a stated sign for each vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.numerics.low_rank import low_rank_eigh, low_rank_eigvalsh

#: Rising eigenvalues and eigenvectors of a symmetric matrix; None where it cannot be done.
Eigh = Callable[[FloatArray], tuple[FloatArray, FloatArray] | None]

#: Up to this size eigenvectors come from numpy, beyond it from scipy, which needs less memory.
NUMPY_EIGH = 2048


@dataclass(frozen=True, slots=True)
class Eigen:
    """Eigenvalues, falling, and their vectors as columns.

    `scale` is what the rounding of the values is relative to: the largest one by default.
    """

    values: FloatArray
    vectors: FloatArray
    scale: float | None = None

    def rank(self, rows: int) -> int:
        """Numerical rank: eigenvalues above their rounding error."""
        if not len(self.values) or self.values[0] <= 0:
            return 0
        scale = self.values[0] if self.scale is None else self.scale
        floor = scale * max(rows, len(self.values)) * np.finfo(float).eps
        return int(np.count_nonzero(self.values > floor))


def signed_eigen(
    gram: FloatArray, mean: FloatArray | None, eigh: Eigh | None = None, rows: float | None = None
) -> Eigen:
    """Eigenpairs of a positive semidefinite matrix in falling order.

    An eigenvector is determined up to its sign; the sign is fixed so that results repeat.

    Parameters
    ----------
    gram : float64 array, shape (d, d)
        Overwritten where it is large.
    mean : float64 array, shape (d,), or None
        Each vector v gets ⟨mean, v⟩ ≥ 0; without it, its entry of largest magnitude is positive.
    eigh : callable, optional
        Decomposes on a device, or returns None where that fails.
    rows : int, optional
        How many rows `gram` is the Gram matrix of: few of them need less work.

    Examples
    --------
    >>> eigen = signed_eigen(np.array([[2.0, 1.0], [1.0, 2.0]]), mean=np.array([-1.0, 0.0]))
    >>> eigen.values.round(12).tolist(), eigen.vectors.round(4).tolist()
    ([3.0, 1.0], [[-0.7071, -0.7071], [-0.7071, 0.7071]])
    """
    if rows is not None and 2 * rows <= len(gram):
        eigh = low_rank_eigh
    pair = None if eigh is None else eigh(gram)
    values, vectors = pair or _decompose(gram)
    values, vectors = np.maximum(values[::-1], 0.0), np.ascontiguousarray(vectors[:, ::-1])
    if mean is None:
        largest = np.argmax(np.abs(vectors), axis=0)
        side = vectors[largest, np.arange(vectors.shape[1])]
    else:
        side = mean @ vectors
    vectors *= np.where(side < 0, -1.0, 1.0)
    return Eigen(values, vectors)


def eigenvalues(gram: FloatArray, rows: float) -> FloatArray:
    """Of a Gram matrix of `rows` rows, falling, none below 0."""
    few = 2 * rows <= len(gram)
    values = low_rank_eigvalsh(gram) if few else np.linalg.eigvalsh(gram)
    return np.asarray(np.maximum(values[::-1], 0.0))


def _decompose(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rising eigenvalues and their vectors; a large `gram` is overwritten.

    scipy brings a BLAS of its own, whose threads stay awake for a while after a call and keep
    those of numpy's BLAS from working. But numpy needs five matrices where scipy needs three.
    """
    if len(gram) <= NUMPY_EIGH:
        values, vectors = np.linalg.eigh(gram)
        return values, vectors
    from scipy.linalg import eigh

    values, vectors = eigh(gram, driver="evd", overwrite_a=True, check_finite=False)
    return values, vectors

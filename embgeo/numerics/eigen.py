"""Eigenpairs of symmetric matrices, in falling order and with a fixed sign of each vector.

A Gram matrix of fewer rows than half its dimensions takes less than d³ operations: a pivoted
Cholesky factorization WᵀW = LLᵀ stops after as many columns as there are rows (Higham 1990). L has
shape (d, rank) and its singular vectors are eigenvectors; the others are orthogonal to them, with
eigenvalue 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray

#: Rising eigenvalues and eigenvectors of a symmetric matrix; None if that fails.
Eigh = Callable[[FloatArray], tuple[FloatArray, FloatArray] | None]

#: Largest size for numpy's `eigh`; scipy's needs less memory.
NUMPY_EIGH = 2048


@dataclass(frozen=True, slots=True)
class Eigen:
    """Falling eigenvalues and their vectors as columns.

    Rounding errors of the values are relative to `scale`, by default the largest value.
    """

    values: FloatArray
    vectors: FloatArray
    scale: float | None = None

    def rank(self, rows: int) -> int:
        """Numerical rank: the number of eigenvalues above their rounding error."""
        if not len(self.values) or self.values[0] <= 0:
            return 0
        scale = self.values[0] if self.scale is None else self.scale
        floor = scale * max(rows, len(self.values)) * np.finfo(float).eps
        return int(np.count_nonzero(self.values > floor))


def signed_eigen(
    gram: FloatArray, mean: FloatArray | None, eigh: Eigh | None = None, rows: float | None = None
) -> Eigen:
    """Eigenpairs of a positive semidefinite matrix in falling order.

    Parameters
    ----------
    gram : float64 array, shape (d, d)
        Overwritten if it is large.
    mean : float64 array, shape (d,), or None
        Each vector v gets ⟨mean, v⟩ ≥ 0; by default its entry of largest magnitude is positive.
    eigh : callable, optional
        Decomposes on a device, or returns None if that fails.
    rows : int, optional
        Number of rows of the Gram matrix; few rows need less work.

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
    """Falling, non-negative eigenvalues of a Gram matrix of `rows` rows."""
    if 2 * rows > len(gram):
        return np.asarray(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0))
    sigma = np.linalg.svd(_factorize(gram), compute_uv=False)
    return np.pad(np.square(sigma), (0, len(gram) - len(sigma)))


def low_rank_eigh(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rising eigenvalues and eigenvectors of a positive semidefinite matrix of low rank.

    Parameters
    ----------
    gram : float64 array, shape (d, d)

    Returns
    -------
    values : float64 array, shape (d,)
        Accurate to about ε·d times the largest.
    vectors : float64 array, shape (d, d)
        Orthonormal columns.

    Examples
    --------
    >>> W = np.array([[3.0, 4.0, 0.0, 0.0, 0.0]])
    >>> low_rank_eigh(W.T @ W)[0].round(12).tolist()
    [0.0, 0.0, 0.0, 0.0, 25.0]
    """
    vectors, sigma, _ = np.linalg.svd(_factorize(gram), full_matrices=False)
    whole = np.linalg.qr(vectors, mode="complete")[0]
    whole[:, : len(sigma)] = vectors
    return np.pad(sigma**2, (0, len(gram) - len(sigma)))[::-1], whole[:, ::-1]


def _factorize(gram: FloatArray) -> FloatArray:
    """L of `gram` = LLᵀ, shape (d, rank)."""
    from scipy.linalg.lapack import dpstrf

    factor, order, rank, _ = dpstrf(gram, lower=1)
    lower = np.empty((len(gram), rank))
    lower[order - 1] = np.tril(factor[:, :rank])
    return lower


def _decompose(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rising eigenvalues and their vectors; a large `gram` is overwritten.

    The threads of scipy's BLAS stay awake for a while after a call and slow those of numpy's. But
    numpy needs memory for five matrices, scipy for three.
    """
    if len(gram) <= NUMPY_EIGH:
        values, vectors = np.linalg.eigh(gram)
        return values, vectors
    from scipy.linalg import eigh

    values, vectors = eigh(gram, driver="evd", overwrite_a=True, check_finite=False)
    return values, vectors

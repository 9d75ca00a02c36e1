"""Eigenpairs of a Gram matrix of fewer rows than half its dimensions, without d³ operations.

A pivoted Cholesky factorization WᵀW = LLᵀ stops after as many columns as there are rows (Higham
1990): L has shape (d, rank), and its singular vectors are the eigenvectors. The others span what is
orthogonal to them, with eigenvalue 0.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from embgeo.core.arrays import FloatArray


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
    vectors, sigma, _ = np.linalg.svd(factorize(gram), full_matrices=False)
    whole = np.linalg.qr(vectors, mode="complete")[0]
    whole[:, : len(sigma)] = vectors
    return pad(sigma**2, len(gram))[::-1], whole[:, ::-1]


def low_rank_eigvalsh(gram: FloatArray) -> FloatArray:
    """The eigenvalues alone, rising, shape (d,)."""
    sigma = np.linalg.svd(factorize(gram), compute_uv=False)
    return pad(np.asarray(sigma**2, dtype=np.float64), len(gram))[::-1]


def factorize(gram: FloatArray) -> FloatArray:
    """L of `gram` = LLᵀ, shape (d, rank)."""
    factor, order, rank, _ = lapack.dpstrf(gram, lower=1)
    lower = np.empty((len(gram), rank))
    lower[order - 1] = np.tril(factor[:, :rank])
    return lower


def pad(values: FloatArray, length: int) -> FloatArray:
    return np.concatenate([values, np.zeros(length - len(values))])

"""Eigenpairs of a symmetric matrix plus an outer product, without another `eigh`.

WᵀW is the centered scatter plus N·μμᵀ, and both decompositions are needed: the second takes a
product instead of a decomposition. The eigenvalues of D + zzᵀ are the roots of the secular equation
1 + Σ z_i²/(d_i − λ) = 0, one between any two neighbors of D, and the eigenvector of a root is
proportional to (D − λ)⁻¹z (Bunch, Nielsen & Sorensen 1978). With the z for which the computed roots
are exact, the vectors are orthogonal up to rounding, however close the roots (Gu & Eisenstat 1994).
Directions that are orthogonal to z or share an eigenvalue are deflated first.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray


def add_rank_one(values: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors of ``diag(values) + z zᵀ``.

    Parameters
    ----------
    values : float64 array, shape (d,)
        Falling, not negative.
    z : float64 array, shape (d,)

    Returns
    -------
    values : float64 array, shape (d,)
        Falling.
    q : float64 array, shape (d, d)
        Orthonormal columns.

    Examples
    --------
    >>> values, q = add_rank_one(np.array([2.0, 1.0]), np.array([1.0, 1.0]))
    >>> bool(np.allclose((q * values) @ q.T, [[3.0, 1.0], [1.0, 2.0]]))
    True
    """
    lam, z = values[::-1].copy(), z[::-1].copy()
    # In units of the largest entry, so that no square overflows and rounding has one size.
    unit = max(float(lam[-1]), float(z @ z), np.finfo(float).tiny)
    lam, z = lam / unit, z / np.sqrt(unit)
    moved, rotations = _deflate(lam, z)
    new, q = _secular(lam[moved], z[moved]) if len(moved) else (lam[moved], np.eye(0))
    if len(moved) < len(lam):
        values, vectors = lam.copy(), np.eye(len(lam))
        values[moved], vectors[np.ix_(moved, moved)] = new, q
        new, q = values, vectors
    for i, j, turn in reversed(rotations):
        q[[i, j]] = turn @ q[[i, j]]
    order = np.argsort(-new, kind="stable")
    return new[order] * unit, np.ascontiguousarray(q[::-1, order])


def _deflate(lam: FloatArray, z: FloatArray) -> tuple[IntArray, list[tuple[int, int, FloatArray]]]:
    """Rotate equal eigenvalues so that z has a single entry for them.

    Returns the directions that z still changes, and the pairwise rotations in order. `lam` (rising)
    and `z` are changed in place.
    """
    size = float(np.linalg.norm(z))
    # Relative to the values, which stay as accurate next to an outer product of any size.
    tolerance = 8.0 * np.finfo(float).eps * float(lam[-1])
    kept: list[int] = []
    rotations: list[tuple[int, int, FloatArray]] = []
    for j in range(len(lam)):
        if size * abs(z[j]) <= tolerance:
            z[j] = 0.0
            continue
        if kept:
            i = kept[-1]
            r = float(np.hypot(z[i], z[j]))
            c, s = z[j] / r, z[i] / r
            if abs((lam[j] - lam[i]) * c * s) <= tolerance:
                z[i], z[j] = 0.0, r
                low, high = lam[i], lam[j]
                lam[i], lam[j] = low * c * c + high * s * s, low * s * s + high * c * c
                rotations.append((i, j, np.array([[c, s], [-s, c]])))
                kept.pop()
        kept.append(j)
    return np.asarray(kept, dtype=np.int64), rotations


def _secular(lam: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Roots of the secular equation and the eigenvectors, for distinct values and no zero in z."""
    from scipy.linalg.lapack import dlasd4

    k = len(lam)
    if k == 1:
        return lam + z * z, np.ones((1, 1))
    # LAPACK solves for singular values, whose squares have differences without cancellation.
    root = np.sqrt(lam)
    length = float(np.linalg.norm(z))
    direction = z / length
    apart = np.empty((k, k))  # apart[i, j] = lam_i − new_j
    new = np.empty(k)
    for j in range(k):
        delta, sigma, work, info = dlasd4(j, root, direction, length**2)
        if info:
            raise np.linalg.LinAlgError("the secular equation was not solved")
        new[j] = sigma**2
        apart[:, j] = delta * work
    exact = np.sqrt(np.abs(_squares(root, apart))) * np.sign(z)
    vectors = np.divide(exact[:, None], apart, out=apart)
    vectors /= np.linalg.norm(vectors, axis=0)
    return new, vectors


def _squares(root: FloatArray, apart: FloatArray) -> FloatArray:
    """Squares of the z for which the computed roots are exact, so that vectors are orthogonal."""
    k = len(root)
    squares = np.empty(k)
    step = max(1, 2**20 // k)
    for start in range(0, k, step):
        rows = np.arange(start, min(start + step, k))
        gaps = (root[rows, None] - root) * (root[rows, None] + root)
        gaps[np.arange(len(rows)), rows] = 1.0
        below = np.arange(k - 1) < rows[:, None]
        ratios = apart[rows, :-1] / np.where(below, gaps[:, :-1], gaps[:, 1:])
        squares[rows] = apart[rows, -1] * ratios.prod(axis=1)
    return squares

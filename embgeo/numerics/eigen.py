"""Eigenpairs of symmetric matrices, in falling order and with a fixed sign of each vector.

Of few rows in many dimensions the eigenvectors are the right singular vectors: as many as there are
rows. All directions orthogonal to the rows have eigenvalue 0 and are not formed.

WᵀW is the centered scatter plus N·μμᵀ, and both decompositions are needed: the second takes a
product instead of a decomposition. The eigenvalues of D + zzᵀ are the roots of the secular equation
1 + Σ z_i²/(d_i − λ) = 0, one between any two neighbors of D, and the eigenvector of a root is
proportional to (D − λ)⁻¹z (Bunch, Nielsen & Sorensen 1978). With the z for which the computed roots
are exact, the vectors are orthogonal up to rounding, however close the roots (Gu & Eisenstat 1994).
Directions that are orthogonal to z or share an eigenvalue are deflated first.

Each block of columns of Q is split into its diagonal block and the rest. The best approximation of
rank r of the rest omits the energy of the smaller eigenvalues of (rest)ᵀ(rest) (Eckart & Young
1936).

The eigenvectors of WᵀW are those of the centered matrix times the eigenvectors of a diagonal matrix
plus one outer product. Entries of the latter fall off as one over the distance of the eigenvalues,
so that the rest has a rank of about twenty at any size.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, SingleArray, WorkingArray

#: Rising eigenvalues and eigenvectors of a symmetric matrix; None if that fails.
Eigh = Callable[[FloatArray], tuple[FloatArray, FloatArray] | None]

#: Largest size for numpy's `eigh`; scipy's needs less memory.
NUMPY_EIGH = 2048


@dataclass(frozen=True, slots=True)
class Eigen:
    """Falling eigenvalues, shape (d,), and the vectors of the first of them as columns.

    Of few rows there are fewer vectors than values: the others have value 0 and any basis.
    Rounding errors of the values are relative to `scale`, by default the largest value.
    """

    values: FloatArray
    vectors: FloatArray
    scale: float | None = None

    def rank(self, rows: int) -> int:
        """Return the numerical rank: the number of eigenvalues above their rounding error."""
        if not len(self.values) or self.values[0] <= 0:
            return 0
        scale = self.values[0] if self.scale is None else self.scale
        floor = scale * max(rows, len(self.values)) * np.finfo(float).eps
        return int(np.count_nonzero(self.values > floor))


def signed_eigen(gram: FloatArray, mean: FloatArray | None, eigh: Eigh | None = None) -> Eigen:
    """Return the eigenpairs of a positive semidefinite matrix in falling order.

    `gram`: shape (d, d); overwritten if it is large. `mean`: shape (d,); each vector v gets ⟨mean,
    v⟩ ≥ 0; by default its entry of largest magnitude is positive. `eigh`: decomposes on a device,
    or returns None if that fails.

    Examples
    --------
    >>> eigen = signed_eigen(np.array([[2.0, 1.0], [1.0, 2.0]]), mean=np.array([-1.0, 0.0]))
    >>> eigen.values.round(12).tolist(), eigen.vectors.round(4).tolist()
    ([3.0, 1.0], [[-0.7071, -0.7071], [-0.7071, 0.7071]])
    """
    pair = None if eigh is None else eigh(gram)
    values, vectors = pair or _decompose(gram)
    values, vectors = np.maximum(values[::-1], 0.0), np.ascontiguousarray(vectors[:, ::-1])
    return Eigen(values, _with_signs(vectors, mean))


def _with_signs(vectors: FloatArray, mean: FloatArray | None) -> FloatArray:
    """Return the columns, with signs as in `signed_eigen`; changed in place."""
    if mean is None:
        largest = np.argmax(np.abs(vectors), axis=0)
        side = vectors[largest, np.arange(vectors.shape[1])]
    else:
        side = mean @ vectors
    vectors *= np.where(side < 0, -1.0, 1.0)
    return vectors


def signed_eigen_of_rows(rows: FloatArray, mean: FloatArray | None = None) -> Eigen:
    """Return the eigenpairs of ``rowsᵀ rows`` for a few rows, without the matrix.

    Parameters
    ----------
    rows : float64 array, shape (k, d)
    mean : float64 array, shape (d,), optional
        As in `signed_eigen`.

    Returns
    -------
    Eigen
        With min(max(k, 2), d) vectors.

    Examples
    --------
    >>> eigen = signed_eigen_of_rows(np.array([[3.0, 4.0, 0.0, 0.0, 0.0]]))
    >>> eigen.values.round(12).tolist(), eigen.vectors[:, 0].round(12).tolist()
    ([25.0, 0.0, 0.0, 0.0, 0.0], [0.6, 0.8, 0.0, 0.0, 0.0])
    """
    k, d = rows.shape
    if k < 2:  # a plane needs two directions
        rows = np.pad(rows, ((0, 2 - k), (0, 0)))
    _, sigma, across = np.linalg.svd(rows, full_matrices=False)
    values = np.pad(np.square(sigma), (0, d - len(sigma)))
    return Eigen(values, _with_signs(np.ascontiguousarray(across.T), mean))


def add_outside(vectors: FloatArray, x: FloatArray) -> FloatArray:
    """Orthonormal columns, and one more along the part of `x` outside their span, if there is any.

    A part of 1e-13 of `x` is rounding.
    """
    rest = x - vectors @ (vectors.T @ x)
    length = float(np.linalg.norm(rest))
    if vectors.shape[1] == len(x) or not length > 1e-13 * float(np.linalg.norm(x)):
        return vectors
    # Projected again, because the first projection leaves a rounding error inside the span.
    rest /= length
    rest -= vectors @ (vectors.T @ rest)
    return np.column_stack([vectors, rest / np.linalg.norm(rest)])


def leading_eigen(gram: FloatArray, count: int) -> Eigen:
    """Return all eigenvalues of a positive semidefinite matrix, and the first `count` eigenvectors.

    Their entries of largest magnitude are positive. Takes two fifths of a full decomposition: one
    tridiagonal matrix serves both.

    Examples
    --------
    >>> eigen = leading_eigen(np.diag([1.0, 3.0, 2.0]), 1)
    >>> eigen.values.round(12).tolist(), eigen.vectors.round(12).tolist()
    ([3.0, 2.0, 1.0], [[0.0], [1.0], [0.0]])
    """
    from scipy.linalg import eigh_tridiagonal
    from scipy.linalg.lapack import dormqr, dsytrd, dsytrd_lwork

    d = len(gram)
    work = int(dsytrd_lwork(d, lower=1)[0])
    reflectors, middle, beside, factors, _ = dsytrd(gram, lower=1, lwork=work)
    values = eigh_tridiagonal(middle, beside, eigvals_only=True)[::-1]
    last = (d - count, d - 1)
    vectors = eigh_tridiagonal(middle, beside, select="i", select_range=last)[1][:, ::-1]
    # The reflectors leave the first row as it is.
    turned = dormqr("L", "N", reflectors[1:, :-1], factors, vectors[1:], 64 * count)[0]
    every: FloatArray = np.vstack([vectors[:1], turned]).astype(np.float64, copy=False)
    return Eigen(np.maximum(values, 0.0), _with_signs(every, None))


def eigenvalues(gram: FloatArray) -> FloatArray:
    """Return the falling, non-negative eigenvalues of a Gram matrix."""
    return np.asarray(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0))


def _decompose(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rising eigenvalues and their vectors; a large `gram` is overwritten.

    The threads of scipy's BLAS stay awake for a while after a call and slow those of numpy's. But
    numpy needs memory for five matrices, scipy for three.
    """
    if len(gram) <= NUMPY_EIGH:
        values, vectors = np.linalg.eigh(gram)
        return values, vectors
    from scipy.linalg import eigh

    values, vectors = eigh(gram, driver="evd", overwrite_a=True, check_finite=False)
    return values, vectors


def add_rank_one(values: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues and eigenvectors of ``diag(values) + z zᵀ``.

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
    """Find roots and eigenvectors by the secular equation, for distinct values and no zero in z."""
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
    """Return squares of the z for which the roots are exact, so that vectors are orthogonal."""
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


#: Largest spectral norm of the omitted part of a block, below the rounding of float32.
TOLERANCE = 3e-8
#: Largest share of the work of a full product.
WORTHWHILE = 0.6


@dataclass(frozen=True, slots=True)
class BlockRotation:
    """Q ≈ diagonal blocks + left·right, in float32."""

    #: Shape (d, R).
    left: SingleArray
    #: Columns (and rows) of a diagonal block, its columns of `left`, and the block stacked on their
    #: factor, shape (width + r, width).
    blocks: list[tuple[slice, slice, SingleArray]]

    def apply(self, x: WorkingArray) -> SingleArray:
        """Return ``x @ Q`` for float32 rows, shape (b, d)."""
        out = np.empty(x.shape, dtype=np.float32)
        outside = x @ self.left
        for columns, ranks, factor in self.blocks:
            np.matmul(np.hstack([x[:, columns], outside[:, ranks]]), factor, out=out[:, columns])
        return out


def block_rotation(q: FloatArray) -> BlockRotation | None:
    """Return Q in blocks; None if this would save too little work.

    `q`: shape (d, d); orthonormal columns.
    """
    d = len(q)
    width = 96 if d < 2048 else 256
    blocks, lefts = [], []
    ranks, most = 0, WORTHWHILE * d
    for start in range(0, d, width):
        columns = slice(start, min(start + width, d))
        outside = q[:, columns].copy()
        outside[columns] = 0.0
        energy, directions = np.linalg.eigh(outside.T @ outside)
        directions = directions[:, np.cumsum(np.maximum(energy, 0.0)) > TOLERANCE**2]
        rank = directions.shape[1]
        if ranks + rank + width > most:
            return None
        factor = np.vstack([q[columns, columns], directions.T]).astype(np.float32)
        blocks.append((columns, slice(ranks, ranks + rank), factor))
        lefts.append((outside @ directions).astype(np.float32))
        ranks += rank
    return BlockRotation(np.hstack(lefts), blocks)

"""An orthogonal matrix that is almost block diagonal, applied for a fraction of a full product.

Each block of columns of Q is its diagonal block and the rest, whose best approximation of rank r
leaves out an energy of the smaller eigenvalues of (rest)ᵀ(rest) (Eckart & Young 1936).

The eigenvectors of WᵀW differ from those of the centered matrix by the eigenvectors of a diagonal
matrix plus one outer product. Their entries fall off as one over the distance of the eigenvalues,
so that what lies outside the diagonal blocks has a rank of about twenty, whatever the size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, WorkingArray

#: What may be left out of a block of columns, as a spectral norm: below the rounding of float32.
TOLERANCE = 3e-8
#: Above this share of the work of a full product there is nothing to be gained.
WORTHWHILE = 0.6


@dataclass(frozen=True, slots=True)
class BlockRotation:
    """Q ≈ diagonal blocks + left·right, in float32.

    Attributes
    ----------
    left : float32 array, shape (d, R)
    blocks : list of (slice, slice, float32 array)
        Columns (and rows) of a diagonal block, the columns of `left` that serve it, and the
        block above their factor, shape (width + r, width).
    """

    left: npt.NDArray[np.float32]
    blocks: list[tuple[slice, slice, npt.NDArray[np.float32]]]

    def apply(self, x: WorkingArray) -> npt.NDArray[np.float32]:
        """``x @ Q`` for float32 rows, shape (b, d)."""
        out = np.empty(x.shape, dtype=np.float32)
        outside = x @ self.left
        for columns, ranks, factor in self.blocks:
            np.matmul(np.hstack([x[:, columns], outside[:, ranks]]), factor, out=out[:, columns])
        return out


def block_rotation(q: FloatArray) -> BlockRotation | None:
    """Q cut into blocks; None where it is not of this kind, or too small to be worth while.

    Parameters
    ----------
    q : float64 array, shape (d, d)
        Orthonormal columns.
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

"""An orthogonal matrix that is almost block diagonal, applied for a fraction of a full product.

The eigenvectors of WᵀW differ from those of the centred matrix by the eigenvectors of a diagonal
matrix plus one outer product. Their entries fall off as one over the distance of the eigenvalues,
so that what lies outside the diagonal blocks has a rank of about twenty, whatever the size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embgeo.stats.base import FloatArray, WorkingArray

#: What may be left out of a block of columns, as a spectral norm: below the rounding of float32.
TOLERANCE = 3e-8
#: Above this share of the work of a full product there is nothing to be gained.
WORTHWHILE = 0.6


@dataclass(frozen=True, slots=True)
class BlockRotation:
    """Q ≈ diagonal blocks + left·right, in float32.

    Attributes
    ----------
    blocks : list of (slice, float32 array)
        Columns (and rows) of a diagonal block, and the block.
    left : float32 array, shape (d, R)
    right : list of (slice, float32 array)
        For each block the columns of `left` that serve it, and their factor, shape (r, width).
    """

    blocks: list[tuple[slice, npt.NDArray[np.float32]]]
    left: npt.NDArray[np.float32]
    right: list[tuple[slice, npt.NDArray[np.float32]]]

    def apply(self, x: WorkingArray) -> npt.NDArray[np.float32]:
        """``x @ Q`` for float32 rows, shape (b, d)."""
        out = np.empty(x.shape, dtype=np.float32)
        outside = x @ self.left
        for (columns, block), (ranks, factor) in zip(self.blocks, self.right, strict=True):
            out[:, columns] = x[:, columns] @ block
            out[:, columns] += outside[:, ranks] @ factor
        return out


def block_rotation(q: FloatArray) -> BlockRotation | None:
    """Q cut into blocks; None where it is not of this kind, or too small to be worth while.

    Parameters
    ----------
    q : float64 array, shape (d, d)
        Orthonormal columns.
    """
    d = len(q)
    width = 128 if d < 2048 else 256
    blocks, lefts, right = [], [], []
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
        blocks.append((columns, q[columns, columns].astype(np.float32)))
        lefts.append((outside @ directions).astype(np.float32))
        right.append((slice(ranks, ranks + rank), directions.T.astype(np.float32)))
        ranks += rank
    return BlockRotation(blocks, np.hstack(lefts), right)

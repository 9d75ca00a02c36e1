"""Fast products with an orthogonal matrix that is almost block diagonal.

Each block of columns of Q is split into its diagonal block and the rest. The best approximation of
rank r of the rest omits the energy of the smaller eigenvalues of (rest)ᵀ(rest) (Eckart & Young
1936).

The eigenvectors of WᵀW are those of the centered matrix times the eigenvectors of a diagonal matrix
plus one outer product. Entries of the latter fall off as one over the distance of the eigenvalues,
so that the rest has a rank of about twenty at any size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray, SingleArray, WorkingArray

#: Largest spectral norm of the omitted part of a block, below the rounding of float32.
TOLERANCE = 3e-8
#: Largest share of the work of a full product.
WORTHWHILE = 0.6


@dataclass(frozen=True, slots=True)
class BlockRotation:
    """Q ≈ diagonal blocks + left·right, in float32.

    Attributes
    ----------
    left : float32 array, shape (d, R)
    blocks : list of (slice, slice, float32 array)
        Columns (and rows) of a diagonal block, its columns of `left`, and the block stacked on
        their factor, shape (width + r, width).
    """

    left: SingleArray
    blocks: list[tuple[slice, slice, SingleArray]]

    def apply(self, x: WorkingArray) -> SingleArray:
        """``x @ Q`` for float32 rows, shape (b, d)."""
        out = np.empty(x.shape, dtype=np.float32)
        outside = x @ self.left
        for columns, ranks, factor in self.blocks:
            np.matmul(np.hstack([x[:, columns], outside[:, ranks]]), factor, out=out[:, columns])
        return out


def block_rotation(q: FloatArray) -> BlockRotation | None:
    """Q in blocks; None if this would save too little work.

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

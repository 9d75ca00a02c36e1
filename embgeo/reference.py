"""What to compare a matrix with: isotropic Gaussian rows of the same N, d and norms.

Each kept row is replaced by one of uniformly random direction and unchanged length. What the
metrics give on such a matrix is the reference column of the report.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embgeo.matrix import Matrix, Origin

#: Above this many entries no reference matrix is made: it costs as much as the matrix itself.
MAX_ENTRIES = 40_000_000
#: Up to this many it is held in memory; beyond, no reference is made for what reads it repeatedly.
NOTE = "isotropic Gaussian rows, same N, d and norms"


def isotropic_twin(norms: npt.NDArray[np.float64], d: int, seed: int) -> Matrix | None:
    """Rows of the given norms and uniformly random directions; None where it would be too large.

    Parameters
    ----------
    norms : float64 array, shape (M,)
    d : int
    seed : int
    """
    if len(norms) * d > MAX_ENTRIES:
        return None
    rng = np.random.default_rng([seed, 0x150])
    rows = np.empty((len(norms), d), dtype=np.float32)
    step = max(1, 2**22 // d)
    for start in range(0, len(norms), step):
        stop = min(start + step, len(norms))
        drawn = rng.standard_normal((stop - start, d))
        length = norms[start:stop, None] / np.linalg.norm(drawn, axis=1)[:, None]
        rows[start:stop] = drawn * length
    return Matrix(rows, name="isotropic reference", origin=Origin(format="array"))

"""Rows standardized, in no more coordinates than there are rows.

A linear fit with an L2 penalty has its weights in the span of the rows (the representer theorem):
with n < d rows its predictions are the same in an orthonormal basis of that span.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray


def standardized(rows: FloatArray, new: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both with columns of mean 0 and standard deviation 1 in `rows`, then in its row space.

    A column that is constant but for rounding is centered alone.

    Parameters
    ----------
    rows : float64 array, shape (n, d)
    new : float64 array, shape (m, d)

    Returns
    -------
    two float64 arrays, shapes (n, min(n, d)) and (m, min(n, d))
    """
    center = rows.mean(axis=0)
    x = rows - center
    spread = np.sqrt(np.einsum("ij,ij->j", x, x) / len(x))
    varied = spread > len(x) * np.finfo(float).eps * np.abs(center)
    scale = np.where(varied, spread, 1.0)
    x /= scale
    x_new = (new - center) / scale
    if len(x) >= x.shape[1]:
        return x, x_new
    basis = np.linalg.qr(x.T)[0]
    return x @ basis, x_new @ basis

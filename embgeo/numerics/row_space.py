"""Standardized rows in the coordinates of their row space.

The weights of a linear fit with an L2 penalty are in the span of the rows (representer theorem).
With n < d rows, predictions are the same in an orthonormal basis of that span.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray


def standardized(rows: FloatArray, new: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both in units of mean 0 and standard deviation 1 of the columns of `rows`, in its row space.

    Columns that are constant up to rounding are centered only.

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

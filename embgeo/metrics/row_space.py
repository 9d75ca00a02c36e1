"""Fewer coordinates where there are fewer rows than columns."""

from __future__ import annotations

import numpy as np

from embgeo.stats.base import FloatArray


def in_row_space(rows: FloatArray, new: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both in coordinates of the row space of `rows`, where that is smaller than all of space.

    A linear fit with an L2 penalty has no weight outside it, so that it stays the same.

    Parameters
    ----------
    rows : float64 array, shape (n, d)
    new : float64 array, shape (m, d)

    Returns
    -------
    two float64 arrays, shapes (n, min(n, d)) and (m, min(n, d))
    """
    if len(rows) >= rows.shape[1]:
        return rows, new
    basis = np.linalg.qr(rows.T)[0]
    return rows @ basis, new @ basis

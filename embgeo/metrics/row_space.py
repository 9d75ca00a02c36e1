"""Rows as a linear fit with a penalty sees them: standardised, in no more coordinates than rows."""

from __future__ import annotations

import numpy as np

from embgeo.stats.base import FloatArray


def standardised(rows: FloatArray, new: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both with columns of mean 0 and standard deviation 1 in `rows`, then in its row space.

    A column that is constant but for rounding is centred alone.

    Parameters
    ----------
    rows : float64 array, shape (n, d)
    new : float64 array, shape (m, d)

    Returns
    -------
    two float64 arrays, shapes (n, min(n, d)) and (m, min(n, d))
    """
    centre = rows.mean(axis=0)
    x = rows - centre
    spread = np.sqrt(np.einsum("ij,ij->j", x, x) / len(x))
    varied = spread > len(x) * np.finfo(float).eps * np.abs(centre)
    scale = np.where(varied, spread, 1.0)
    x /= scale
    return in_row_space(x, (new - centre) / scale)


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

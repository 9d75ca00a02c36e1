"""Ridge regression with a penalty chosen by leave-one-out errors, from one decomposition.

With XᵀX = V diag(λ) Vᵀ the fit for any penalty α is w = V diag(1/(λ + α)) Vᵀ Xᵀy, and the leverage
of row i is h_i = Σ_j (XV)_ij²/(λ_j + α), plus 1/n for the subtracted mean. The error of the fit
without row i is (y_i − ŷ_i)/(1 − h_i) by the formula of Sherman & Morrison, so that all penalties
and all rows share one decomposition (Golub, Heath & Wahba 1979).
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, WorkingArray
from embgeo.numerics.row_space import standardized

#: Errors of rows with more leverage than this are computed in float64.
HIGH = 0.5


def ridge_prediction(
    rows: FloatArray, target: FloatArray, new: FloatArray, penalties: FloatArray
) -> FloatArray:
    """Predictions for `new` rows from a ridge regression on standardized columns.

    Parameters
    ----------
    rows : float64 array, shape (n, d)
    target : float64 array, shape (n,)
    new : float64 array, shape (m, d)
    penalties : float64 array
        Positive; the one of least leave-one-out error is used, the first of several.

    Returns
    -------
    float64 array, shape (m,)

    Examples
    --------
    >>> x = np.linspace(-1.0, 1.0, 21)[:, None]
    >>> at_two = ridge_prediction(x, 3.0 * x[:, 0], np.array([[2.0]]), np.array([1e-6, 1.0]))
    >>> at_two.round(4).tolist()
    [6.0]
    """
    x, x_new = standardized(rows, new)
    y = target - target.mean()
    values, vectors = np.linalg.eigh(x.T @ x)
    values = np.maximum(values, 0.0)
    along = vectors.T @ (x.T @ y)
    shrunk = 1.0 / (values[:, None] + penalties)
    penalty = penalties[int(np.argmin(_leave_one_out_errors(x, y, vectors, along, shrunk)))]
    weights = vectors @ (along / (values + penalty))
    return np.asarray(target.mean() + x_new @ weights)


def _leave_one_out_errors(
    x: FloatArray, y: FloatArray, vectors: FloatArray, along: FloatArray, shrunk: FloatArray
) -> FloatArray:
    """Sum of squared leave-one-out errors for each penalty, shape (penalties,)."""

    def errors(rotated: WorkingArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        leverage = 1.0 / len(x) + np.square(rotated) @ shrunk.astype(rotated.dtype)
        residual = y[:, None] - rotated @ (shrunk * along[:, None]).astype(rotated.dtype)
        return leverage, np.square(residual / np.maximum(1.0 - leverage, 1e-12))

    single = np.float32
    leverage, squares = errors(x.astype(single) @ vectors.astype(single), y)
    # float32 is enough for the choice, except where 1 − h cancels.
    near = leverage.max(axis=1) > HIGH
    if near.any():
        squares[near] = errors(x[near] @ vectors, y[near])[1]
    return np.asarray(squares.sum(axis=0))

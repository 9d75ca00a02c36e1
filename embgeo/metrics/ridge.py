"""Ridge regression whose penalty is chosen by leaving one row out, from one decomposition."""

from __future__ import annotations

import numpy as np

from embgeo.metrics.row_space import in_row_space
from embgeo.stats.base import FloatArray


def ridge_prediction(
    rows: FloatArray, target: FloatArray, new: FloatArray, penalties: FloatArray
) -> FloatArray:
    """Predictions for `new` rows from a ridge regression on standardised columns.

    The squared error with each row left out in turn follows from the residuals and leverages,
    (y_i − ŷ_i)/(1 − h_i), so that all penalties share one eigendecomposition (Golub, Heath &
    Wahba 1979).

    Parameters
    ----------
    rows : float64 array, shape (n, d)
    target : float64 array, shape (n,)
    new : float64 array, shape (m, d)
    penalties : float64 array
        Positive; the one of least leave-one-out error is taken, the first where several tie.

    Returns
    -------
    float64 array, shape (m,)
    """
    centre, spread = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    x, x_new = in_row_space((rows - centre) / scale, (new - centre) / scale)
    y = target - target.mean()
    values, vectors = np.linalg.eigh(x.T @ x)
    values = np.maximum(values, 0.0)
    x = x @ vectors
    along = x.T @ y
    shrunk = 1.0 / (values[:, None] + penalties)
    leverage = 1.0 / len(x) + np.square(x) @ shrunk
    left_out = (y[:, None] - x @ (shrunk * along[:, None])) / np.maximum(1.0 - leverage, 1e-12)
    penalty = penalties[int(np.argmin(np.square(left_out).sum(axis=0)))]
    weights = vectors @ (along / (values + penalty))
    return np.asarray(target.mean() + x_new @ weights)

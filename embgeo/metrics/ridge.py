"""Ridge regression whose penalty is chosen by generalised cross-validation."""

from __future__ import annotations

import numpy as np

from embgeo.metrics.row_space import standardised
from embgeo.stats.base import FloatArray


def ridge_prediction(
    rows: FloatArray, target: FloatArray, new: FloatArray, penalties: FloatArray
) -> FloatArray:
    """Predictions for `new` rows from a ridge regression on standardised columns.

    The penalty has the least ‖y − ŷ‖² / (1 − tr H/n)², H the matrix that turns y into ŷ: the
    squared error with each row left out in turn, had all rows the same leverage (Golub, Heath &
    Wahba 1979). All penalties share one decomposition of d×d, and no row is looked at again.

    Parameters
    ----------
    rows : float64 array, shape (n, d)
    target : float64 array, shape (n,)
    new : float64 array, shape (m, d)
    penalties : float64 array
        Positive; the first where several tie.

    Returns
    -------
    float64 array, shape (m,)
    """
    x, x_new = standardised(rows, new)
    y = target - target.mean()
    values, vectors = np.linalg.eigh(x.T @ x)
    # Beyond the rank of the rows there is nothing but rounding.
    values = np.where(values > values[-1] * max(x.shape) * np.finfo(float).eps, values, 0.0)
    along = vectors.T @ (x.T @ y)
    inside = np.divide(along, np.sqrt(values), out=np.zeros_like(along), where=values > 0)
    kept = values[:, None] / (values[:, None] + penalties)
    rest = max(float(y @ y - inside @ inside), 0.0)
    error = rest + np.square((1.0 - kept) * inside[:, None]).sum(axis=0)
    freedom = 1.0 - (1.0 + kept.sum(axis=0)) / len(x)
    penalty = penalties[int(np.argmin(error / np.square(freedom)))]
    weights = vectors @ (along / (values + penalty))
    return np.asarray(target.mean() + x_new @ weights)

"""Logistic regression by Newton's method.

With labels y = ±1 and log-odds s = Xw + b the loss is ½‖w‖² + Σ c_i·log(1 + exp(−y_i s_i)). For
p_i = 1/(1 + exp(y_i s_i)), the probability of the wrong class, its gradient is w − Xᵀ(c·y·p) and
its second derivative I + Xᵀ diag(c·p·(1 − p)) X. That is positive definite, so that every Newton
step descends and a line search ends at the only minimum (Hastie, Tibshirani & Friedman 2009,
§4.4.1).

The second derivative is computed in float32, and again only if convergence slows down: the
gradient, in float64, decides when the search ends.

The weights of a linear fit with an L2 penalty are in the span of the rows (representer theorem).
With n < d rows, predictions are the same in an orthonormal basis of that span.
"""

import numpy as np

from embgeo.core.arrays import FloatArray, Mask, SingleArray
from embgeo.numerics.rank_update import add_gram


def standardized(rows: FloatArray, new: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scale both to mean 0 and standard deviation 1 of the columns of `rows`, in its row space.

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


MAX_STEPS = 100
#: The search ends if a step promises to lower the loss by less than this share of it.
TOLERANCE = 1e-17
#: The curvature is recomputed if a step promises more than this share of the previous promise.
QUICK = 0.2


def log_odds(rows: FloatArray, positive: Mask, new: FloatArray) -> tuple[FloatArray, bool]:
    """Return log-odds of `new` rows from a logistic regression with balanced classes.

    Minimizes ½‖w‖² + Σ c_i log(1 + exp(−y_i(⟨w, x_i⟩ + b))) over standardized columns, where c_i
    gives both classes the same weight and the intercept b has no penalty (scikit-learn's
    ``LogisticRegression(C=1, class_weight="balanced")``).

    Parameters
    ----------
    rows : float64 array, shape (n, d)
    positive : bool array, shape (n,)
        Both classes occur.
    new : float64 array, shape (m, d)

    Returns
    -------
    tuple of a float64 array, shape (m,), and whether the search converged
    """
    x, x_new = standardized(rows, new)
    weights, bias, settled = _newton(x, positive)
    return np.asarray(x_new @ weights + bias), settled


def _newton(x: FloatArray, positive: Mask) -> tuple[FloatArray, float, bool]:
    from scipy.linalg import cho_solve

    n, d = x.shape
    sign = np.where(positive, 1.0, -1.0)
    cost = np.where(positive, n / (2.0 * positive.sum()), n / (2.0 * (~positive).sum()))
    single = x.astype(np.float32)
    beta, score = np.zeros(d + 1), np.zeros(n)
    loss = _loss(beta, score, sign, cost)
    factor, promised = None, np.inf
    for _ in range(MAX_STEPS):
        wrong = _sigmoid(-sign * score)
        pull = cost * sign * wrong
        gradient = np.append(beta[:-1] - x.T @ pull, -pull.sum())
        step = None if factor is None else cho_solve((factor, False), -gradient)
        # Reuse the curvature while it converges quickly.
        if step is None or -float(gradient @ step) > QUICK * promised:
            factor = _curvature(single, cost * wrong * (1.0 - wrong))
            step = cho_solve((factor, False), -gradient)
        promised = -float(gradient @ step)
        along = x @ step[:-1] + step[-1]
        length = 1.0
        # Smaller changes are below the rounding of the loss.
        if promised > 1e-10 * loss:
            while _loss(beta + length * step, score + length * along, sign, cost) > (
                loss - 1e-4 * length * promised
            ):
                length *= 0.5
                if length < 1e-10:  # only rounding is left
                    return beta[:-1], float(beta[-1]), True
        beta, score = beta + length * step, score + length * along
        if promised <= TOLERANCE * loss:
            return beta[:-1], float(beta[-1]), True
        loss = _loss(beta, score, sign, cost)
    return beta[:-1], float(beta[-1]), False


def _curvature(x: SingleArray, weight: FloatArray) -> FloatArray:
    """Return Cholesky factor of the second derivative, in float32."""
    from scipy.linalg import cho_factor

    d = x.shape[1]
    inner = np.zeros((d, d), dtype=np.float32, order="F")
    add_gram(x * np.sqrt(weight).astype(np.float32)[:, None], inner)
    hessian = np.zeros((d + 1, d + 1), order="F")
    hessian[:d, :d] = inner
    hessian[:d, d] = x.T @ weight.astype(np.float32)
    hessian[d, d] = weight.sum() + 1e-12
    hessian[np.arange(d), np.arange(d)] += 1.0
    return np.asarray(cho_factor(hessian, overwrite_a=True, check_finite=False)[0])


def _loss(beta: FloatArray, score: FloatArray, sign: FloatArray, cost: FloatArray) -> float:
    return float(0.5 * beta[:-1] @ beta[:-1] + cost @ np.logaddexp(0.0, -sign * score))


def _sigmoid(z: FloatArray) -> FloatArray:
    with np.errstate(under="ignore"):
        small = np.exp(-np.abs(z))
        return np.asarray(np.where(z >= 0, 1.0, small) / (1.0 + small))

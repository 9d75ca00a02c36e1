"""Logistic regression by Newton's method.

With labels y = ±1 and log-odds s = Xw + b the loss is ½‖w‖² + Σ c_i·log(1 + exp(−y_i s_i)). For
p_i = 1/(1 + exp(y_i s_i)), the probability of the wrong class, its gradient is w − Xᵀ(c·y·p) and
its second derivative I + Xᵀ diag(c·p·(1 − p)) X. That is positive definite, so that every Newton
step descends and a line search ends at the only minimum (Hastie, Tibshirani & Friedman 2009,
§4.4.1).

Each step is solved for by conjugate gradients with products in float32, preconditioned by the
factors of an earlier second derivative: a new one costs as much as some dozens of products. The
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

    `rows`: shape (n, d). `new`: shape (m, d).
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
#: A step is solved for until its residual is this share of the gradient, …
SOLVED = 0.1
#: … and the preconditioner is renewed where that takes more products than this.
QUICK = 12
MAX_PRODUCTS = 60


def log_odds(rows: FloatArray, positive: Mask, new: FloatArray) -> tuple[FloatArray, bool]:
    """Return the log-odds of `new` rows from a logistic regression with balanced classes.

    Minimizes ½‖w‖² + Σ c_i log(1 + exp(−y_i(⟨w, x_i⟩ + b))) over standardized columns, where c_i
    gives both classes the same weight and the intercept b has no penalty (scikit-learn's
    ``LogisticRegression(C=1, class_weight="balanced")``).

    `rows`: shape (n, d). `positive`: shape (n,); both classes occur. `new`: shape (m, d). Returns
    shape (m,).
    """
    x, x_new = standardized(rows, new)
    weights, bias, settled = _newton(x, positive)
    return np.asarray(x_new @ weights + bias), settled


def _newton(x: FloatArray, positive: Mask) -> tuple[FloatArray, float, bool]:
    n, d = x.shape
    sign = np.where(positive, 1.0, -1.0)
    cost = np.where(positive, n / (2.0 * positive.sum()), n / (2.0 * (~positive).sum()))
    single = np.column_stack([x.astype(np.float32), np.ones(n, dtype=np.float32)])
    beta, score = np.zeros(d + 1), np.zeros(n)
    loss = _loss(beta, score, sign, cost)
    factor, products = None, 0
    for _ in range(MAX_STEPS):
        wrong = _sigmoid(-sign * score)
        pull = cost * sign * wrong
        gradient = np.append(beta[:-1] - pull @ x, -pull.sum())
        weight = (cost * wrong * (1.0 - wrong)).astype(np.float32)
        if factor is None or products > QUICK:
            factor = _factor_curvature(single, weight)
        step, products = _solve(single, weight, factor, -gradient)
        promised = -float(gradient @ step)
        along = x @ step[:-1] + step[-1]
        length = 1.0
        # Smaller changes are below the rounding of the loss.
        if promised > 1e-10 * loss:
            while _loss(beta + length * step, score + length * along, sign, cost) > (
                loss - 1e-4 * length * promised
            ):
                length *= 0.5
        beta, score = beta + length * step, score + length * along
        if promised <= TOLERANCE * loss:
            return beta[:-1], float(beta[-1]), True
        loss = _loss(beta, score, sign, cost)
    return beta[:-1], float(beta[-1]), False


def _factor_curvature(x: SingleArray, weight: SingleArray) -> SingleArray:
    """Return the Cholesky factor of the Hessian in float32; the last column is the bias."""
    from scipy.linalg import cho_factor

    inner = np.zeros((x.shape[1], x.shape[1]), dtype=np.float32, order="F")
    add_gram(x * np.sqrt(weight)[:, None], inner)
    # The bias has no penalty: a share of its own curvature, above rounding, keeps that positive.
    inner[np.diag_indices(len(inner))] += np.append(np.ones(len(inner) - 1), 1e-6 * weight.sum())
    return np.asarray(cho_factor(inner, overwrite_a=True, check_finite=False)[0])


def _solve(
    x: SingleArray, weight: SingleArray, factor: SingleArray, target: FloatArray
) -> tuple[FloatArray, int]:
    """Solve second derivative · step = target by preconditioned conjugate gradients, roughly.

    Returns the step, along which the loss falls however early the search ends, and the number of
    products.
    """
    from scipy.linalg import lapack

    def precondition(rest: FloatArray) -> FloatArray:
        # What `cho_solve` calls; its own checks take as long for few columns.
        found, _ = lapack.spotrs(factor, rest.astype(np.float32), lower=False)
        return np.asarray(found, dtype=np.float64)

    penalty = np.append(np.ones(len(target) - 1), 0.0)
    step, rest = np.zeros_like(target), target
    search = precondition(rest)
    left = first = float(rest @ search)
    products = 0
    while left > SOLVED**2 * first and products < MAX_PRODUCTS:
        product = penalty * search + (weight * (x @ search.astype(np.float32))) @ x
        length = left / float(search @ product)
        step, rest = step + length * search, rest - length * product
        turned = precondition(rest)
        left, before = float(rest @ turned), left
        search = turned + left / before * search
        products += 1
    return step, products


def _loss(beta: FloatArray, score: FloatArray, sign: FloatArray, cost: FloatArray) -> float:
    return float(0.5 * beta[:-1] @ beta[:-1] + cost @ np.logaddexp(0.0, -sign * score))


def _sigmoid(z: FloatArray) -> FloatArray:
    with np.errstate(under="ignore"):
        small = np.exp(-np.abs(z))
        return np.asarray(np.where(z >= 0, 1.0, small) / (1.0 + small))

"""Slow, obvious twins of every number: whole matrices in float64, double loops, no cleverness.

Each function is written from the definition of the quantity, not from the code that it checks.
``W`` is always the matrix of kept rows, shape (M, d).
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.stats
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp


def kept_rows(data, masked=()):
    """Row numbers that take part: not masked, finite, not exactly zero."""
    W = np.asarray(data, dtype=np.float64)
    return np.array(
        [
            i
            for i in range(len(W))
            if i not in set(masked) and np.isfinite(W[i]).all() and (W[i] != 0).any()
        ],
        dtype=np.int64,
    )


def unit(W):
    """Rows of length one; scaled first so that no square overflows or vanishes."""
    scaled = W / np.abs(W).max(axis=1, keepdims=True)
    return scaled / np.linalg.norm(scaled, axis=1, keepdims=True)


def norms(W):
    largest = np.abs(W).max(axis=1)
    return largest * np.linalg.norm(W / largest[:, None], axis=1)


# 1. Spectrum ------------------------------------------------------------------------------------


def singular_values(W):
    """All d of them: those beyond min(M, d) are zero."""
    s = np.linalg.svd(W, compute_uv=False)
    return np.concatenate([s, np.zeros(W.shape[1] - len(s))])


def subtract_mean(W):
    """W − 1μᵀ; twice, so that the rounding of a large mean does not stay in the result."""
    once = W - W.mean(axis=0)
    return once - once.mean(axis=0)


def effective_rank(s):
    p = s[s > 0] / s.sum()
    return math.exp(-sum(x * math.log(x) for x in p))


def energy(s, q):
    """Least k whose first k squares make at least the share q of all."""
    total = math.fsum(s**2)
    return next(k for k in range(1, len(s) + 1) if math.fsum(s[:k] ** 2) >= q * total)


def decay_residual(prior, c1, c2, gamma, curve):
    """Root of the mean square of what a prior leaves of the curve."""
    k = np.arange(1.0, len(curve) + 1)
    fitted = c1 * np.exp(-c2 * k**gamma) if prior == "exponential" else c1 * k**-gamma
    return math.sqrt(np.mean((fitted - curve) ** 2))


@cache
def best_residual(prior, curve, largest_c2=20.0):
    """The least residual that a crude search from many starts can find."""
    curve = np.array(curve)

    def loss(p):
        with np.errstate(all="ignore"):
            c2, gamma = (
                (min(math.exp(p[0]), largest_c2), p[1]) if prior == "exponential" else (0.0, p[0])
            )
            k = np.arange(1.0, len(curve) + 1)
            shape = np.exp(-c2 * k**gamma) if prior == "exponential" else k**-gamma
            size = shape @ shape
            if not np.isfinite(size) or size < 1e-200:
                return 1e3 + p @ p
            return math.sqrt(np.mean((shape * (shape @ curve / size) - curve) ** 2))

    if prior == "exponential":
        starts = itertools.product((-6, -3, -1, 1, 2.9), (0.1, 0.5, 2.0))
    else:
        starts = [(g,) for g in (0.01, 0.1, 0.5, 1.0, 2.0)]
    options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000, "maxfev": 4000}
    return min(minimize(loss, start, method="Nelder-Mead", options=options).fun for start in starts)


# 2. Projections ---------------------------------------------------------------------------------


def right_vectors(W):
    """V of the whole matrix's SVD, columns by falling singular value."""
    return np.linalg.svd(W, full_matrices=True)[2].T


def svd2(W):
    V = right_vectors(W)[:, :2]
    signs = [1 if W.mean(axis=0) @ v >= 0 else -1 for v in V.T]
    return W @ V * signs


def pca2(W):
    C = subtract_mean(W)
    V = right_vectors(C)[:, :2]
    signs = [1 if v[np.abs(v).argmax()] > 0 else -1 for v in V.T]
    return C @ V * signs


# 3. Pairwise cosine -----------------------------------------------------------------------------


def cosine_matrix(W):
    return unit(W) @ unit(W).T


def pair_cosines(W):
    """One cosine for each unordered pair: every statistic over ordered pairs is the same."""
    full = cosine_matrix(W)
    return full[np.triu_indices(len(W), k=1)]


def mean_cosine(W):
    pairs = pair_cosines(W)
    return math.fsum(pairs) / len(pairs)


def std_cosine(W):
    pairs = pair_cosines(W)
    mean = math.fsum(pairs) / len(pairs)
    return math.sqrt(max(0.0, math.fsum((pairs - mean) ** 2) / len(pairs)))


def positive_share(W):
    pairs = pair_cosines(W)
    return sum(c > 0 for c in pairs) / len(pairs)


def angle(a, b):
    """Degrees between two vectors, exact for nearly equal and nearly opposite ones too."""
    a, b = unit(a[None])[0], unit(b[None])[0]
    return math.degrees(2.0 * math.atan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))


def angles_to_mean(W):
    direction = unit(W).sum(axis=0)
    return np.array([angle(row, direction) for row in W])


def cone_aperture(W):
    return max(angle(a, b) for a, b in itertools.combinations(unit(W), 2))


def mean_share_by_dimension(W):
    total = unit(W).sum(axis=0)
    return total**2 / (total**2).sum()


# 4. Isotropy ------------------------------------------------------------------------------------


def log_z(W, directions):
    """log Z(a) for each column a of `directions`."""
    return logsumexp(W @ directions, axis=0)


def i1(logs):
    return math.exp(logs.min() - logs.max())


def i2(logs):
    Z = np.exp(logs - logs.max())
    return math.sqrt(np.mean((Z - Z.mean()) ** 2) / Z.mean() ** 2)


def both_signs(W, matrix=None):
    """log Z over v and −v for the right singular vectors of W (or of `matrix`)."""
    V = right_vectors(W if matrix is None else matrix)
    return log_z(W, np.concatenate([V, -V], axis=1))


def mean_sign(W):
    V = right_vectors(W)
    return log_z(W, V * np.where(W.mean(axis=0) @ V >= 0, 1, -1))


def unit_scale(W):
    return W / norms(W).mean()


def energy_of_coordinates(W):
    return (W**2).mean(axis=0)


def without_top_coordinate(W):
    """W without the coordinate of largest energy: a zero changes no cosine and no norm."""
    return np.delete(W, np.argmax(energy_of_coordinates(W)), axis=1)


def silhouette(points, labels):
    """Mean over the points, by the definition."""
    scores = []
    for i, own in enumerate(labels):
        apart = np.linalg.norm(points - points[i], axis=1)
        mates = [apart[j] for j in range(len(points)) if labels[j] == own and j != i]
        others = [apart[labels == label].mean() for label in set(labels) - {own}]
        if not mates or not others or max(np.mean(mates), min(others)) == 0:
            scores.append(0.0)
            continue
        a, b = np.mean(mates), min(others)
        scores.append((b - a) / max(a, b))
    return np.mean(scores)


def eigengap(W):
    """Least gap between neighboring eigenvalues of WᵀW, relative to the larger of the two.

    Only over the numerical rank.
    """
    s = singular_values(W)
    eigenvalues = s[s > s[0] * max(W.shape) * np.finfo(float).eps] ** 2
    return min((a - b) / a for a, b in itertools.pairwise(eigenvalues))


def isoscore(W):
    """Rudman et al. 2022, Algorithm 1, step by step from the points."""
    n = W.shape[1]
    C = subtract_mean(W)
    points = C @ np.linalg.svd(C, full_matrices=True)[2].T
    return isoscore_of(np.diag(np.cov(points, rowvar=False).reshape(n, n)))


def isoscore_of(variances):
    """Algorithm 1 from step 4 on: from the variances along the principal axes."""
    n = len(variances)
    normalized = math.sqrt(n) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(normalized - np.ones(n)) / math.sqrt(2.0 * (n - math.sqrt(n)))
    used = (n - defect**2 * (n - math.sqrt(n))) ** 2 / n**2
    return (n * used - 1.0) / (n - 1.0)


def largest_law(n, d):
    """Johnstone & Ma 2012, less the variance of the trace, as the gamma of Chiani 2014."""
    n, d = max(n, d), min(n, d)
    a, b = math.sqrt(n - 0.5), math.sqrt(d - 0.5)
    center, scale = (a + b) ** 2, (a + b) * (1 / a + 1 / b) ** (1 / 3)
    variance = max(1.6077810345810 - 2 * (center / scale) ** 2 / (n * d), 0.2)
    return center, scale, math.sqrt(variance / 1.6077810345810)


def largest_p(largest, n, d):
    center, scale, narrower = largest_law(n, d)
    mean = -1.2065335745820
    moved = mean + ((largest - center) / scale - mean) / narrower
    return scipy.stats.gamma.sf(moved + 9.84801, 46.446, scale=0.186054)


# 6. Subspace distance ---------------------------------------------------------------------------


def column_spaces(X, Y):
    """Orthonormal bases U, V of the column spaces, V the smaller; rank by numerical rank."""
    U, V = scipy.linalg.orth(X), scipy.linalg.orth(Y)
    return (U, V) if U.shape[1] >= V.shape[1] else (V, U)


def subspace_distance(X, Y):
    U, V = column_spaces(X, Y)
    residual = V - U @ (U.T @ V)
    return np.linalg.norm(residual, "fro") / math.sqrt(V.shape[1])


def principal_angles(X, Y):
    """Degrees, rising; small ones by their sine, large ones by their cosine."""
    U, V = column_spaces(X, Y)
    cosines = np.linalg.svd(U.T @ V, compute_uv=False)
    sines = np.linalg.svd(V - U @ (U.T @ V), compute_uv=False)[::-1]
    small = sines < 0.7
    angles = np.where(small, np.arcsin(np.minimum(sines, 0.7)), np.arccos(np.minimum(cosines, 1)))
    return np.degrees(angles)


# 7. Hidden states -------------------------------------------------------------------------------


def origin_inside(H):
    """A linear program: are there convex weights that combine the points to the origin?"""
    equations = np.vstack([H.T, np.ones(len(H))])
    target = np.append(np.zeros(H.shape[1]), 1.0)
    return linprog(np.zeros(len(H)), A_eq=equations, b_eq=target, method="highs").status == 0


def hull_distance(H):
    """By a generic optimizer over convex weights; 0 inside."""
    if origin_inside(H):
        return 0.0
    found = minimize(
        lambda u: (u @ H) @ (u @ H),
        np.full(len(H), 1 / len(H)),
        jac=lambda u: 2 * H @ (u @ H),
        bounds=[(0, 1)] * len(H),
        constraints={"type": "eq", "fun": lambda u: u.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return np.linalg.norm(found.x @ H)


def layernorm_condition(scale, bias):
    ratios = [b / g for b, g in zip(bias, scale, strict=True)]
    return abs(math.fsum(ratios)) / math.fsum(map(abs, ratios))


# 8. Tokens --------------------------------------------------------------------------------------


def occurrences(W, k):
    """How often each row is among the k nearest of another; equally near rows share places."""
    cosines, counts = cosine_matrix(W), np.zeros(len(W))
    for i in range(len(W)):
        others = sorted((j for j in range(len(W)) if j != i), key=lambda j: -cosines[i, j])
        last = cosines[i, others[k - 1]]
        nearer = [j for j in others if cosines[i, j] > last + 1e-12]
        level = [j for j in others if abs(cosines[i, j] - last) <= 1e-12]
        counts[nearer] += 1
        counts[level] += (k - len(nearer)) / len(level)
    return counts


def skewness(x):
    """None where all are equal but for rounding."""
    deviations = x - x.mean()
    spread = math.sqrt(np.mean(deviations**2))
    return np.mean(deviations**3) / spread**3 if spread > 1e-9 * x.mean() else None


def two_nn(W):
    """Facco et al. 2017, maximum likelihood, every point once."""
    logs = [math.log(row[1] / row[0]) for row in neighbor_distances(W)]
    return (len(logs) - 1) / math.fsum(logs)


def neighbor_distances(W):
    """From each different point to all others, rising."""
    points = np.unique(W + 0.0, axis=0)
    return [
        np.sort(np.linalg.norm(np.delete(points, i, axis=0) - x, axis=1))
        for i, x in enumerate(points)
    ]


# Rows that are not alive -------------------------------------------------------------------------


def widest_gap(lengths):
    """In decades, with at most one row in twenty below; None where that is less than one row."""
    ordered = sorted(lengths)
    gaps = [
        math.log10(ordered[i + 1]) - math.log10(ordered[i])
        for i in range(len(ordered) - 1)
        if (i + 1) * 20 <= len(ordered)
    ]
    return max(gaps, default=None)


def damaged(rows):
    """By row: zero, not finite, below a gap of two decades, or of one with few rows below it."""
    lengths = np.array([math.sqrt(sum(float(x) ** 2 for x in row)) for row in rows])
    usable = np.isfinite(lengths) & (lengths > 0)
    out = ~usable
    ordered = sorted(lengths[usable])
    best, limit = 1.0, 0.0
    for i in range(len(ordered) - 1):
        gap = math.log10(ordered[i + 1] / ordered[i])
        if (i + 1) * 20 <= len(ordered) and gap >= best:
            best, limit = gap, ordered[i + 1]
    for i in range(len(ordered) - 1):
        above = len(ordered) - i - 1
        wide = math.log10(ordered[i + 1] / ordered[i]) >= 2
        if wide and len(ordered) >= 20 and above >= max(5, len(ordered) / 100):
            limit = ordered[i + 1]
    return out | (usable & (lengths < limit))

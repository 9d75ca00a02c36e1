"""Least-squares fits of both spectrum priors of Wang et al. 2020, §4.2 (definitions, section 1)."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import spectrum as q
from embgeo.core.values import Series, Table, Value
from embgeo.numerics.least_squares import factor, fit

#: With c2 → ∞ and γ → 0 the exponential prior becomes the polynomial one: the best fit then lies
#: at infinity, and its parameters would say nothing.
LARGEST_C2 = 20.0
#: The valley of the exponential fit is long and bent: the best few starts are all followed.
STARTS = 3
COLUMNS = ("prior", "c1", "c2", "gamma", "residual", "better")
EXPONENTIAL = "exponential c₁·exp(−c₂·k^γ)"
POLYNOMIAL = "polynomial c₁·k^(−γ)"


def decay_values(normalized: FloatArray) -> list[Value]:
    """Table of both fits and the curves; `normalized` is σ_k/σ_1, shape (d,)."""
    if len(normalized) < 4:
        note = f"not defined: three parameters cannot be fitted to {len(normalized)} values"
        return [Table(q.DECAY, COLUMNS, (), note=note)]
    k = np.arange(1, len(normalized) + 1, dtype=np.float64)
    exponential = fit_exponential(k, normalized)
    polynomial = fit_polynomial(k, normalized)
    curves = {
        EXPONENTIAL: exponential[0] * np.exp(-exponential[1] * k ** exponential[2]),
        POLYNOMIAL: polynomial[0] * k ** -polynomial[1],
    }
    residual = {
        name: float(np.sqrt(np.mean((curve - normalized) ** 2))) for name, curve in curves.items()
    }
    better = min(residual, key=lambda name: residual[name])
    rows = (
        (EXPONENTIAL, *exponential, residual[EXPONENTIAL], "yes" if better == EXPONENTIAL else ""),
        (
            POLYNOMIAL,
            polynomial[0],
            None,
            polynomial[1],
            residual[POLYNOMIAL],
            "yes" if better == POLYNOMIAL else "",
        ),
    )
    return [
        Table(
            q.DECAY,
            COLUMNS,
            rows,
            note=f"uncentered singular values, k from 1; c₂ ≤ {LARGEST_C2:g}",
        ),
        Series(q.DECAY_FIT, k, {"σ_k/σ₁": normalized, **curves}, "index k", "σ_k / σ₁", log_y=True),
    ]


def fit_polynomial(k: FloatArray, y: FloatArray) -> tuple[float, float]:
    """(c1, γ) that minimize Σ(c1·k^(−γ) − y)²; c1 is linear and eliminated."""
    log_k = np.log(k)

    def shape(p: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(under="ignore"):
            phi = np.exp(-p[0] * log_k)
            return phi, (-log_k * phi)[:, None]

    # A narrow cone falls at once: 60 is σ₂ = 1e-18·σ₁.
    grid = np.concatenate([np.linspace(0.0, 8.0, 81), np.linspace(9.0, 60.0, 52)])[:, None]
    start = int(np.argmin([factor(shape(gamma)[0], y)[1] for gamma in grid]))
    bounds = grid[max(start - 1, 0)], grid[min(start + 1, len(grid) - 1)]
    best, _ = fit(shape, y, grid[start], *bounds)
    return factor(shape(best)[0], y)[0], float(best[0])


def fit_exponential(k: FloatArray, y: FloatArray) -> tuple[float, float, float]:
    """(c1, c2, γ) that minimize Σ(c1·exp(−c2·k^γ) − y)² with c2 ≤ `LARGEST_C2`.

    Searched over the logarithms of c2 and γ; c1 is linear and eliminated.
    """
    log_k = np.log(k)

    def shape(p: FloatArray) -> tuple[FloatArray, FloatArray]:
        gamma = np.exp(p[1])
        with np.errstate(under="ignore"):
            grown = np.exp(p[0]) * np.expm1(gamma * log_k)
            phi = np.exp(-np.minimum(grown, 700.0))
            by_gamma = -gamma * log_k * (grown + np.exp(p[0])) * phi
            return phi, np.stack([-grown * phi, by_gamma], axis=1)

    d = float(len(k))
    lengths = [
        np.array([-gamma * np.log(d * length), np.log(gamma)])
        for length in (0.03, 0.1, 0.3, 1.0, 3.0, 30.0)
        for gamma in (0.25, 0.5, 1.0, 2.0, 4.0)
    ]
    slopes = [
        np.log([slope / gamma, gamma])
        for slope in (0.03, 0.1, 0.3, 1.0, 3.0)
        for gamma in (0.01, 0.03, 0.1, 0.3)
    ]
    low, high = np.log([1e-260, 1e-3]), np.log([LARGEST_C2, 20.0])
    starts = sorted(
        [*lengths, *slopes], key=lambda p: factor(shape(np.clip(p, low, high))[0], y)[1]
    )[:STARTS]
    p, _ = min((fit(shape, y, start, low, high) for start in starts), key=lambda f: f[1])
    c2, gamma = np.exp(p)
    return factor(shape(p)[0], y)[0] * float(np.exp(c2)), float(c2), float(gamma)

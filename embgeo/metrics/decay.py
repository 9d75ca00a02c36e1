"""Least-squares fits of both spectrum priors of Wang et al. 2020, §4.2 (definitions, section 1)."""

from __future__ import annotations

import numpy as np

from embgeo.stats.base import FloatArray
from embgeo.values import Quantity, Series, Table, Value

DECAY = Quantity(
    "spectrum.decay",
    "Decay of the spectrum",
    "Which of the two decays that spectrum control prescribes describes this spectrum better, "
    "with its parameters. Residual: root mean square over k.",
    "least squares over k = 1 … d of σ_k/σ₁ against c₁·exp(−c₂·k^γ) and c₁·k^(−γ)",
    "Wang et al. 2020, §4.2",
)
DECAY_FIT = Quantity(
    "spectrum.decay_fit",
    "Spectrum and fitted priors",
    "The normalised singular values beside both fitted decays.",
    "σ_k/σ₁, c₁·exp(−c₂·k^γ), c₁·k^(−γ)",
    "Wang et al. 2020, §4.2",
)
#: With c2 → ∞ and γ → 0 the exponential prior becomes the polynomial one: the best fit then lies
#: at infinity, and its parameters would say nothing.
LARGEST_C2 = 20.0
#: The valley of the exponential fit is long and bent: the best few starts are all followed.
STARTS = 3
COLUMNS = ("prior", "c1", "c2", "gamma", "residual", "better")
EXPONENTIAL = "exponential c₁·exp(−c₂·k^γ)"
POLYNOMIAL = "polynomial c₁·k^(−γ)"


def decay_values(normalised: FloatArray) -> list[Value]:
    """Table of both fits and the curves; `normalised` is σ_k/σ_1, shape (d,)."""
    if len(normalised) < 4:
        note = f"not defined: three parameters cannot be fitted to {len(normalised)} values"
        return [Table(DECAY, COLUMNS, (), note=note)]
    k = np.arange(1, len(normalised) + 1, dtype=np.float64)
    exponential = fit_exponential(k, normalised)
    polynomial = fit_polynomial(k, normalised)
    curves = {
        EXPONENTIAL: exponential[0] * np.exp(-exponential[1] * k ** exponential[2]),
        POLYNOMIAL: polynomial[0] * k ** -polynomial[1],
    }
    residual = {
        name: float(np.sqrt(np.mean((curve - normalised) ** 2))) for name, curve in curves.items()
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
            DECAY, COLUMNS, rows, note=f"uncentred singular values, k from 1; c₂ ≤ {LARGEST_C2:g}"
        ),
        Series(DECAY_FIT, k, {"σ_k/σ₁": normalised, **curves}, "index k", "σ_k / σ₁", log_y=True),
    ]


def fit_polynomial(k: FloatArray, y: FloatArray) -> tuple[float, float]:
    """(c1, γ) that minimise Σ(c1·k^(−γ) − y)²; c1 is linear and eliminated."""
    from scipy.optimize import minimize_scalar

    def shape(gamma: float) -> FloatArray:
        return np.asarray(k**-gamma)

    def loss(gamma: float) -> float:
        return _eliminated(shape(gamma), y)[1]

    # A narrow cone falls at once: 60 is σ₂ = 1e-18·σ₁.
    grid = np.concatenate([np.linspace(0.0, 8.0, 81), np.linspace(9.0, 60.0, 52)])
    start = int(np.argmin([loss(g) for g in grid]))
    bounds = (grid[max(start - 1, 0)], grid[min(start + 1, len(grid) - 1)])
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-12})
    return _eliminated(shape(float(best.x)), y)[0], float(best.x)


def fit_exponential(k: FloatArray, y: FloatArray) -> tuple[float, float, float]:
    """(c1, c2, γ) that minimise Σ(c1·exp(−c2·k^γ) − y)² with c2 ≤ `LARGEST_C2`.

    Searched over the slope b = c2·γ and γ, in which exp(−b·(k^γ − 1)/γ) is well scaled for any d
    and for any γ; c1 is linear and eliminated.
    """
    from scipy.optimize import minimize

    def parameters(p: FloatArray) -> tuple[float, float]:
        gamma = float(np.exp(p[1]))
        return min(float(np.exp(p[0] - p[1])), LARGEST_C2), gamma

    def shape(p: FloatArray) -> FloatArray:
        c2, gamma = parameters(p)
        with np.errstate(under="ignore"):
            return np.asarray(np.exp(-np.minimum(c2 * np.expm1(gamma * np.log(k)), 700.0)))

    def loss(p: FloatArray) -> float:
        return _eliminated(shape(p), y)[1]

    d = float(len(k))
    lengths = [
        np.array([np.log(gamma) - gamma * np.log(d * length), np.log(gamma)])
        for length in (0.03, 0.1, 0.3, 1.0, 3.0, 30.0)
        for gamma in (0.25, 0.5, 1.0, 2.0, 4.0)
    ]
    slopes = [
        np.log([slope, gamma])
        for slope in (0.03, 0.1, 0.3, 1.0, 3.0)
        for gamma in (0.01, 0.03, 0.1, 0.3)
    ]
    found = [
        minimize(
            loss,
            start,
            method="Nelder-Mead",
            bounds=[(-600.0, 10.0), (np.log(1e-3), np.log(20.0))],
            options={"xatol": 1e-9, "fatol": 1e-18, "maxiter": 2000, "maxfev": 2000},
        )
        for start in sorted([*lengths, *slopes], key=loss)[:STARTS]
    ]
    p = np.asarray(min(found, key=lambda f: float(f.fun)).x)
    c2, gamma = parameters(p)
    return _eliminated(shape(p), y)[0] * float(np.exp(c2)), c2, gamma


def _eliminated(shape: FloatArray, y: FloatArray) -> tuple[float, float]:
    """The best factor c1 for a given shape, and the sum of squares that is left."""
    weight = float(shape @ shape)
    c1 = float(shape @ y) / weight if weight > 0 else 0.0
    rest = y - c1 * shape
    return c1, float(rest @ rest)

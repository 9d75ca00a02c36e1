"""Least-squares fits of the decays c₁·exp(−c₂·k^γ) and c₁·k^(−γ) to a falling sequence.

The linear factor c₁ is eliminated: for the shape φ(p) of the other parameters p, the best factor is
c = ⟨φ, y⟩/‖φ‖², and ½‖c·φ(p) − y‖² is minimized over p only (variable projection, Golub & Pereyra
1973). The derivative of the residual has the form of Kaufman (1975), c·(I − φφᵀ/‖φ‖²)·∂φ/∂p, which
omits a term without effect on the gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray

#: φ and its derivatives by the parameters, shapes (n,) and (n, parameters).
Shape = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

#: With c₂ → ∞ and γ → 0 the exponential becomes the polynomial decay: the best fit is at infinity,
#: and its parameters have no meaning.
LARGEST_C2 = 20.0
SMALLEST_C2 = 1e-260
EXPONENTIAL_GAMMA = (1e-3, 20.0)
#: σ₂ = 1e-18·σ₁, similar to a narrow cone.
LARGEST_GAMMA = 60.0
#: The valley of the exponential fit is long and curved: the search runs from several best starts.
STARTS = 3
#: Tolerance of relative changes of the parameters.
SETTLED = 1e-14
MOST_STEPS = 500
#: A parameter this near to a bound is at the bound: the search stays slightly inside.
AT_BOUND = 1e-6


@dataclass(frozen=True, slots=True)
class Decay:
    """A fitted decay.

    Attributes
    ----------
    c1, gamma : float
    c2 : float or None
        None for the polynomial decay.
    curve : float64 array, shape (n,)
        The fit at k = 1 … n.
    residual : float
        Root mean square of the curve minus the sequence.
    bound : str
        The bound at which the best fit lies, such as ``c₂ = 20``: its parameters are not
        identifiable. Empty if the fit lies between the bounds.
    """

    c1: float
    c2: float | None
    gamma: float
    curve: FloatArray
    residual: float
    bound: str


def fit_polynomial(y: FloatArray) -> Decay:
    """Return the c₁ and γ that minimize Σ(c₁·k^(−γ) − y)² over k = 1 … n with 0 ≤ γ ≤ 60.

    Examples
    --------
    >>> found = fit_polynomial(2.0 * np.arange(1, 9) ** -0.5)
    >>> round(found.c1, 6), round(found.gamma, 6), found.bound
    (2.0, 0.5, '')
    """
    log_k = np.log(np.arange(1.0, len(y) + 1))

    def shape(p: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(under="ignore"):
            phi = np.exp(-p[0] * log_k)
            return phi, (-log_k * phi)[:, None]

    grid = np.concatenate([np.linspace(0.0, 8.0, 81), np.linspace(9.0, LARGEST_GAMMA, 52)])[:, None]
    start = int(np.argmin([_factor(shape(gamma)[0], y)[1] for gamma in grid]))
    low, high = grid[max(start - 1, 0)], grid[min(start + 1, len(grid) - 1)]
    p, _ = _minimize(shape, y, grid[start], low, high)
    c1, gamma = _factor(shape(p)[0], y)[0], float(p[0])
    bound = f"γ = {LARGEST_GAMMA:g}" if gamma > LARGEST_GAMMA - AT_BOUND else ""
    return _decay(y, c1, None, gamma, c1 * shape(p)[0], bound)


def fit_exponential(y: FloatArray) -> Decay:
    """Return the c₁, c₂ and γ that minimize Σ(c₁·exp(−c₂·k^γ) − y)² over k = 1 … n with c₂ ≤ 20.

    The search is over the logarithms of c₂ and γ.

    Examples
    --------
    >>> found = fit_exponential(np.exp(-0.3 * np.arange(1, 13) ** 0.8))
    >>> round(found.c2, 6), round(found.gamma, 6), found.bound
    (0.3, 0.8, '')
    >>> fit_exponential(np.arange(1, 9) ** -0.5).bound
    'c₂ = 20'
    """
    n = len(y)
    log_k = np.log(np.arange(1.0, n + 1))

    def shape(p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return exp(−c₂·(k^γ − 1)), which is 1 at k = 1; exp(−c₂) is in the factor."""
        gamma = np.exp(p[1])
        with np.errstate(under="ignore"):
            grown = np.exp(p[0]) * np.expm1(gamma * log_k)
            phi = np.exp(-np.minimum(grown, 700.0))
            by_gamma = -gamma * log_k * (grown + np.exp(p[0])) * phi
            return phi, np.stack([-grown * phi, by_gamma], axis=1)

    low, high = np.log([[SMALLEST_C2, EXPONENTIAL_GAMMA[0]], [LARGEST_C2, EXPONENTIAL_GAMMA[1]]])
    starts = sorted(
        (np.clip(p, low, high) for p in _exponential_starts(n)),
        key=lambda p: _factor(shape(p)[0], y)[1],
    )[:STARTS]
    p, _ = min((_minimize(shape, y, start, low, high) for start in starts), key=lambda f: f[1])
    c2, gamma = map(float, np.exp(p))
    factor = _factor(shape(p)[0], y)[0]
    near = np.concatenate([p - low, high - p]) < AT_BOUND
    edges = ("c₂ = 0", *(f"γ = {edge:g}" for edge in EXPONENTIAL_GAMMA))
    names = (edges[0], edges[1], f"c₂ = {LARGEST_C2:g}", edges[2])
    bound = next((name for name, is_near in zip(names, near, strict=True) if is_near), "")
    return _decay(y, factor * float(np.exp(c2)), c2, gamma, factor * shape(p)[0], bound)


def _exponential_starts(n: int) -> list[FloatArray]:
    """Return starting points ln c₂ and ln γ: decays of several lengths, then slopes at k = 1."""
    lengths = [
        np.array([-gamma * np.log(n * length), np.log(gamma)])
        for length in (0.03, 0.1, 0.3, 1.0, 3.0, 30.0)
        for gamma in (0.25, 0.5, 1.0, 2.0, 4.0)
    ]
    slopes = [
        np.log([slope / gamma, gamma])
        for slope in (0.03, 0.1, 0.3, 1.0, 3.0)
        for gamma in (0.01, 0.03, 0.1, 0.3)
    ]
    return [*lengths, *slopes]


def _decay(
    y: FloatArray, c1: float, c2: float | None, gamma: float, curve: FloatArray, bound: str
) -> Decay:
    residual = float(np.sqrt(np.mean((curve - y) ** 2)))
    return Decay(c1, c2, gamma, curve, residual, bound)


def _factor(shape: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Return the best c for a shape, and the sum of squared residuals."""
    weight = float(shape @ shape)
    c = float(shape @ y) / weight if weight > 0 else 0.0
    rest = y - c * shape
    return c, float(rest @ rest)


def _minimize(
    shape: Shape, y: FloatArray, start: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, float]:
    """Return the parameters that minimize Σ(c·φ(p) − y)² within bounds, and that sum."""
    from scipy.optimize import least_squares

    def rest(p: FloatArray) -> FloatArray:
        return _linearize(shape, y, p)[0]

    def slopes(p: FloatArray) -> FloatArray:
        return _linearize(shape, y, p)[1]

    # A spectrum that the shape fits to all digits leaves no gradient, by which the search divides.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = least_squares(
            rest,
            np.clip(start, low, high),
            slopes,
            bounds=(low, high),
            method="dogbox",
            xtol=SETTLED,
            ftol=None,
            gtol=None,
            max_nfev=MOST_STEPS,
        )
    p, loss = found.x, 2.0 * float(found.cost)
    # The search stays inside the bounds: at one, it only comes near.
    edge = np.where(p - low < AT_BOUND, low, np.where(high - p < AT_BOUND, high, p))
    at_edge = _factor(shape(edge)[0], y)[1]
    return (edge, at_edge) if at_edge <= loss else (p, loss)


def _linearize(shape: Shape, y: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the residuals and their derivatives with respect to the parameters."""
    with np.errstate(under="ignore"):
        phi, slopes = shape(p)
        factor, _ = _factor(phi, y)
        length = float(np.linalg.norm(phi))
        direction = phi / length if length > 0 else phi
        return factor * phi - y, factor * (slopes - np.outer(direction, direction @ slopes))

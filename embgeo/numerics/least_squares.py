"""Least squares of curves c·φ(p): the factor is eliminated, a few parameters are searched."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from embgeo.core.arrays import FloatArray

#: φ and its derivatives by the parameters, shapes (n,) and (n, parameters).
Shape = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

MAX_STEPS = 500
#: A step that lowers the sum of squares by less than this share is the last but a few.
SETTLED = 1e-15


def factor(shape: FloatArray, y: FloatArray) -> tuple[float, float]:
    """The best c for a given shape, and the sum of squares that is left."""
    weight = float(shape @ shape)
    c = float(shape @ y) / weight if weight > 0 else 0.0
    rest = y - c * shape
    return c, float(rest @ rest)


def fit(
    shape: Shape, y: FloatArray, start: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, float]:
    """Parameters that minimize Σ(c·φ(p) − y)² within bounds, and that sum.

    Levenberg and Marquardt's steps on the residual with the factor eliminated (variable
    projection, Golub & Pereyra 1973, in the form of Kaufman 1975).

    Parameters
    ----------
    shape : callable
    y : float64 array, shape (n,)
    start, low, high : float64 array, shape (parameters,)
    """
    p, damping, quiet = np.clip(start, low, high), 1e-3, 0
    phi, slopes = shape(p)
    c, loss = factor(phi, y)
    exact = 1e-30 * float(y @ y)
    for _ in range(MAX_STEPS):
        length = float(np.linalg.norm(phi))
        direction = phi / length if length > 0 else phi
        jacobian = c * (slopes - np.outer(direction, direction @ slopes))
        pull = jacobian.T @ (y - c * phi)
        # A parameter that would leave its bounds stays where it is.
        free = ~((p <= low) & (pull < 0) | (p >= high) & (pull > 0))
        scale = np.linalg.norm(jacobian, axis=0) * free
        if not scale.max() > 1e-140:  # nothing is left that could change
            break
        scale = np.maximum(scale, 1e-5 * scale.max())
        jacobian *= free / scale
        normal, pull = jacobian.T @ jacobian, pull * free / scale
        while True:
            step = np.linalg.solve(normal + damping * np.eye(len(p)), pull) / scale
            trial = np.clip(p + step, low, high)
            new_phi, new_slopes = shape(trial)
            new_c, new_loss = factor(new_phi, y)
            if new_loss <= loss:
                break
            damping *= 4.0
            if damping > 1e16:  # no direction leads down any more
                return p, loss
        quiet = quiet + 1 if loss - new_loss <= SETTLED * loss else 0
        p, phi, slopes, c, loss = trial, new_phi, new_slopes, new_c, new_loss
        damping = max(damping / 10.0, 1e-15)
        if quiet > 3 or loss <= exact:
            break
    return p, loss

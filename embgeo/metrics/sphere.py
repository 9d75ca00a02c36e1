"""Extremes of the partition function over the whole sphere (definitions, section 4, `i_sphere`).

ℓ(a) = log Σ exp⟨w_i, a⟩ is convex and smooth. On the sphere, a ← ∇ℓ/‖∇ℓ‖ never lowers a convex
function (Journée et al. 2010), so it climbs to a maximum; the minimum is approached by gradient
steps whose length doubles when they help and halves when they do not. All directions share each
pass over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from embgeo.metrics.base import Context, Eigen
from embgeo.stats.base import Block, FloatArray, IntArray
from embgeo.values import Quantity, Table, Value

#: Directions started on either side, and passes over the rows at most.
STARTS = 4
MAX_PASSES = 200
TOLERANCE = 1e-7

I_SPHERE = Quantity(
    "isotropy.i_sphere",
    "I1 over the whole sphere",
    "Smallest over largest value of the partition function over all directions, not only "
    "eigenvectors: Arora's own statement. Never above I1.",
    "min_‖a‖=1 Z(a) / max_‖a‖=1 Z(a)",
    "Arora et al. 2016, §2",
)
DIRECTIONS = Quantity(
    "isotropy.i_sphere_directions",
    "Directions of smallest and largest Z",
    "The coordinates that weigh most in the two extreme directions found.",
    "argmin Z, argmax Z over the sphere",
    "Arora et al. 2016, §2",
)


@dataclass(frozen=True, slots=True)
class Extremes:
    """log Z and direction of the lowest and highest points found, and whether they settled."""

    lowest: float
    highest: float
    argmin: FloatArray
    argmax: FloatArray
    settled: bool


def sphere_values(context: Context, eigen: Eigen, log_z: FloatArray, limit: int) -> list[Value]:
    entries = context.m * context.d
    if context.options.sphere is False:
        return [I_SPHERE.undefined("left out on request")]
    if context.options.sphere is None and entries > limit:
        return [
            I_SPHERE.undefined(
                f"{entries:.3g} entries are above {limit:.0e}, where each gradient step costs a "
                "pass over the file; ask for it with --sphere"
            )
        ]
    signed = np.hstack([eigen.vectors, -eigen.vectors])
    order = np.argsort(log_z.ravel(), kind="stable")
    found = search(context.blocks, signed[:, order[:STARTS]], signed[:, order[::-1][:STARTS]])
    convention = (
        f"from the {STARTS} best eigenvectors on either side, "
        f"{'settled' if found.settled else f'not settled after {MAX_PASSES} passes'}: "
        "an upper bound of the true ratio"
    )
    i_sphere = float(np.exp(found.lowest - found.highest))
    if i_sphere == 0.0:
        return [I_SPHERE.undefined("smaller than the smallest floating-point number")]
    return [I_SPHERE.measured(i_sphere, convention=convention), direction_table(found)]


def direction_table(found: Extremes) -> Table:
    rows: list[tuple[str, int, float]] = []
    for end, direction in (("smallest Z", found.argmin), ("largest Z", found.argmax)):
        for k in np.argsort(-np.abs(direction), kind="stable")[:5]:
            rows.append((end, int(k), float(direction[k])))
    note = f"log Z: {found.lowest:.10g} … {found.highest:.10g}"
    return Table(DIRECTIONS, ("end", "coordinate", "weight"), tuple(rows), note=note)


def search(
    blocks: Callable[[IntArray | None], Iterator[Block]], low: FloatArray, high: FloatArray
) -> Extremes:
    """Descend from the columns of `low` and climb from those of `high`, shapes (d, s)."""
    down, up = low.shape[1], high.shape[1]
    at = np.hstack([low, high])
    value, gradient = log_z_and_gradient(blocks, at)
    step = 1.0 / np.maximum(np.linalg.norm(gradient[:, :down], axis=0), 1e-300)
    open_ = np.ones(down + up, dtype=bool)
    for _ in range(MAX_PASSES):
        trial = at.copy()
        trial[:, :down] = _unit(at[:, :down] - step * _tangent(at, gradient)[:, :down])
        trial[:, down:] = _unit(gradient[:, down:])
        trial[:, ~open_] = at[:, ~open_]
        trial_value, trial_gradient = log_z_and_gradient(blocks, trial[:, open_])
        new_value, new_gradient = value.copy(), gradient.copy()
        new_value[open_], new_gradient[:, open_] = trial_value, trial_gradient
        sign = np.where(np.arange(down + up) < down, -1.0, 1.0)
        better = sign * (new_value - value) > 0
        step = np.where(better[:down], step * 2.0, step * 0.5)
        at[:, better] = trial[:, better]
        value[better], gradient[:, better] = new_value[better], new_gradient[:, better]
        slope = np.linalg.norm(_tangent(at, gradient), axis=0)
        size = np.maximum(np.linalg.norm(gradient, axis=0), 1e-300)
        small_step = np.r_[step * slope[:down] < 1e-14, ~better[down:]]
        open_ &= (slope > TOLERANCE * size) & ~small_step
        if not open_.any():
            break
    lowest, highest = int(np.argmin(value[:down])), down + int(np.argmax(value[down:]))
    return Extremes(
        float(value[lowest]),
        float(value[highest]),
        at[:, lowest],
        at[:, highest],
        settled=not open_[[lowest, highest]].any(),
    )


def log_z_and_gradient(
    blocks: Callable[[IntArray | None], Iterator[Block]], a: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """ℓ(a) and ∇ℓ(a) = Wᵀ softmax(Wa) for each column of `a`, in one pass."""
    top = np.full(a.shape[1], -np.inf)
    total = np.zeros(a.shape[1])
    weighted = np.zeros_like(a)
    for block in blocks(None):
        exponents = block.rows @ a
        both = np.maximum(top, exponents.max(axis=0))
        kept = np.exp(top - both)
        terms = np.exp(exponents - both)
        total = total * kept + terms.sum(axis=0)
        weighted = weighted * kept + block.rows.T @ terms
        top = both
    return top + np.log(total), weighted / total


def _tangent(at: FloatArray, gradient: FloatArray) -> FloatArray:
    """The part of each gradient that lies along the sphere."""
    return np.asarray(gradient - at * np.einsum("ij,ij->j", at, gradient))


def _unit(columns: FloatArray) -> FloatArray:
    length = np.linalg.norm(columns, axis=0)
    return columns / np.where(length > 0, length, 1.0)

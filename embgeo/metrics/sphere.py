"""Extremes of the partition function over the whole sphere (definitions, section 4, `i_sphere`).

ℓ(a) = log Σ exp⟨w_i, a⟩ is smooth. From the best eigenvectors on either side, gradient steps of
Barzilai & Borwein's length go along the sphere; a step that is worse than the last few values is
shortened instead (Grippo, Lampariello & Lucidi 1986). All directions share each pass over the
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import isotropy as q
from embgeo.core.values import Table, Value
from embgeo.metrics.base import Context, Eigen, Fold
from embgeo.stats import PartitionGradient
from embgeo.stats.statistic import Statistic

#: Directions started on either side, and passes over the rows at most.
STARTS = 4
MAX_PASSES = 200
#: A direction has settled when its next step promises less than this in log Z.
TOLERANCE = 1e-8
MEMORY = 5


@dataclass(frozen=True, slots=True)
class Extremes:
    """log Z and direction of the lowest and highest points found, and whether they settled."""

    lowest: float
    highest: float
    argmin: FloatArray
    argmax: FloatArray
    settled: bool


def sphere_values(
    context: Context, eigen: Eigen, log_z: FloatArray, longest: float, limit: int
) -> list[Value]:
    entries = context.m * context.d
    if context.options.sphere is False:
        return [q.I_SPHERE.undefined("left out on request")]
    if context.passes_absent:
        return [q.I_SPHERE.undefined(context.passes_absent)]
    if context.options.sphere is None and entries > limit:
        return [
            q.I_SPHERE.undefined(
                f"{entries:.3g} entries are above {limit:.0e}, where each gradient step costs a "
                "pass over the file; ask for it with --sphere"
            )
        ]
    signed = np.hstack([eigen.vectors, -eigen.vectors])
    order = np.argsort(log_z.ravel(), kind="stable")
    low, high = signed[:, order[:STARTS]], signed[:, order[::-1][:STARTS]]
    found = search(watched(context), low, high, longest)
    convention = (
        f"from the {STARTS} best eigenvectors on either side, "
        f"{'settled' if found.settled else f'not settled after {MAX_PASSES} passes'}: "
        "an upper bound of the true ratio"
    )
    # Both ends start on E; their values there differ in the last bit, being of another product.
    lowest, highest = min(found.lowest, log_z.min()), max(found.highest, log_z.max())
    i_sphere = float(np.exp(lowest - highest))
    if i_sphere == 0.0:
        return [q.I_SPHERE.undefined("smaller than the smallest floating-point number")]
    return [q.I_SPHERE.measured(i_sphere, convention=convention), direction_table(found)]


def watched(context: Context) -> Fold:
    """Passes over all kept rows, each announced with its number."""
    passes = count(1)

    def fold(statistics: Sequence[Statistic], rows: IntArray | None = None) -> None:
        context.announce(f"search of the sphere, pass {next(passes)}", context.m)
        context.fold(statistics, rows)

    return fold


def direction_table(found: Extremes) -> Table:
    rows: list[tuple[str, int, float]] = []
    for end, direction in (("smallest Z", found.argmin), ("largest Z", found.argmax)):
        for k in np.argsort(-np.abs(direction), kind="stable")[:5]:
            rows.append((end, int(k), float(direction[k])))
    note = f"log Z: {found.lowest:.10g} … {found.highest:.10g}"
    return Table(q.I_SPHERE_DIRECTIONS, ("end", "coordinate", "weight"), tuple(rows), note=note)


def search(fold: Fold, low: FloatArray, high: FloatArray, longest: float) -> Extremes:
    """Descend from the columns of `low` and climb from those of `high`, shapes (d, s)."""

    def look(directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        partition = PartitionGradient(directions, bound=longest)
        fold([partition])
        return partition.log_z(), partition.gradient()

    down, at = low.shape[1], np.hstack([low, high])
    sign = np.where(np.arange(at.shape[1]) < down, 1.0, -1.0)
    value, gradient = look(at)
    slope = sign * _tangent(at, gradient)
    # The first step turns a direction by about a tenth of a radian.
    step = 0.1 / np.maximum(_lengths(slope), 1e-300)
    recent = np.tile(sign * value, (MEMORY, 1))
    best_value, best = value.copy(), at.copy()
    for _ in range(MAX_PASSES):
        moving = np.flatnonzero(_promise(step, slope) > TOLERANCE)
        if not len(moving):
            break
        trial = _unit(at[:, moving] - step[moving] * slope[:, moving])
        trial_value, trial_gradient = look(trial)
        gain = 1e-4 * _promise(step, slope)[moving]
        taken = sign[moving] * trial_value <= recent[:, moving].max(axis=0) - gain
        step[moving[~taken]] *= 0.25
        moved = moving[taken]
        new_slope = sign[moved] * _tangent(trial[:, taken], trial_gradient[:, taken])
        step[moved] = _next_step(trial[:, taken] - at[:, moved], new_slope - slope[:, moved])
        at[:, moved], value[moved] = trial[:, taken], trial_value[taken]
        slope[:, moved] = new_slope
        recent[:, moved] = np.vstack([recent[1:, moved], (sign * value)[moved]])
        better = sign * value < sign * best_value
        best_value[better], best[:, better] = value[better], at[:, better]
    lowest = int(np.argmin(best_value[:down]))
    highest = down + int(np.argmax(best_value[down:]))
    settled = _promise(step, slope) <= TOLERANCE
    # The search may look in float32; what it found is looked at in float64.
    exact = PartitionGradient(best[:, [lowest, highest]])
    fold([exact])
    least, most = exact.log_z()
    return Extremes(
        float(least),
        float(most),
        best[:, lowest],
        best[:, highest],
        settled=bool(settled[[lowest, highest]].all()),
    )


def _promise(step: FloatArray, slope: FloatArray) -> FloatArray:
    """What a step along the slope promises to change in log Z."""
    return np.asarray(step * np.square(_lengths(slope)))


def _next_step(turn: FloatArray, change: FloatArray) -> FloatArray:
    """Barzilai & Borwein 1988: the inverse curvature along the last step of each column."""
    along = np.abs(np.einsum("ij,ij->j", turn, change))
    length = np.square(_lengths(turn))
    return np.asarray(np.clip(length / np.maximum(along, 1e-300), 1e-12, 1e12))


def _lengths(columns: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(columns, axis=0))


def _tangent(at: FloatArray, gradient: FloatArray) -> FloatArray:
    """The part of each gradient that lies along the sphere."""
    return np.asarray(gradient - at * np.einsum("ij,ij->j", at, gradient))


def _unit(columns: FloatArray) -> FloatArray:
    return columns / np.maximum(_lengths(columns), 1e-300)

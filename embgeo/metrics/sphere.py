"""Extremes of the partition function over the whole sphere (definitions, section 4, `i_sphere`).

ℓ(a) = log Σ exp⟨w_i, a⟩ is smooth; the search (`numerics.sphere_search`) starts from the best
eigenvectors on either side, and all its directions share each pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.options import Options
from embgeo.core.quantities import isotropy as q
from embgeo.core.values import Table, Value
from embgeo.metrics.facts import Facts
from embgeo.numerics.eigen import Eigen
from embgeo.numerics.sphere_search import MAX_PASSES, find_extremes
from embgeo.stats import PartitionGradient
from embgeo.stats.reader import RowReader

#: Directions started on either side.
STARTS = 4


@dataclass(frozen=True, slots=True)
class Extremes:
    """log Z and direction of the lowest and highest points found, and whether they settled."""

    lowest: float
    highest: float
    argmin: FloatArray
    argmax: FloatArray
    settled: bool


def measure_sphere(
    facts: Facts,
    options: Options,
    reader: RowReader,
    eigen: Eigen,
    log_z: FloatArray,
    longest: float,
    limit: int,
) -> list[Value]:
    entries = facts.m * facts.d
    if options.sphere is False:
        return [q.I_SPHERE.undefined("left out on request")]
    if reader.passes_absent:
        return [q.I_SPHERE.undefined(reader.passes_absent)]
    if options.sphere is None and entries > limit:
        return [
            q.I_SPHERE.undefined(
                f"{entries:.3g} entries are above {limit:.0e}, where each gradient step costs a "
                "pass over the file; ask for it with --sphere"
            )
        ]
    signed = np.hstack([eigen.vectors, -eigen.vectors])
    order = np.argsort(log_z.ravel(), kind="stable")
    low, high = signed[:, order[:STARTS]], signed[:, order[::-1][:STARTS]]
    found = search(facts, reader, low, high, longest)
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
    return [
        q.I_SPHERE.measured(i_sphere, known="at_most", convention=convention),
        make_direction_table(found),
    ]


def search(
    facts: Facts, reader: RowReader, low: FloatArray, high: FloatArray, longest: float
) -> Extremes:
    """The extremes of log Z near the columns of `low` and `high`, shapes (d, s)."""
    passes = count(1)

    def evaluate(directions: FloatArray, bound: float = longest) -> PartitionGradient:
        partition = PartitionGradient(directions, bound=bound)
        reader.announce(f"search of the sphere, pass {next(passes)}", facts.m)
        reader.fold([partition])
        return partition

    def evaluate_both(directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        partition = evaluate(directions)
        return partition.log_z(), partition.gradient()

    lowest, highest, settled = find_extremes(evaluate_both, low, high)
    # The search may evaluate in float32; its result is evaluated in float64.
    least, most = evaluate(np.stack([lowest, highest], axis=1), np.inf).log_z()
    return Extremes(float(least), float(most), lowest, highest, settled)


def make_direction_table(found: Extremes) -> Table:
    rows: list[tuple[str, int, float]] = []
    for end, direction in (("smallest Z", found.argmin), ("largest Z", found.argmax)):
        for k in np.argsort(-np.abs(direction), kind="stable")[:5]:
            rows.append((end, int(k), float(direction[k])))
    note = f"log Z: {found.lowest:.10g} … {found.highest:.10g}"
    return Table(q.I_SPHERE_DIRECTIONS, ("end", "coordinate", "weight"), tuple(rows), note=note)

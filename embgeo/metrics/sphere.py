"""Extremes of the partition function over the whole sphere (definitions, section 4, `i_sphere`).

ℓ(a) = log Σ exp⟨w_i, a⟩ is smooth, but long rows cause many local maxima, one near each of the
longest rows. The search (`numerics.sphere_search`) starts from the best eigenvectors, and from the
longest rows upward and random directions downward; all directions share each pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import isotropy as q
from embgeo.core.values import Table, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.sphere_search import find_extremes
from embgeo.stats import PartitionGradient
from embgeo.stats.reader import RowReader

#: Number of starts on either side, within bounds: `START_ENTRIES` divided by the matrix' entries.
STARTS = (4, 32)
START_ENTRIES = 10**8
#: The search has converged if this many starts on either side reach the best log Z within `NEAR`.
AGREEING, NEAR = 3, 1e-6


@dataclass(frozen=True, slots=True)
class Extremes:
    """The lowest and highest log Z, their directions, and how many starts agree on either."""

    lowest: float
    highest: float
    argmin: FloatArray
    argmax: FloatArray
    agreeing: int


def measure_sphere(
    facts: Facts,
    reader: RowReader,
    shared: SharedStatistics,
    log_z: FloatArray,
    limit: int,
) -> list[Value]:
    if facts.options.sphere is False:
        return [q.I_SPHERE.undefined("left out on request")]
    if reader.passes_absent:
        return [q.I_SPHERE.undefined(reader.passes_absent)]
    if is_too_large(facts, limit):
        return [
            q.I_SPHERE.undefined(
                f"{facts.m * facts.d:.3g} entries are above {limit:.0e}, where each gradient step "
                "costs a pass over the file; request it with --sphere"
            )
        ]
    low, high = choose_starts(facts, reader, shared, log_z)
    found = search(facts, reader, low, high, float(shared.norms.max()))
    settled = found.agreeing >= AGREEING
    convention = (
        f"from {low.shape[1]} starts downward and {high.shape[1]} upward, "
        f"{'settled' if settled else 'not settled'}: {found.agreeing} of them reach the same end; "
        "an upper bound of the true ratio"
    )
    # Both ends start on E, where another product may differ in the last bit.
    lowest, highest = min(found.lowest, log_z.min()), max(found.highest, log_z.max())
    i_sphere = float(np.exp(lowest - highest))
    if i_sphere == 0.0:
        return [q.I_SPHERE.undefined("smaller than the smallest floating-point number")]
    return [
        q.I_SPHERE.measured(
            i_sphere,
            known="at_most",
            convention=convention,
            caveats=() if settled else ("not_converged",),
        ),
        make_direction_table(found),
    ]


def is_too_large(facts: Facts, limit: int) -> bool:
    return facts.options.sphere is None and facts.m * facts.d > limit


def rows_read(facts: Facts, shared: SharedStatistics, limit: int) -> IntArray:
    """Rows that the search starts from."""
    if facts.options.sphere is False or is_too_large(facts, limit):
        return NO_ROWS
    return np.sort(find_longest_rows(facts, shared))


def count_starts(facts: Facts) -> int:
    """The number of starts on either side."""
    return int(np.clip(START_ENTRIES // (facts.m * facts.d), *STARTS))


def find_longest_rows(facts: Facts, shared: SharedStatistics) -> IntArray:
    """The longest rows, one for each upward start that is not an eigenvector."""
    order = np.argsort(-shared.norms, kind="stable")
    return np.asarray(facts.kept[order[: count_starts(facts) // 2]])


def choose_starts(
    facts: Facts,
    reader: RowReader,
    shared: SharedStatistics,
    log_z: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Unit columns for descent and ascent; one half of each are eigenvectors."""
    half = count_starts(facts) // 2
    signed = np.hstack([shared.eigen.vectors, -shared.eigen.vectors])
    order = np.argsort(log_z.ravel(), kind="stable")
    longest = find_longest_rows(facts, shared)
    drawn = facts.generator("sphere").standard_normal((facts.d, half))
    drawn /= np.linalg.norm(drawn, axis=0)
    return (
        np.hstack([signed[:, order[:half]], drawn]),
        np.hstack([signed[:, order[::-1][:half]], reader.take_unit(longest).T]),
    )


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

    best, values, settled = find_extremes(evaluate_both, low, high)
    down = low.shape[1]
    lowest, highest = int(np.argmin(values[:down])), down + int(np.argmax(values[down:]))
    near = settled & (np.abs(values - values[[lowest, highest]][:, None]) <= NEAR)
    agreeing = int(min(near[0, :down].sum(), near[1, down:].sum()))
    # The search may evaluate in float32; its result is evaluated in float64.
    least, most = evaluate(best[:, [lowest, highest]], np.inf).log_z()
    return Extremes(float(least), float(most), best[:, lowest], best[:, highest], agreeing)


def make_direction_table(found: Extremes) -> Table:
    rows: list[tuple[str, int, float]] = []
    for end, direction in (("smallest Z", found.argmin), ("largest Z", found.argmax)):
        for k in np.argsort(-np.abs(direction), kind="stable")[:5]:
            rows.append((end, int(k), float(direction[k])))
    note = f"log Z: {found.lowest:.10g} … {found.highest:.10g}"
    return Table(q.I_SPHERE_DIRECTIONS, ("end", "coordinate", "weight"), tuple(rows), note=note)

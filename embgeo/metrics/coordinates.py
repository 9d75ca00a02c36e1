"""Rogue coordinates: a few that hold more than their share (definitions, section 13).

Coordinates are ranked by their energy Σ_i w_ik², which a large mean and a large variance both
raise. The mean cosine is repeated with the largest coordinates set to zero; I1, which takes a
decomposition each, only if a coordinate stands out.

Examples
--------
>>> import embgeo
>>> rows = np.random.default_rng(0).standard_normal((500, 16))
>>> rows[:, 3] += 4.0
>>> found = embgeo.analyze(rows, sections=["cosine", "coordinates"], reference=False)
>>> for name in ("cosine.mean", "coordinates.mean_cosine_without_1"):
...     print(f"{found[name].value:.3f}")
0.495
0.001
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import coordinates as q
from embgeo.core.values import Scalar, Table, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.isotropy import compute_i1_i2
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.spectra import average_cosine
from embgeo.stats import LogPartition, Moments, ReducedSums
from embgeo.stats.statistic import Statistic

FAMILY = "coordinates"
FIRST = ("moments", "unit moments")
#: Numbers of coordinates set to zero, with the quantities measured without them.
WITHOUT = (
    (1, q.MEAN_COSINE_WITHOUT_1, q.I1_WITHOUT_1),
    (3, q.MEAN_COSINE_WITHOUT_3, q.I1_WITHOUT_3),
    (5, q.MEAN_COSINE_WITHOUT_5, q.I1_WITHOUT_5),
)
#: I1 is computed if the largest energy of a coordinate is at least this many times the median one.
STANDS_OUT = 10.0
#: In more dimensions three further decompositions take too long.
MOST_DIMENSIONS = 1024
#: Rows of the table.
SHOWN = 10
CONVENTION = "coordinates ranked by energy"


def second(facts: Facts, shared: SharedStatistics) -> list[Statistic]:
    order = rank_by_energy(shared.moments)
    counts = tuple(count for count, _, _ in WITHOUT if count < facts.d)
    if not counts:
        return []
    statistics: list[Statistic] = [ReducedSums(order[: counts[-1]], counts, facts.d)]
    if not explain_no_i1(facts, shared.moments):
        for count in counts:
            zeroed = order[:count]
            statistics.append(
                LogPartition(
                    f"without {count}",
                    shared.directions_without(zeroed),
                    scales=(),
                    bound=1.0,
                    unit_rows=True,
                    zeroed=zeroed,
                )
            )
    return statistics


def compute(facts: Facts, shared: SharedStatistics) -> list[Value]:
    moments = shared.moments
    variance = moments.diagonal() / moments.n
    return [
        *measure_variances(variance, shared.all_rows_equal),
        q.FIRST_DIRECTION_SHARE.measured(float(np.square(shared.eigen.vectors[:, 0]).max())),
        *measure_mean_cosines(facts, shared),
        *measure_i1s(facts, shared),
        make_table(shared, variance),
    ]


def energies(moments: Moments) -> FloatArray:
    """Mean square of each coordinate, shape (d,)."""
    return np.asarray(moments.diagonal() / moments.n + np.square(moments.mean))


def rank_by_energy(moments: Moments) -> IntArray:
    """Coordinates by falling energy."""
    return np.argsort(-energies(moments), kind="stable")


def explain_no_i1(facts: Facts, moments: Moments) -> str:
    """Why I1 is not computed without the largest coordinates; empty if it is."""
    energy = energies(moments)
    if energy.max() < STANDS_OUT * np.median(energy):
        return f"no coordinate has {STANDS_OUT:g} times the energy of the median one"
    if facts.d > MOST_DIMENSIONS:
        return f"three decompositions of more than {MOST_DIMENSIONS:,} dimensions take too long"
    return ""


def measure_variances(variance: FloatArray, all_rows_equal: str) -> list[Scalar]:
    if all_rows_equal:
        return [x.undefined(all_rows_equal) for x in (q.VARIANCE_SHARE, q.VARIANCE_RATIO)]
    largest, median = float(variance.max()), float(np.median(variance))
    return [
        q.VARIANCE_SHARE.measured(largest / float(variance.sum())),
        q.VARIANCE_RATIO.measured(largest / median)
        if median > largest * 2.0**-52
        else q.VARIANCE_RATIO.undefined("half of the coordinates do not vary"),
    ]


def measure_mean_cosines(facts: Facts, shared: SharedStatistics) -> list[Scalar]:
    """(‖Σŵ‖² − M)/(M(M−1)) of the rows without the largest coordinates."""
    values: list[Scalar] = []
    for at, (count, quantity, _) in enumerate(WITHOUT):
        if count >= facts.d:
            values.append(quantity.undefined(f"there are only {facts.d} coordinates"))
            continue
        reduced = shared.find(ReducedSums)
        m = int(reduced.n[at])
        if m < 2:
            values.append(quantity.undefined("fewer than two rows have anything left"))
            continue
        mean = average_cosine(reduced.sums[at], m)
        values.append(quantity.measured(mean, convention=CONVENTION))
    return values


def measure_i1s(facts: Facts, shared: SharedStatistics) -> list[Scalar]:
    reason = explain_no_i1(facts, shared.moments)
    values: list[Scalar] = []
    for at, (count, _, quantity) in enumerate(WITHOUT):
        if count >= facts.d:
            values.append(quantity.undefined(f"there are only {facts.d} coordinates"))
        elif reason:
            values.append(quantity.undefined(reason))
        elif shared.find(ReducedSums).n[at] < facts.m:
            values.append(quantity.undefined("some rows have nothing left"))
        else:
            log_z = shared.find(LogPartition, f"without {count}")
            i1, _ = compute_i1_i2(log_z.log_z_of_unit_rows())
            values.append(quantity.measured(i1, convention=CONVENTION))
    return values


def make_table(shared: SharedStatistics, variance: FloatArray) -> Table:
    energy = energies(shared.moments)
    total, spread = float(energy.sum()), float(variance.sum())
    direction = shared.mean_direction
    strongest = np.square(shared.eigen.vectors[:, 0])
    rows = tuple(
        (
            int(k),
            float(energy[k]) / total,
            float(variance[k]) / spread if spread > 0 else None,
            None if direction is None else float(direction[k] ** 2),
            float(strongest[k]),
        )
        for k in rank_by_energy(shared.moments)[:SHOWN]
    )
    return Table(
        q.LARGEST,
        ("coordinate", "energy", "variance", "mean cosine", "first direction"),
        rows,
        note="shares; coordinates are counted from 0 and depend on the basis of the model",
    )

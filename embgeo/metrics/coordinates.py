"""Rogue coordinates: a few that hold more than their share (definitions, section 13).

Coordinates are ranked by their energy Σ_i w_ik², which a large mean and a large variance both
raise. The mean cosine is repeated with the largest coordinate set to zero.

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

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import coordinates as q
from embgeo.core.values import Scalar, Table, Value
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics, row_moments, unit_moments
from embgeo.numerics.spectra import average_cosine
from embgeo.stats import Moments, SumWithout
from embgeo.stats.statistic import Statistic

#: Rows of the table.
SHOWN = 10
#: Least variance of a wide coordinate, as a multiple of the median one.
WIDE = 25.0
#: Wide coordinates stand apart: the narrowest of them has more than this many times the variance of
#: the next. Where variances fall as k^−1.5, the first has 2.8 times that of the second.
GAP = 3.0
OF_VARIANCE = (q.VARIANCE_RATIO, q.ROGUE_COORDINATES, q.ROGUE_SHARE)
CONVENTION = "coordinates ranked by their sum of squares"


def second(m: Measurement) -> list[Statistic]:
    if m.facts.d < 2:
        return []
    return [SumWithout(int(rank_by_energy(m.shared.moments)[0]), m.facts.d)]


def compute(m: Measurement) -> list[Value]:
    moments = m.shared.moments
    variance = moments.diagonal() / moments.n
    return [
        *measure_variances(variance, m.shared.all_rows_equal),
        measure_mean_cosine(m),
        make_table(m.shared, variance),
    ]


#: Squared correlations of principal axes, as a share of those of independent coordinates.
UNCORRELATED = 1e-4


def are_principal(moments: Moments) -> bool:
    """Tell whether coordinates are principal axes, centered or not, as after an SVD or a PCA.

    Their products cancel then, of any two columns. Those of independent coordinates cancel up to
    chance: Σ_{j≠k} C_jk² is about Σ_{j≠k} C_jj·C_kk/n.
    """
    n, mean, diagonal = moments.n, moments.mean, moments.diagonal()
    with np.errstate(over="ignore", invalid="ignore"):  # of very long rows
        centered = moments.squares() - float(diagonal @ diagonal)
        along = moments.along_mean() - float(diagonal @ np.square(mean))
        across = float(np.square(mean @ mean)) - float((mean**4).sum())
        whole = centered + 2.0 * n * along + n**2 * across
        sides = (centered, diagonal), (whole, diagonal + n * np.square(mean))
        chances = [float(np.square(x.sum()) - x @ x) / max(n, 1) for _, x in sides]
    return any(
        products <= UNCORRELATED * chance and chance > 0.0
        for (products, _), chance in zip(sides, chances, strict=True)
    )


def energies(moments: Moments) -> FloatArray:
    """Return the mean square of each coordinate, shape (d,)."""
    return np.asarray(moments.diagonal() / moments.n + np.square(moments.mean))


def rank_by_energy(moments: Moments) -> IntArray:
    """Return coordinates by falling energy."""
    return np.argsort(-energies(moments), kind="stable")


def measure_variances(variance: FloatArray, all_rows_equal: str) -> list[Scalar]:
    if all_rows_equal:
        return [x.undefined(all_rows_equal) for x in OF_VARIANCE]
    largest, median, total = variance.max(), float(np.median(variance)), float(variance.sum())
    if not median > largest * 2.0**-52:
        reason = "half of the coordinates do not vary"
        return [x.undefined(reason) for x in OF_VARIANCE]
    falling = np.sort(variance)[::-1]
    wide = int(np.count_nonzero(falling >= WIDE * median))
    apart = np.flatnonzero(falling[:wide] > GAP * falling[1 : wide + 1])
    count = int(apart.max(initial=-1)) + 1
    return [
        q.VARIANCE_RATIO.measured(float(largest) / median),
        q.ROGUE_COORDINATES.measured(count),
        q.ROGUE_SHARE.measured(float(falling[:count].sum()) / total),
    ]


def measure_mean_cosine(m: Measurement) -> Scalar:
    """Return (‖Σŵ‖² − M)/(M(M−1)) of the rows without the largest coordinate."""
    if m.facts.d < 2:
        return q.MEAN_COSINE_WITHOUT_1.undefined("there is only 1 coordinate")
    reduced = m.shared.find(SumWithout)
    if reduced.n < 2:
        return q.MEAN_COSINE_WITHOUT_1.undefined("fewer than two rows have anything left")
    return q.MEAN_COSINE_WITHOUT_1.measured(
        average_cosine(reduced.total, reduced.n), convention=CONVENTION
    )


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
        ("coordinate", "variance (uncentered)", "variance", "mean cosine", "top direction"),
        rows,
        note="shares; coordinates are counted from 0 and depend on the basis of the model",
    )


FAMILY = Family("coordinates", compute, first=(row_moments, unit_moments), second=second)

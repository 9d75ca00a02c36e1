"""Distance between input and output column spaces (definitions, section 6; Inan appendix B).

Examples
--------
>>> import embgeo
>>> from embgeo.core.matrix import Matrix
>>> W = np.random.default_rng(0).standard_normal((200, 6))
>>> pair = Matrix(W[:, :4], output=Matrix(W[:, 2:]))  # two columns in common
>>> found = embgeo.analyze(pair, sections=["subspace"], reference=False)
>>> found["subspace.principal_angles"].y["principal angle"].round(0).tolist()
[0.0, 0.0, 84.0, 86.0]
>>> round(found["subspace.distance"].value ** 2, 2)
0.5
"""

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import subspace as q
from embgeo.core.values import Series, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.principal_angles import column_basis, principal_cosines_and_sines
from embgeo.numerics.row_norms import find_norm_limit
from embgeo.stats import OutputNorms, StackedQR
from embgeo.stats.statistic import Statistic


def absent(m: Measurement) -> str:
    return "" if m.facts.output_width else m.facts.output_absent


def second(m: Measurement) -> list[Statistic]:
    return [make_qr(m.facts), OutputNorms()]


def make_qr(facts: Facts, without: IntArray | None = None) -> StackedQR:
    width = facts.d + (facts.output_width or 0)
    return StackedQR("input|output", width, of="paired", without=without)


def compute(m: Measurement) -> list[Value]:
    facts, reader, shared = m.facts, m.reader, m.shared
    qr = shared.find(StackedQR, "input|output")
    # Damaged output rows, which are rare, are known only after all rows were read.
    dead = find_dead_output_rows(facts, shared)
    if len(dead):
        qr = make_qr(facts, without=dead)
        reader.announce("subspaces without damaged output rows", facts.m)
        reader.fold([qr])
    return measure_subspaces(qr.r, facts.d, qr.n)


def find_dead_output_rows(facts: Facts, shared: SharedStatistics) -> IntArray:
    """Find kept rows whose output row is missing, or damaged and neither zero nor non-finite."""
    found = shared.get(OutputNorms)
    if found is None:
        return NO_ROWS
    rows = facts.vocabulary
    norms = np.asarray(found.values())[np.searchsorted(found.index(), rows)]
    limit = find_norm_limit(norms, facts.output_width or facts.d, facts.options.min_norm)
    small = rows[(norms > 0) & (norms < limit)]
    return np.intersect1d(np.union1d(small, facts.without_output), facts.kept)


def measure_subspaces(r: FloatArray, width: int, rows: int) -> list[Value]:
    """Measure by the triangular factor of ``[X | Y]``, X with `width` columns, over `rows` tokens.

    In the coordinates of the common orthonormal factor, X and Y are small matrices. The part of one
    basis outside the other space is formed there directly, not as 1 − cos².
    """
    x, y = column_basis(r[:, :width], rows), column_basis(r[:, width:], rows)
    if not x.shape[1] or not y.shape[1]:
        reason = "a matrix of rank 0 spans no subspace"
        return [q.DISTANCE.undefined(reason)]
    larger, smaller = (x, y) if x.shape[1] >= y.shape[1] else (y, x)
    cosines, sines = principal_cosines_and_sines(larger, smaller)
    distance = float(np.sqrt(np.mean(np.square(sines))))
    angles = np.degrees(np.arctan2(sines, cosines))
    chance = float(np.sqrt(max(0.0, 1.0 - larger.shape[1] / rows)))
    return [
        q.DISTANCE.measured(
            distance,
            convention="column spaces in R^N; V is the smaller space; "
            f"ranks {x.shape[1]:,} of the input and {y.shape[1]:,} of the output",
            reference=chance,
            reference_note=(
                f"chance: √(1 − p/N) for random {larger.shape[1]}-dimensional subspaces of "
                f"R^{rows:,}"
            ),
        ),
        Series(
            q.PRINCIPAL_ANGLES,
            np.arange(1, len(angles) + 1, dtype=np.float64),
            {"principal angle": angles},
            "index i",
            "θ_i (°)",
        ),
    ]


FAMILY = Family("subspace", compute, second=second, absent=absent)

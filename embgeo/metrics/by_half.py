"""Errors over tokens of the numbers of a family, from the same numbers of 30 halves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.values import Caveat, Halves, Quantity, Scalar, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Measurement
from embgeo.numerics.halves import GROUPS, find_error, sum_halves
from embgeo.stats import GroupSquares, GroupSums
from embgeo.stats.statistic import Statistic

#: The number of each half by quantity, or why there are none.
ByHalf = Mapping[Quantity, FloatArray | Caveat]
#: Above this share of an eigenvalue in one row, the error of a spectrum is the luck of that row.
LARGEST_ROW = 0.3
#: Squares of rows of lengths within 2^±ORDINARY are well inside float32.
ORDINARY = 30
UNIT, UNCENTERED, CENTERED = "halves", "eigenvectors", "centered"


def add_errors(
    m: Measurement,
    values: Sequence[Value],
    quantities: Sequence[Quantity],
    find: Callable[[], ByHalf],
) -> list[Value]:
    """Return the values with the errors of these quantities, and the numbers of the halves.

    `find` is called where there are groups of rows. A number without an error says why.
    """
    if not m.facts.options.row_errors:
        return [*values]
    few: dict[Quantity, FloatArray | Caveat] = dict.fromkeys(quantities, "few_rows")
    found: ByHalf = few if m.facts.kept_groups is None else find()
    changed: list[Value] = []
    halves: list[Value] = []
    for value in values:
        known = found.get(value.quantity) if isinstance(value, Scalar) else None
        if not isinstance(value, Scalar) or value.value is None or known is None:
            changed.append(value)
            continue
        error = known if isinstance(known, str) else find_error(value.value, known)
        if isinstance(error, str):
            value = replace(value, caveats=(*value.caveats, error))
        elif error is not None:
            value = replace(value, population_error=error)
            halves.append(Halves(value.quantity, np.asarray(known, dtype=np.float64)))
        changed.append(value)
    return changed + halves


# --- statistics that families share ---------------------------------------------------------------


def unit_groups(facts: Facts) -> Statistic | None:
    """Return the statistic of the first pass that sums the unit rows of each group."""
    if facts.groups is None:
        return None
    return GroupSums(UNIT, facts.groups, GROUPS, facts.d)


def request_squares(m: Measurement, of: str) -> list[Statistic]:
    """Return the statistic of the second pass that the eigenvalues of halves are made of."""
    shared, labels = m.shared, m.facts.groups
    if m.facts.kept_groups is None or labels is None or shared.all_rows_equal:
        return []
    exponent = int(np.frexp(shared.norms.mean())[1])
    scale = 2.0**exponent if abs(exponent) > ORDINARY else 1.0
    if of == CENTERED:
        vectors = shared.eigen_centered.vectors
        mean = shared.moments.mean @ vectors
        return [GroupSquares(CENTERED, vectors, labels, mean, shared.single_centered, scale=scale)]
    vectors, single, rotation = shared.eigen.vectors, shared.single, shared.rotation
    return [GroupSquares(UNCENTERED, vectors, labels, None, single, rotation, scale)]


def centered_eigenvalues(squares: GroupSquares) -> FloatArray:
    """Return the eigenvalues of the centered scatter of each half, to first order."""
    n, sums = sum_halves(squares.n), sum_halves(squares.sums)
    return np.asarray(sum_halves(squares.squares) - np.square(sums) / n[:, None])


def note_dominant_row(squares: GroupSquares, values: Sequence[Value]) -> list[Value]:
    """Add a caveat to values with an error, where one row holds much of an eigenvalue."""
    total = squares.squares.sum(axis=0)
    if not (squares.largest > LARGEST_ROW * total).any():
        return [*values]
    return [
        replace(value, caveats=(*value.caveats, "dominant_row"))
        if isinstance(value, Scalar) and value.population_error is not None
        else value
        for value in values
    ]

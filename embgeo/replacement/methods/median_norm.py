"""The row's own direction at the median norm, for rows that only shrank."""

from __future__ import annotations

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.replacement.methods.method import RowSource, refuse_rows
from embgeo.replacement.survey import Length

NAME = "median-norm"
LENGTH: Length = "median"
SEEDED = False


def compute(source: RowSource, rows: IntArray) -> FloatArray:
    without = rows[~(source.input.norms[rows] > 0)]
    if len(without):
        raise refuse_rows(source, without, "zero and non-finite rows have no direction")
    return source.input.matrix.take(rows)

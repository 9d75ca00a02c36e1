"""New rows by a method, with the norm of the healthy rows, rounded to the type of the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arguments import refuse_if, refuse_name
from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import argument
from embgeo.numerics.rounding import round_to
from embgeo.replacement.methods import METHODS, mean, output
from embgeo.replacement.methods.method import ReplacementMethod, RowSource, refuse_rows
from embgeo.replacement.record import ReplacedRow, encode_row


def choose_method(name: str | None, source: RowSource) -> ReplacementMethod:
    """The named method; by default "output" for an untied model, else "mean"."""
    if name is None:
        return mean if source.output is None else output
    found = {method.NAME: method for method in METHODS}
    if name not in found:
        raise refuse_name("method", name, found, argument("method"))
    return found[name]


def replace_rows(
    source: RowSource, rows: IntArray, method: ReplacementMethod
) -> tuple[ReplacedRow, ...]:
    """New rows for one or more rows in ascending order, with the norm that the method names."""
    survey = source.input
    cause, way_out = "every row is damaged: there is no norm to take", "take another checkpoint"
    refuse_if(not survey.healthy.any(), survey.matrix.name, cause, way_out)
    directions, norm = method.compute(source, rows), survey.lengths[method.LENGTH]
    stored = scale_rows(source, rows, directions, norm)
    norms = np.linalg.norm(stored.astype(np.float64), axis=1)
    tokens = survey.matrix.tokens
    roles = {one.row: one.roles for one in survey.matrix.special}
    return tuple(
        ReplacedRow(
            row=row,
            token=None if tokens is None else tokens[row],
            roles=roles.get(row, ()),
            state=survey.state(row),
            norm_before=float(before) if np.isfinite(before) else None,
            norm_after=float(after),
            values=encode_row(values),
        )
        for row, before, after, values in zip(
            rows.tolist(), survey.norms[rows], norms, stored, strict=True
        )
    )


def scale_rows(
    source: RowSource, rows: IntArray, directions: FloatArray, norm: float
) -> npt.NDArray[Any]:
    """Rows of this norm in the type of the matrix; BadOption if it cannot hold them."""
    # Divided by the largest entry first: squares of entries near 1e-200 would vanish.
    largest = np.abs(directions).max(axis=1, keepdims=True)
    without = ~(np.isfinite(largest) & (largest > 0))[:, 0]
    if without.any():
        raise refuse_rows(source, rows[without], "their sources have no direction")
    units = directions / largest
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    dtype = source.input.matrix.data.dtype
    stored = round_to(norm * units, dtype)
    wide = stored.astype(np.float64)
    lost = ~np.isfinite(wide).all(axis=1) | ~wide.any(axis=1)
    if lost.any():
        raise refuse_rows(source, rows[lost], f"{dtype} does not hold the new row")
    return stored

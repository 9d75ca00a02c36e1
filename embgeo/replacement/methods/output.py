"""The direction of the output row, for untied models whose output matrix was trained there.

The repair of NVIDIA NeMo Automodel (pull request 3136) and Megatron Bridge (pull request 5005).
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.replacement.methods.method import RowSource, refuse_rows
from embgeo.replacement.survey import Length

NAME = "output"
LENGTH: Length = "rms"
SEEDED = False


def compute(source: RowSource, rows: IntArray) -> FloatArray:
    """The rows of the output matrix."""
    output, cause = source.output, ""
    if output is None:
        reason = "is tied: both sides are one matrix" if source.tied else "has no output matrix"
        cause = f"the model {reason}"
    elif output.matrix.d != source.input.matrix.d:
        columns = f"{output.matrix.d:,} columns and the embedding {source.input.matrix.d:,}"
        cause = f"the output matrix has {columns}"
    if output is None or cause:
        cause = f"{NAME} does not apply, {cause}"
        raise BadOption(cause, where=argument("method"), way_out="choose subwords or mean")
    damaged = rows[~output.healthy[rows]]
    if len(damaged):
        raise refuse_rows(source, damaged, "the output matrix is damaged there, too")
    return np.asarray(output.matrix.take(rows))

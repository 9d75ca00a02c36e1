"""The direction of the output row: what the model learned to say, where it never learned to hear.

Of an untied model whose output matrix was trained where the embedding was not; the repair of
NVIDIA NeMo Automodel (pull request 3136) and Megatron Bridge (pull request 5005).
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
    output = source.output
    if output is None:
        cause = "is tied: both sides are one matrix" if source.tied else "has no output matrix"
        raise BadOption(
            f"{NAME} does not apply, the model {cause}",
            where=argument("method"),
            way_out="choose subwords or mean",
        )
    if output.matrix.d != source.input.matrix.d:
        raise BadOption(
            f"{NAME} does not apply, the output matrix has {output.matrix.d:,} columns and the "
            f"embedding {source.input.matrix.d:,}",
            where=argument("method"),
            way_out="choose subwords or mean",
        )
    damaged = rows[~output.healthy[rows]]
    if len(damaged):
        raise refuse_rows(source, damaged, "the output matrix is damaged there, too")
    return np.asarray(output.matrix.take(rows))

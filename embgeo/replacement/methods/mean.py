"""The mean of all healthy rows.

Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language Models": with the average of
the rows, the softmax of the model changes little. The bound holds for the mean itself; here it is
scaled to the norm of the other rows, like every new row.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.replacement.methods.method import RowSource
from embgeo.replacement.survey import Length

NAME = "mean"
LENGTH: Length = "rms"
SEEDED = False


def compute(source: RowSource, rows: IntArray) -> FloatArray:
    """The mean row, once for each."""
    total = np.zeros(source.input.matrix.d)
    for block in source.healthy_blocks():
        total += block.sum(axis=0)
    return np.tile(total / source.input.healthy.sum(), (len(rows), 1))

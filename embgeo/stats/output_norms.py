"""Norms of the output projection's rows, those of left-out tokens included."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import Array
from embgeo.stats.block import Block
from embgeo.stats.per_row import PerRow


class OutputNorms(PerRow):
    """Euclidean norm of each row of the output projection; not finite where an entry is not."""

    of_left_out = True

    def compute(self, block: Block) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return block.wide.xp.sqrt(block.wide.xp.vecdot(block.paired, block.paired))

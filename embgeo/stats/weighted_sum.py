"""Weighted sums of rows or of unit rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic


@dataclass(eq=False)
class WeightedSum(Statistic):
    """Σ a_i w_i or Σ a_i ŵ_i over the rows.

    Parameters
    ----------
    name : str
    weights : float64 array, shape (N,)
        One weight for every row of the matrix.
    d : int
    of : {"rows", "unit"}
        The rows, or the rows divided by their norms.

    Attributes
    ----------
    total : float64 array, shape (d,)
    """

    STATE = ("total",)

    name: str
    weights: FloatArray
    d: int
    of: Literal["rows", "unit"]

    def clear(self) -> None:
        self.total: FloatArray = np.zeros(self.d)

    def update(self, block: Block) -> None:
        if len(block.index):
            rows, weights = block.rows, block.wide.put(self.weights[block.index])
            if self.of == "unit" and block.is_divisible:
                weights = weights / block.norms
            elif self.of == "unit":
                rows = block.unit
            self.total = self.total + block.wide.to_host(weights @ rows)

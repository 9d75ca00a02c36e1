"""Weighted sum of the unit rows: where tokens point on average, each as often as it occurs."""

from __future__ import annotations

from typing import Self

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic


class WeightedSum(Statistic):
    """Σ a_i ŵ_i over the rows.

    Parameters
    ----------
    weights : float64 array, shape (N,)
        Of every row of the matrix.
    d : int

    Attributes
    ----------
    total : float64 array, shape (d,)
    """

    STATE = ("total",)

    def __init__(self, weights: FloatArray, d: int) -> None:
        self.weights = weights
        self.d = d
        self.clear()

    def clear(self) -> None:
        self.total: FloatArray = np.zeros(self.d)

    def update(self, block: Block) -> None:
        if len(block.index):
            wide = block.wide
            self.total = self.total + wide.to_host(wide.put(self.weights[block.index]) @ block.unit)

    def merge(self, other: Self) -> None:
        self.total = self.total + other.total

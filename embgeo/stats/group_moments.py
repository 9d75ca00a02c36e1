"""Mean and spread of rows by group: rare and popular tokens, frequency bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic

#: Where less than this share of the squares is left around the mean, the differences are formed:
#: sixteen digits of the squares would leave fewer than thirteen.
CANCELLED = 1e-3


@dataclass(eq=False)
class GroupMoments(Statistic):
    """For each group n, mean and Σ‖x−μ‖², merged in centered form (Chan et al. 1979).

    Parameters
    ----------
    name : str
        What the groups are.
    labels : int array, shape (N,)
        Group of every row of the matrix; negative: in none.
    groups, d : int
    of : {"rows", "unit"}
        The rows, or the rows divided by their norms.

    Attributes
    ----------
    n : float64 array, shape (groups,)
    mean : float64 array, shape (groups, d)
    spread : float64 array, shape (groups,)
    """

    STATE = ("n", "mean", "spread")

    name: str
    labels: IntArray
    groups: int
    d: int
    of: Literal["rows", "unit"]

    def clear(self) -> None:
        self.n: FloatArray = np.zeros(self.groups)
        self.mean: FloatArray = np.zeros((self.groups, self.d))
        self.spread: FloatArray = np.zeros(self.groups)

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        wide, xp = block.wide, block.wide.xp
        labels = self.labels[block.index]
        member = (labels == np.arange(len(self.n))[:, None]).astype(np.float64)
        n = member.sum(axis=1)
        norms, member = block.norms, wide.put(member)
        ordinary = block.is_divisible
        squares = n
        if self.of == "unit":
            total = (member / norms) @ block.rows if ordinary else member @ block.unit
        else:
            total = member @ block.rows
            if ordinary:
                squares = wide.to_host(member @ xp.square(norms))
        mean = wide.to_host(total) / np.maximum(n, 1.0)[:, None]
        # What is left of the squares once the mean's are taken away.
        spread = squares - n * np.vecdot(mean, mean)
        seen = np.flatnonzero(n)
        for group in seen:
            if not (ordinary and spread[group] > CANCELLED * squares[group]):
                spread[group] = self._spread(block.take(labels == group), mean[group])
        for group in seen:
            self._join(int(group), n[group], mean[group], spread[group])

    def _spread(self, part: Block, mean: FloatArray) -> float:
        """Σ‖x−μ‖² of some rows, from the differences."""
        apart = (part.rows if self.of == "rows" else part.unit) - part.wide.put(mean)
        return float(part.wide.xp.sum(part.wide.xp.square(apart)))

    def merge(self, other: Self) -> None:
        for group in np.flatnonzero(other.n):
            self._join(int(group), other.n[group], other.mean[group], other.spread[group])

    def _join(self, group: int, n: float, mean: FloatArray, spread: float) -> None:
        mine = self.n[group]
        total = mine + n
        step = mean - self.mean[group]
        self.spread[group] += spread + float(step @ step) * mine * n / total
        self.mean[group] += step * (n / total)
        self.n[group] = total

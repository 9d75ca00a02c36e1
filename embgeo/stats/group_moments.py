"""Mean and spread of rows by group: rare and popular tokens, frequency bins."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from embgeo.stats.base import Block, FloatArray, IntArray, Statistic


class GroupMoments(Statistic):
    """For each group n, mean and Σ‖x−μ‖², merged in centred form (Chan et al. 1979).

    Parameters
    ----------
    name : str
        What the groups are (part of the key).
    labels : int array, shape (N,)
        Group of every row of the matrix; negative: in none.
    groups, d : int

    Attributes
    ----------
    n : float64 array, shape (groups,)
    mean : float64 array, shape (groups, d)
    spread : float64 array, shape (groups,)
    """

    STATE = ("n", "mean", "spread")

    def __init__(
        self, name: str, labels: IntArray, groups: int, d: int, of: Literal["rows", "unit"]
    ) -> None:
        self.name = name
        self.labels = labels
        self.of = of
        self.shape = (groups, d)
        self.clear()

    def clear(self) -> None:
        self.n: FloatArray = np.zeros(self.shape[0])
        self.mean: FloatArray = np.zeros(self.shape)
        self.spread: FloatArray = np.zeros(self.shape[0])

    @property
    def key(self) -> tuple[str, str, str]:
        return ("group moments", self.name, self.of)

    def update(self, block: Block) -> None:
        x = block.rows if self.of == "rows" else block.unit
        labels = self.labels[block.index]
        inside = labels >= 0
        if not inside.all():
            x, labels = x[inside], labels[inside]
        member = (labels == np.arange(len(self.n))[:, None]).astype(np.float64)
        n = member.sum(axis=1)
        mean = member @ x / np.maximum(n, 1.0)[:, None]
        centred = x - mean[labels]
        spread = member @ np.einsum("ij,ij->i", centred, centred)
        for group in np.flatnonzero(n):
            self._join(int(group), n[group], mean[group], spread[group])

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

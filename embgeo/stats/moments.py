"""Mean and centred scatter matrix of rows, or of rows divided by their norm."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from embgeo.stats.base import Block, FloatArray


class Moments:
    """n, mean and Σ(x−μ)(x−μ)ᵀ, merged in centred form.

    The centred form keeps what ``Σxxᵀ − nμμᵀ`` loses: in a narrow cone the two terms agree in
    their leading digits. Merging is that of Chan, Golub & LeVeque 1979.

    Attributes
    ----------
    n : int
    mean : float64 array, shape (d,)
    scatter : float64 array, shape (d, d)
    """

    def __init__(self, d: int, of: Literal["rows", "unit"] = "rows") -> None:
        self.of = of
        self.n = 0
        self.mean: FloatArray = np.zeros(d)
        self.scatter: FloatArray = np.zeros((d, d))

    @property
    def key(self) -> tuple[str, str]:
        return ("moments", self.of)

    def update(self, block: Block) -> None:
        x = block.rows if self.of == "rows" else block.unit
        if not len(x):
            return
        mean = x.mean(axis=0)
        centred = x - mean
        self._join(len(x), mean, centred.T @ centred)

    def merge(self, other: Self) -> None:
        if other.n:
            self._join(other.n, other.mean, other.scatter)

    def _join(self, n: int, mean: FloatArray, scatter: FloatArray) -> None:
        total = self.n + n
        step = mean - self.mean
        self.scatter += scatter
        if self.n:
            self.scatter += np.outer(step, step * (self.n * n / total))
        self.mean = self.mean + step * (n / total)
        self.n = total

    def gram(self) -> FloatArray:
        """Σxxᵀ, uncentred, shape (d, d): a sum of two positive semidefinite parts."""
        return self.scatter + self.n * np.outer(self.mean, self.mean)

"""Sums by group of rows, and angles by half of the groups: what errors over tokens are made of."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, SingleArray
from embgeo.numerics.eigen import BlockRotation
from embgeo.numerics.halves import GROUPS, HALVES
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic


@dataclass(eq=False)
class GroupSquares(Statistic):
    """For each group Σ(⟨w, a⟩ − shift) and Σ(⟨w, a⟩ − shift)² at each column a of `directions`.

    At eigenvectors of the scatter matrix of all rows, the second are the eigenvalues of that of a
    group, to first order. Rows stored in float32 are multiplied in float32: an error needs two
    digits.

    `n`: shape (groups,). `sums`, `squares`: shape (groups, k). `largest`: the largest square of a
    row at each direction, shape (k,).
    """

    STATE = ("n", "sums", "squares", "largest")

    name: str
    #: Unit columns; shape (d, k).
    directions: FloatArray
    #: Group of each row of the matrix, from 0; shape (N,).
    labels: IntArray
    #: Shape (k,).
    shift: FloatArray | None = None
    #: As in `Block.product`.
    single: SingleArray | None = None
    rotation: BlockRotation | None = None
    #: About the length of the rows, a power of two: squares in float32 reach from 1e-38 to 1e38.
    scale: float = 1.0

    def clear(self) -> None:
        columns = self.directions.shape[1]
        self.n: FloatArray = np.zeros(GROUPS)
        self.sums: FloatArray = np.zeros((GROUPS, columns))
        self.squares: FloatArray = np.zeros((GROUPS, columns))
        self.largest: FloatArray = np.zeros(columns)

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        backend, xp = block.backend, block.backend.xp
        products = block.product(self.directions, self.single, self.rotation)
        if self.shift is not None:
            products = products - backend.put(self.shift, products.dtype)
        products = products if self.scale == 1.0 else products * (1.0 / self.scale)
        member = self.labels[block.index] == np.arange(GROUPS)[:, None]
        weights = backend.put(member.astype(np.float64), products.dtype)
        self.n = self.n + member.sum(axis=1)
        squares, area = xp.square(products), self.scale**2
        self.sums = self.sums + self.scale * np.float64(backend.to_host(weights @ products))
        self.squares = self.squares + area * np.float64(backend.to_host(weights @ squares))
        largest = area * np.float64(backend.to_host(xp.max(squares, axis=0)))
        self.largest = np.maximum(self.largest, largest)

    def merge(self, other: Self) -> None:
        largest = np.maximum(self.largest, other.largest)
        super().merge(other)
        self.largest = largest

    def forget_directions(self) -> None:
        """Release the directions and keep the sums; no rows can be added afterwards."""
        self.directions, self.single, self.rotation = np.empty((0, 0)), None, None


#: Angles are counted in bins of equal width of their logarithm, between these.
NARROWEST, WIDEST, BINS = 1e-8, np.pi, 2**14
#: The halves that each group is in, shape (groups, halves / 2).
HALVES_OF_GROUP = np.nonzero(HALVES.T)[1].reshape(GROUPS, -1)


@dataclass(eq=False)
class HalfAngles(Statistic):
    """The angles of the rows of each half of the groups to a direction of that half, in bins.

    `counts`: shape (halves, bins).
    """

    STATE = ("counts",)

    #: Unit rows; shape (halves, d).
    directions: FloatArray
    #: Group of each row of the matrix, from 0; shape (N,).
    labels: IntArray

    def clear(self) -> None:
        self.counts: IntArray = np.zeros((len(HALVES), BINS), dtype=np.int64)

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        wide = block.wide
        cosines = wide.to_host(block.along(wide.constant(self.directions).T))
        halves = HALVES_OF_GROUP[self.labels[block.index]]
        angles = np.arccos(np.clip(np.take_along_axis(cosines, halves, axis=1), -1.0, 1.0))
        place = np.log(np.maximum(angles, NARROWEST) / NARROWEST) / np.log(WIDEST / NARROWEST)
        bins = np.minimum((place * BINS).astype(np.int64), BINS - 1)
        np.add.at(self.counts.reshape(-1), bins + halves * BINS, 1)

    def quantiles(self, q: float) -> FloatArray:
        """Return the quantile of each half in radians, between the edges of a bin by its share."""
        reached = np.cumsum(self.counts, axis=1)
        wanted = q * reached[:, -1]
        halves, bins = np.arange(len(HALVES)), (reached < wanted[:, None]).sum(axis=1)
        inside = self.counts[halves, bins]
        found = bins + 1.0 - (reached[halves, bins] - wanted) / np.maximum(inside, 1)
        return np.asarray(NARROWEST * (WIDEST / NARROWEST) ** (found / BINS))

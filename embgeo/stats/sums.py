"""Sums over rows: weighted, by group, of pairs, and with coordinates zeroed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray
from embgeo.stats.backend.backend import Backend
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic

#: Where less than this share of the squares is left, around the mean or without a coordinate, what
#: is left is formed: sixteen digits of the squares would leave fewer than thirteen.
CANCELLED = 1e-3


@dataclass(eq=False)
class WeightedSum(Statistic):
    """Σ a_i w_i/‖w_i‖ over the rows.

    `total`: shape (d,).
    """

    STATE = ("total",)

    name: str
    #: One weight for every row of the matrix; shape (N,).
    weights: FloatArray
    d: int

    def clear(self) -> None:
        self.total: FloatArray = np.zeros(self.d)

    def update(self, block: Block) -> None:
        if len(block.index):
            weights = block.wide.put(self.weights[block.index])
            if block.is_divisible:
                total = (weights / block.norms) @ block.rows
            else:
                total = weights @ block.unit
            self.total = self.total + block.wide.to_host(total)


@dataclass(eq=False)
class RowSums(Statistic):
    """The number of rows, Σ w_i and Σ w_i/‖w_i‖.

    `rows`, `unit`: shape (d,).
    """

    STATE = ("n", "rows", "unit")

    d: int

    def clear(self) -> None:
        self.n = 0
        self.rows: FloatArray = np.zeros(self.d)
        self.unit: FloatArray = np.zeros(self.d)

    def update(self, block: Block) -> None:
        if len(block.index):
            wide, xp = block.wide, block.wide.xp
            self.n += len(block.index)
            self.rows = self.rows + wide.to_host(xp.sum(block.rows, axis=0))
            unit = (
                (1.0 / block.norms) @ block.rows
                if block.is_divisible
                else xp.sum(block.unit, axis=0)
            )
            self.unit = self.unit + wide.to_host(unit)


@dataclass(eq=False)
class SumWithout(Statistic):
    """Σ of the unit rows once a coordinate is zeroed, and the number of rows that are not 0 then.

    `total`: shape (d,).
    """

    STATE = ("n", "total")

    coordinate: int
    d: int

    def clear(self) -> None:
        self.n = 0
        self.total: FloatArray = np.zeros(self.d)

    def update(self, block: Block) -> None:
        if len(block.index):
            if block.is_divisible:
                rows, whole = block.rows, block.wide.to_host(block.norms) ** 2
            else:
                rows, whole = block.unit, np.ones(len(block.index))
            squares = whole - np.square(block.wide.to_host(rows[:, self.coordinate]))
            near = np.flatnonzero(squares <= CANCELLED * whole)
            if len(near):
                squares[near] = self._square(block.wide, rows[block.wide.put(near)])
            alive = squares > 0.0
            inverse = np.where(alive, 1.0 / np.sqrt(np.where(alive, squares, 1.0)), 0.0)
            total = block.wide.to_host(block.wide.put(inverse) @ rows)
            total[self.coordinate] = 0.0
            self.n += int(alive.sum())
            self.total = self.total + total

    def _square(self, wide: Backend, rows: Array) -> FloatArray:
        """Return the squared norms of rows without the coordinate, from what is left of them."""
        keep = np.ones(self.d)
        keep[self.coordinate] = 0.0
        rest = rows * wide.put(keep)
        return np.asarray(wide.to_host(wide.xp.vecdot(rest, rest)))


@dataclass(eq=False)
class GroupSums(Statistic):
    """For each group the number of rows and Σ w_i/‖w_i‖.

    `n`: shape (groups,). `sums`: shape (groups, d).
    """

    STATE = ("n", "sums")

    name: str
    #: Group of every row of the matrix; negative: in none; shape (N,).
    labels: IntArray
    groups: int
    d: int

    def clear(self) -> None:
        self.n: FloatArray = np.zeros(self.groups)
        self.sums: FloatArray = np.zeros((self.groups, self.d))

    def update(self, block: Block) -> None:
        if len(block.index):
            member = self.labels[block.index] == np.arange(self.groups)[:, None]
            weights = block.wide.put(member.astype(np.float64))
            if block.is_divisible:
                sums = (weights / block.norms) @ block.rows
            else:
                sums = weights @ block.unit
            self.n = self.n + member.sum(axis=1)
            self.sums = self.sums + block.wide.to_host(sums)


@dataclass(eq=False)
class PairedSums(Statistic):
    """Σ‖x‖², Σ‖y‖², Σ⟨x, y⟩, Σ‖y − x‖² and Σ⟨x, y⟩/(‖x‖‖y‖) over rows ``[x | y]``.

    Σ‖y − x‖² is formed from the differences: it is 0 exactly for equal rows, and does not cancel
    for nearly equal ones. If the widths differ, the narrower row is padded with zeros.
    """

    STATE = ("first", "second", "product", "difference", "cosines")

    #: Columns of x.
    p: int

    def clear(self) -> None:
        self.first = self.second = self.product = self.difference = self.cosines = 0.0

    @property
    def name(self) -> str:
        return str(self.p)

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        xp, backend, rows = block.wide.xp, block.backend, block.stored
        # A few rows at a time stay in the cache, because they are read four times.
        parts = [
            self._measure(xp, backend.widen(rows[some]))
            for some in backend.wide.slices(*rows.shape)
        ]
        lengths, others, products, apart = (xp.concat(part) for part in zip(*parts, strict=True))
        cosines = products / (xp.sqrt(lengths) * xp.sqrt(others))
        sums = (lengths, others, products, apart, cosines)
        for name, part in zip(self.STATE, sums, strict=True):
            setattr(self, name, getattr(self, name) + float(xp.sum(part)))

    def _measure(self, xp: Any, rows: Array) -> tuple[Array, Array, Array, Array]:
        """Return ‖x‖², ‖y‖², ⟨x, y⟩ and ‖y − x‖² of each of the rows."""
        x, y = rows[:, : self.p], rows[:, self.p :]
        both = min(x.shape[1], y.shape[1])
        change = y[:, :both] - x[:, :both]
        squares = (xp.vecdot(part, part) for part in (x, y, change, x[:, both:], y[:, both:]))
        lengths, others, *apart = squares
        return lengths, others, xp.vecdot(x[:, :both], y[:, :both]), sum(apart)

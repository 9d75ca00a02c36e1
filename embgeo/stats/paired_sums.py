"""How far paired rows are apart, entry by entry."""

from __future__ import annotations

from typing import Self

from embgeo.core.arrays import Array
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic


class PairedSums(Statistic):
    """Σ‖x‖², Σ‖y‖², Σ⟨x, y⟩ and Σ‖y − x‖² over rows ``[x | y]``.

    The last is formed from the differences: it is 0 exactly for equal rows, and does not cancel
    for nearly equal ones. Of unequal widths, the narrower is padded with zeros.

    Parameters
    ----------
    p : int
        Columns of x.

    Attributes
    ----------
    first, second, product, difference : float
    """

    STATE = ("first", "second", "product", "difference")

    def __init__(self, p: int) -> None:
        self.p = p
        self.clear()

    def clear(self) -> None:
        self.first = 0.0
        self.second = 0.0
        self.product = 0.0
        self.difference = 0.0

    @property
    def key(self) -> tuple[str, int]:
        return ("paired sums", self.p)

    def update(self, block: Block) -> None:
        x, y = block.rows[:, : self.p], block.rows[:, self.p :]
        both = min(x.shape[1], y.shape[1])

        def total(left: Array, right: Array) -> float:
            return float(block.wide.xp.sum(block.wide.xp.vecdot(left, right)))

        sums = total(x, x), total(y, y), total(x[:, :both], y[:, :both])
        apart = (y[:, :both] - x[:, :both], x[:, both:], y[:, both:])
        self.difference += sum(total(part, part) for part in apart)
        self.first += sums[0]
        self.second += sums[1]
        self.product += sums[2]

    def merge(self, other: Self) -> None:
        self.first += other.first
        self.second += other.second
        self.product += other.product
        self.difference += other.difference

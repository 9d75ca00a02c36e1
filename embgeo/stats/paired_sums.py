"""How far paired rows are apart, entry by entry."""

from __future__ import annotations

from typing import Self

from embgeo.core.arrays import Array
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic


class PairedSums(Statistic):
    """Σ‖x‖², Σ‖y‖², Σ⟨x, y⟩, Σ‖y − x‖² and Σ⟨x, y⟩/(‖x‖‖y‖) over rows ``[x | y]``.

    Σ‖y − x‖² is formed from the differences: it is 0 exactly for equal rows, and does not cancel
    for nearly equal ones. Of unequal widths, the narrower is padded with zeros.

    Parameters
    ----------
    p : int
        Columns of x.

    Attributes
    ----------
    first, second, product, difference, cosines : float
    """

    STATE = ("first", "second", "product", "difference", "cosines")

    def __init__(self, p: int) -> None:
        self.p = p
        self.clear()

    def clear(self) -> None:
        self.first = 0.0
        self.second = 0.0
        self.product = 0.0
        self.difference = 0.0
        self.cosines = 0.0

    @property
    def key(self) -> tuple[str, int]:
        return ("paired sums", self.p)

    def update(self, block: Block) -> None:
        x, y = block.rows[:, : self.p], block.rows[:, self.p :]
        both = min(x.shape[1], y.shape[1])
        xp = block.wide.xp

        def total(part: Array) -> float:
            return float(xp.sum(xp.vecdot(part, part)))

        lengths, others = xp.vecdot(x, x), xp.vecdot(y, y)
        products = xp.vecdot(x[:, :both], y[:, :both])
        apart = (y[:, :both] - x[:, :both], x[:, both:], y[:, both:])
        cosines = products / (xp.sqrt(lengths) * xp.sqrt(others))
        # All of them before any is added: a device that runs out of memory takes the block again.
        sums = [float(xp.sum(part)) for part in (lengths, others, products, cosines)]
        difference = sum(map(total, apart))
        self.first += sums[0]
        self.second += sums[1]
        self.product += sums[2]
        self.cosines += sums[3]
        self.difference += difference

    def merge(self, other: Self) -> None:
        self.first += other.first
        self.second += other.second
        self.product += other.product
        self.difference += other.difference
        self.cosines += other.cosines

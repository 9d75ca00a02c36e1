"""How far paired rows are apart, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from embgeo.core.arrays import Array
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic


@dataclass(eq=False)
class PairedSums(Statistic):
    """Σ‖x‖², Σ‖y‖², Σ⟨x, y⟩, Σ‖y − x‖² and Σ⟨x, y⟩/(‖x‖‖y‖) over rows ``[x | y]``.

    Σ‖y − x‖² is formed from the differences: it is 0 exactly for equal rows, and does not cancel
    for nearly equal ones. If the widths differ, the narrower row is padded with zeros.

    Parameters
    ----------
    p : int
        Columns of x.

    Attributes
    ----------
    first, second, product, difference, cosines : float
    """

    STATE = ("first", "second", "product", "difference", "cosines")

    p: int

    def clear(self) -> None:
        self.first = self.second = self.product = self.difference = self.cosines = 0.0

    @property
    def name(self) -> str:
        return str(self.p)

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        xp, wide, rows = block.wide.xp, block.wide, block.rows
        # A few rows at a time stay in the cache, because they are read four times.
        parts = [self._measure(xp, rows[some]) for some in wide.slices(*rows.shape)]
        lengths, others, products, apart = (xp.concat(part) for part in zip(*parts, strict=True))
        cosines = products / (xp.sqrt(lengths) * xp.sqrt(others))
        # All before any is added, because a device without memory repeats the block.
        sums = [float(xp.sum(part)) for part in (lengths, others, products, apart, cosines)]
        for name, own in zip(self.STATE, sums, strict=True):
            setattr(self, name, getattr(self, name) + own)

    def _measure(self, xp: Any, rows: Array) -> tuple[Array, Array, Array, Array]:
        """‖x‖², ‖y‖², ⟨x, y⟩ and ‖y − x‖² of each of the rows."""
        x, y = rows[:, : self.p], rows[:, self.p :]
        both = min(x.shape[1], y.shape[1])
        change = y[:, :both] - x[:, :both]
        squares = (xp.vecdot(part, part) for part in (x, y, change, x[:, both:], y[:, both:]))
        lengths, others, *apart = squares
        return lengths, others, xp.vecdot(x[:, :both], y[:, :both]), sum(apart)

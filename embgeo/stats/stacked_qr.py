"""The triangular factor of a tall matrix, from its row blocks (TSQR)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray
from embgeo.stats.backend.backend import Backend
from embgeo.stats.backend.numpy import HOST
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic


@dataclass(eq=False)
class StackedQR(Statistic):
    """R of the QR decomposition of the rows seen so far.

    The factor of stacked factors is the factor of the stacked rows (Demmel et al. 2012), so R is
    a monoid. Unlike a Gram matrix it does not square the condition number: singular values come
    out with an error of about ε·σ_1 instead of ε·σ_1²/σ_k.

    Parameters
    ----------
    width : int
    of : {"rows", "unit", "paired"}
        The rows, the rows divided by their norms, or each token's row and its output row side by
        side, ``[x | y]``; tokens whose output row is zero or non-finite are left out.
    without : int array, optional
        Further tokens that are left out of paired rows.
    shift : float64 array, shape (width,), optional
        Subtracted from every row.
    """

    STATE = ("n", "r")

    name: str
    width: int
    of: Literal["rows", "unit", "paired"] = "rows"
    shift: FloatArray | None = None
    without: IntArray | None = None

    def clear(self) -> None:
        self.n = 0
        self.r: Array = np.zeros((0, self.width))

    def update(self, block: Block) -> None:
        rows, xp = block.unit if self.of == "unit" else block.rows, block.wide.xp
        if self.of == "paired":
            usable = xp.all(xp.isfinite(block.paired), axis=1) & xp.any(block.paired != 0, axis=1)
            if self.without is not None:
                usable &= block.wide.put(~np.isin(block.index, self.without))
            rows = xp.concat([rows, block.paired], axis=1)[usable]
        if self.shift is not None:
            rows = rows - block.wide.put(self.shift)
        self._stack(block.wide, rows, rows.shape[0])

    def merge(self, other: Self) -> None:
        self._stack(HOST, other.r, other.n)

    def _stack(self, wide: Backend, rows: Array, n: int) -> None:
        if n:
            self.r = wide.qr_r(wide.xp.concat([wide.put(self.r), rows]))
            self.n += n

"""The triangular factor of a tall matrix, from its row blocks (TSQR)."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic


class StackedQR(Statistic):
    """R of the QR decomposition of the rows seen so far.

    The factor of stacked factors is the factor of the stacked rows (Demmel et al. 2012), so R is
    a monoid. Unlike a Gram matrix it does not square the condition number: singular values come
    out with an error of about ε·σ_1 instead of ε·σ_1²/σ_k.

    Parameters
    ----------
    width : int
    of : {"rows", "paired"}
        The rows, or each token's row and its output row side by side, ``[x | y]``; tokens whose
        output row is zero or non-finite are left out.
    shift : float64 array, shape (width,), optional
        Subtracted from every row.
    """

    STATE = ("n", "r")

    def __init__(
        self,
        name: str,
        width: int,
        of: Literal["rows", "paired"] = "rows",
        shift: FloatArray | None = None,
    ) -> None:
        self.name = name
        self.of = of
        self.shift = shift
        self.width = width
        self.clear()

    def clear(self) -> None:
        self.n = 0
        self.r: FloatArray = np.zeros((0, self.width))

    @property
    def key(self) -> tuple[str, str]:
        return ("stacked qr", self.name)

    def update(self, block: Block) -> None:
        rows = block.rows
        if self.of == "paired":
            if block.paired is None:
                raise ValueError("this statistic needs blocks with paired rows")
            usable = np.isfinite(block.paired).all(axis=1) & block.paired.any(axis=1)
            rows = np.hstack([block.rows[usable], block.paired[usable]])
        if self.shift is not None:
            rows = rows - self.shift
        self._stack(rows, len(rows))

    def merge(self, other: Self) -> None:
        self._stack(other.r, other.n)

    def _stack(self, rows: FloatArray, n: int) -> None:
        if n:
            self.n += n
            self.r = np.asarray(np.linalg.qr(np.vstack([self.r, rows]), mode="r"), dtype=np.float64)

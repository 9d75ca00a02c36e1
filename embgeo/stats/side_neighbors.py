"""Nearest neighbors on one side of rows ``[x | y]``."""

from __future__ import annotations

from typing import Self

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic
from embgeo.stats.top_neighbors import TopNeighbors


class SideNeighbors(Statistic):
    """The k nearest rows by cosine, taken over some of the columns alone.

    Parameters
    ----------
    name, index, queries, k
        As of :class:`TopNeighbors`; the queries have the width of `columns`.
    columns : slice

    Attributes
    ----------
    found : TopNeighbors
    """

    STATE = ("found",)

    def __init__(
        self, name: str, index: IntArray, queries: FloatArray, k: int, columns: slice
    ) -> None:
        self.name = name
        self.index = index
        self.queries = queries
        self.k = k
        self.columns = columns
        self.clear()

    def clear(self) -> None:
        self.found = TopNeighbors(self.name, self.index, self.queries, self.k)

    @property
    def key(self) -> tuple[str, str]:
        return ("side neighbors", self.name)

    def update(self, block: Block) -> None:
        self.found.update(Block(block.index, block.stored[:, self.columns]))

    def merge(self, other: Self) -> None:
        self.found.merge(other.found)

"""Lengths of rows as the first pass saw them: they tell other rows, however those are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.distributed import files
from embgeo.io.bounded.guard import reading
from embgeo.stats import Norms
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic

#: Rows whose norms are one piece of a plan's file: a part reads those pieces that are about it.
PIECE_ROWS = 2**20
#: Sums in another order differ by far less, rows that were changed hardly ever.
RELATIVE = 1e-6


@dataclass(frozen=True, slots=True)
class SeenNorms:
    """Norms of some rows of the whole.

    Attributes
    ----------
    index : int array, shape (r,)
        Row numbers, ascending, each once; rows that no statistic sees are not among them.
    values : float array, shape (r,)
    """

    index: IntArray
    values: FloatArray

    def __post_init__(self) -> None:
        """Refuse norms without their rows."""
        alike = self.index.shape == self.values.shape and self.index.ndim == 1
        if not alike or not (np.diff(self.index) > 0).all():
            raise ValueError("norms and their rows do not go together")

    @classmethod
    def of(cls, statistics: Sequence[Statistic]) -> Self | None:
        """Those that a pass kept; None where it kept none."""
        norms = next((s for s in statistics if isinstance(s, Norms)), None)
        return None if norms is None else cls(norms.index(), norms.values())

    def other_row(self, block: Block) -> int | None:
        """The first row of a block that has another norm than the one seen; None if none has."""
        at = np.searchsorted(self.index, block.index)
        known = at < len(self.index)
        known[known] = self.index[at[known]] == block.index[known]
        with np.errstate(over="ignore", invalid="ignore"):
            alike = np.isclose(block.norms[known], self.values[at[known]], rtol=RELATIVE, atol=0.0)
        unlike = block.index[known][~alike]
        return int(unlike[0]) if len(unlike) else None


def pieces(norms: SeenNorms, n: int) -> dict[str, Any]:
    """What a plan's file holds of the norms of n rows, by the names of its pieces."""
    edges = np.searchsorted(norms.index, np.arange(0, n + PIECE_ROWS, PIECE_ROWS))
    return {
        _name(number): (norms.index[low:high], norms.values[low:high])
        for number, (low, high) in enumerate(pairwise(edges))
    }


def of_rows(plan: files.Stored, start: int, stop: int) -> SeenNorms | None:
    """The norms that a plan's file holds of these rows, and of those around them; None if none.

    Raises
    ------
    UnreadableFile
    """
    last = min(-(-stop // PIECE_ROWS), len(plan.content))  # the number of rows may be a lie
    names = [_name(number) for number in range(start // PIECE_ROWS, last)]
    names = [name for name in names if name in plan.content]
    if not names:
        return None
    found = plan.unpack(*names, longest=PIECE_ROWS)
    with reading(plan.path, "plan"):
        index = np.concatenate([found[name][0] for name in names])
        return SeenNorms(index, np.concatenate([found[name][1] for name in names]))


def statistic_of(plan: files.Stored, n: int) -> list[Norms]:
    """The statistic again that a plan's file holds in pieces; empty where it holds none."""
    found = of_rows(plan, 0, n)
    if found is None:
        return []
    norms = Norms()
    norms.add(found.index, found.values)
    return [norms]


def _name(number: int) -> str:
    return f"norms {number}"

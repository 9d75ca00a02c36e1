"""Sequences of rows of different lengths in one array."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray


@dataclass(frozen=True, slots=True)
class RowSequences:
    """Documents or sentences as rows of a vocabulary, one after the other.

    Attributes
    ----------
    rows : int array
        All tokens; shape (T,).
    ends : int array
        Where each sequence begins in `rows`, and where the last one ends; shape (n + 1,).
    """

    rows: npt.NDArray[np.integer[Any]]
    ends: IntArray

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def lengths(self) -> IntArray:
        """Tokens of each sequence; shape (n,)."""
        return np.diff(self.ends)

    def pad(self, chosen: IntArray) -> tuple[npt.NDArray[np.integer[Any]], IntArray]:
        """Some sequences, each padded with its last row to shape (B, T), and their lengths."""
        begins = self.ends[chosen]
        lengths = self.ends[chosen + 1] - begins
        places = begins[:, None] + np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)
        return self.rows[places], lengths

    def select(self, chosen: IntArray) -> RowSequences:
        """Some sequences, given in ascending order."""
        mask = np.zeros(len(self), dtype=bool)
        mask[chosen] = True
        rows = self.rows[np.repeat(mask, self.lengths)]
        return RowSequences(rows, np.concatenate([[0], np.cumsum(self.lengths[chosen])]))


def join_sequences(sequences: Iterable[Iterable[int]], *, end: int | None = None) -> RowSequences:
    """Put sequences into one array, each followed by the row `end` if there is one."""
    rows, ends = array("i"), array("q", [0])
    for sequence in sequences:
        rows.extend(sequence)
        if end is not None:
            rows.append(end)
        ends.append(len(rows))
    return RowSequences(np.array(rows, dtype=np.int32), np.array(ends))

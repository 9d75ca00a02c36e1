"""Single rows of a matrix in parts, and the norms that identify its rows.

The rows that metrics read one by one are gathered from the parts, or read from the files of the
parts if these can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import EmbgeoError
from embgeo.core.matrix import Matrix
from embgeo.core.source import Source
from embgeo.distributed import files
from embgeo.distributed.part import MeasuringSetup, StatePart
from embgeo.io import open_source
from embgeo.io.bounded.guard import reading
from embgeo.stats import Norms
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic

Array = npt.NDArray[Any]
Fetch = Callable[[IntArray], npt.NDArray[Any]]

#: A plan's file stores the norms in pieces of this many rows; a part reads the pieces it needs.
PIECE_ROWS = 2**20
#: Norms summed in another order differ by far less, and norms of changed rows by more.
RELATIVE = 1e-6


class RowsMissing(Exception):
    """Requested rows are neither gathered nor in a file within reach."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Some rows as they are stored, by ascending row numbers; no entries if there are no rows."""

    index: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    entries: Array | None = None

    def __post_init__(self) -> None:
        """Refuse rows without their numbers."""
        rows = 0 if self.entries is None else len(self.entries)
        if rows != len(self.index) or (rows and not (np.diff(self.index) > 0).all()):
            raise ValueError("rows and their numbers do not go together")

    def join(self, *others: StoredRows) -> StoredRows:
        """The rows of all, each once."""
        some = [(one.index, one.entries) for one in (self, *others) if one.entries is not None]
        if len(some) < 2:
            return StoredRows(*some[0]) if some else self
        index, entries = map(np.concatenate, zip(*some, strict=True))
        if not (np.diff(index) > 0).all():  # rows of consecutive parts are in order
            index, first = np.unique(index, return_index=True)
            entries = entries[first]
        return StoredRows(index, entries)


class Gathered:
    """The entries of a matrix of which some rows were gathered, indexed by rows like an array.

    ``fetch(rows)`` gives further rows, or raises `RowsMissing`.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        rows: StoredRows,
        fetch: Callable[[IntArray], Array] | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.rows = rows
        self._fetch = fetch

    def __getitem__(self, index: IntArray | slice) -> Array:
        if isinstance(index, slice):
            index = np.arange(*index.indices(self.shape[0]), dtype=np.int64)
        missing = np.setdiff1d(index, self.rows.index)
        if len(missing):
            if self._fetch is None:
                raise RowsMissing(f"{len(missing):,} rows")
            self.rows = self.rows.join(StoredRows(missing, self._fetch(missing)))
        if self.rows.entries is None:
            return np.zeros((0, self.shape[1]), dtype=self.dtype)
        return np.asarray(self.rows.entries[np.searchsorted(self.rows.index, index)])


@dataclass(frozen=True, slots=True)
class SeenNorms:
    """Norms of the kept rows of the whole, or some of them, by ascending row numbers."""

    index: IntArray
    values: FloatArray

    def __post_init__(self) -> None:
        """Refuse norms without their rows."""
        alike = self.index.shape == self.values.shape and self.index.ndim == 1
        if not alike or not (np.diff(self.index) > 0).all():
            raise ValueError("norms and their rows do not go together")

    @classmethod
    def of(cls, statistics: Sequence[Statistic]) -> Self | None:
        """The norms among the statistics of a pass; None if there are none."""
        norms = next((s for s in statistics if isinstance(s, Norms)), None)
        return None if norms is None else cls(norms.index(), norms.values())

    def other_row(self, block: Block) -> int | None:
        """The first row of a block whose norm differs from the known one; None if none does."""
        at = np.searchsorted(self.index, block.index)
        known = at < len(self.index)
        known[known] = self.index[at[known]] == block.index[known]
        with np.errstate(over="ignore", invalid="ignore"):
            alike = np.isclose(block.norms[known], self.values[at[known]], rtol=RELATIVE, atol=0.0)
        unlike = block.index[known][~alike]
        return int(unlike[0]) if len(unlike) else None


def split_norms(norms: SeenNorms, n: int) -> dict[str, Any]:
    """The norms of n rows as pieces for a plan's file, by name."""
    edges = np.searchsorted(norms.index, np.arange(0, n + PIECE_ROWS, PIECE_ROWS))
    return {
        norms_name(number): (norms.index[low:high], norms.values[low:high])
        for number, (low, high) in enumerate(pairwise(edges))
    }


def read_norms(plan: files.Stored, start: int, stop: int) -> SeenNorms | None:
    """The norms in a plan's file of these rows and of rows around them; None if there are none."""
    last = min(-(-stop // PIECE_ROWS), len(plan.content))  # a hostile file may claim any number
    names = [norms_name(number) for number in range(start // PIECE_ROWS, last)]
    names = [name for name in names if name in plan.content]
    if not names:
        return None
    found = plan.unpack(**dict.fromkeys(names, (np.ndarray, np.ndarray)))
    with reading(plan.path, "plan"):
        index = np.concatenate([found[name][0] for name in names])
        return SeenNorms(index, np.concatenate([found[name][1] for name in names]))


def read_norms_statistic(plan: files.Stored, n: int) -> list[Norms]:
    """The statistic that a plan's file holds in pieces; empty if there is none."""
    found = read_norms(plan, 0, n)
    if found is None:
        return []
    norms = Norms()
    norms.add(found.index, found.values)
    return [norms]


def norms_name(number: int) -> str:
    return f"norms {number}"


def fetch_from_files(
    parts: Sequence[StatePart], setup: MeasuringSetup, norms: SeenNorms | None, folder: Path
) -> Fetch:
    """A function that reads rows of the whole from the files of the parts.

    Norms are compared with those of the first pass, because a file of the same name may be another
    one here; without norms, nothing is fetched. Paths are relative to the current folder, or else
    to `folder`, which holds the states.
    """

    open_matrix = cache(partial(open_again, folder))

    def fetch(rows: IntArray) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] | None = None
        # Once for each file, because some formats are slow to open.
        for (*place, first_row), of_file in groupby(parts, locate):
            cut_out = list(of_file)
            start, stop = cut_out[0].start, cut_out[-1].stop
            low, high = np.searchsorted(rows, (start, stop))
            if low == high:
                continue
            matrix = open_matrix(*place)
            if matrix.n < stop - first_row or (matrix.d, matrix.dtype) != (setup.d, setup.dtype):
                raise RowsMissing(cut_out[0].file)
            own = matrix.data[rows[low:high] - first_row]
            if found is None:
                found = np.empty((len(rows), setup.d), dtype=own.dtype)
            found[low:high] = own
        if found is None:
            raise RowsMissing("no part holds them")
        block = Block(rows, np.asarray(found, dtype=np.float64))
        if norms is None or norms.other_row(block) is not None:
            raise RowsMissing("the files hold other rows by now")
        return found

    return fetch


def locate(part: StatePart) -> tuple[str, str, bool, int]:
    """The file and tensor of a part, and the number of the file's first row."""
    return part.file, part.tensor, part.transposed, part.first_row


def open_again(folder: Path, file: str, tensor: str, transposed: bool) -> Matrix:
    """The matrix that parts were cut from; RowsMissing if it cannot be reached."""
    for home in (Path(), folder):
        try:
            source = Source(
                home / file,
                tensor=tensor or None,
                output="none",
                transpose=transposed,
                padding="keep",
                hash_file=False,
            )
            return open_source(source, on_demand=True)
        except EmbgeoError:
            continue
    raise RowsMissing(file)

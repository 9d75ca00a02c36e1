"""A pass over a part of a matrix, and the state that it gives. States merge like statistics."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.matrix import Matrix
from embgeo.core.version import VERSION
from embgeo.metrics.facts import NO_ROWS
from embgeo.stats import Census
from embgeo.stats.reader import RowReader
from embgeo.stats.resources import Resources
from embgeo.stats.statistic import Statistic, merge_all

Array = npt.NDArray[Any]

_HASH_BYTES = 4 * 2**20
#: Enough to tell matrices apart that share some rows, such as frozen ones.
FINGERPRINT_ROWS = 32


@dataclass(frozen=True, slots=True)
class Part:
    """Rows `start` to `stop` of the whole matrix."""

    start: int
    stop: int
    #: The path as the user wrote it.
    file: str = ""
    #: Name in the file; empty for a single array.
    tensor: str = ""
    #: Of the rows as they are stored; empty until a pass has read them.
    sha256: str = ""
    embgeo: str = VERSION


@dataclass(frozen=True, slots=True)
class PassTask:
    """What a pass does with the rows of every part."""

    #: Blank; those of the rows that take part.
    statistics: Sequence[Statistic] = ()
    #: Whether rows that cannot be measured are found and left out.
    sifts: bool = False
    #: Rows of the whole that are left out, ascending.
    left_out: IntArray = field(default_factory=lambda: NO_ROWS)
    #: Rows of the whole to return, ascending.
    needed: IntArray = field(default_factory=lambda: NO_ROWS)
    #: Whether rows are read in float32.
    rounded: bool = False
    #: Whether the rows are those of the output matrix.
    of_output: bool = False

    @property
    def reads_all(self) -> bool:
        """Whether every part takes part, not only those that hold a needed row."""
        return self.sifts or len(self.statistics) > 0


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Some rows as they are stored, by ascending row numbers; no entries if there are no rows."""

    index: IntArray = field(default_factory=lambda: NO_ROWS)
    entries: Array | None = None

    def join(self, other: StoredRows) -> StoredRows:
        """Return the rows of both, each once."""
        if self.entries is None or other.entries is None:
            return self if other.entries is None else other
        index = np.concatenate([self.index, other.index])
        entries = np.concatenate([self.entries, other.entries])
        if not (np.diff(index) > 0).all():  # rows of consecutive parts are in order
            index, first = np.unique(index, return_index=True)
            entries = entries[first]
        return StoredRows(index, entries)


@dataclass
class PassState:
    """What a pass found in one or several parts."""

    parts: list[Part]
    census: Census
    statistics: list[Statistic]
    rows: StoredRows = field(default_factory=StoredRows)

    def blank(self) -> Self:
        """Return the state of the same pass without rows."""
        return type(self)([], Census(), [statistic.blank() for statistic in self.statistics])

    def merge(self, other: Self) -> None:
        """Add the parts of another state of the same pass."""
        self.parts += other.parts
        self.census.merge(other.census)
        merge_all(self.statistics, other.statistics)
        self.rows = self.rows.join(other.rows)


def run_pass(task: PassTask, matrix: Matrix, start: int, resources: Resources) -> PassState:
    """Run a pass over a part: all rows of `matrix`, the first of which is row `start` of the whole.

    Labels of the part are not used.
    """
    if task.of_output:
        assert matrix.output is not None
        matrix = matrix.output
    part = Part(
        start,
        start + matrix.n,
        matrix.origin.path or matrix.name,
        matrix.origin.tensor,
        sha256_of_rows(matrix.data),
    )
    plain = replace(matrix, masked={}, frequency=None, rounded=task.rounded)
    reader = RowReader(plain, resources, first_row=start)
    reader.takes_part[find_within(task.left_out, part)] = False
    statistics = [statistic.blank() for statistic in task.statistics]
    # Squares that overflow are reported when the states are merged.
    with np.errstate(over="ignore", invalid="ignore"):
        if task.sifts:
            reader.sift(statistics)
        elif statistics:
            reader.fold(statistics)
    own = find_within(task.needed, part)
    rows = StoredRows()
    if len(own):
        rows = StoredRows(own + start, np.ascontiguousarray(matrix.data[own]))
    return PassState([part], reader.census.renumber(start), statistics, rows)


def find_within(rows: IntArray, part: Part) -> IntArray:
    """Find the rows that a part holds, counted from its first row."""
    low, high = np.searchsorted(rows, (part.start, part.stop))
    return np.asarray(rows[low:high] - part.start)


def fingerprint(data: Array) -> str:
    """Return a hash that identifies a matrix among others of its shape: SHA-256 of some rows.

    Rows that would have to be decoded have an `identity` of their own.
    """
    if known := getattr(data, "identity", ""):
        return str(known)
    rows = np.unique(np.linspace(0, len(data) - 1, FINGERPRINT_ROWS).astype(np.int64))
    return sha256_of_rows(data[rows])


def sha256_of_rows(data: Array) -> str:
    """Return SHA-256 of the entries as they are stored, row by row, in hexadecimal."""
    digest = hashlib.sha256()
    step = max(1, _HASH_BYTES // max(1, data.shape[1] * data.dtype.itemsize))
    for start in range(0, len(data), step):
        rows = np.ascontiguousarray(data[start : start + step])
        digest.update(rows.view(np.uint8).data)
    return digest.hexdigest()

"""The rows of the chosen tensors: cut, read, and compared with the output and with copies."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.core.source import RowRange, split_range
from embgeo.files.guard import short
from embgeo.files.maps import Array
from embgeo.files.scratch import fill_rows
from embgeo.io.model.checkpoint import Checkpoint, RowRanges, Tensor
from embgeo.io.model.choice import Choice, choose
from embgeo.io.model.names import input_rank, output_rank

# Most comparisons end in the first block, and no copy of a whole matrix is made.
_COMPARED_ROWS = 4096

Rows = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class RowCut:
    """Rows `start` to `stop` (exclusive) of a matrix of `total` rows."""

    total: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start

    @property
    def is_whole(self) -> bool:
        return self.size == self.total

    def fit(self, length: int) -> slice | None:
        """Return the slice of `length` entries that belongs to the cut; None if no length fits."""
        if length == self.size:
            return slice(None)
        return slice(self.start, self.stop) if length == self.total else None


def parse_rows(rows: RowRange, total: int) -> RowCut:
    """Parse ``A:B``; A defaults to 0, B to `total`."""
    if rows is None:
        return RowCut(total, 0, total)
    first, last = split_range(rows)
    text = f"{'' if first is None else first}:{'' if last is None else last}"
    start, stop = first or 0, total if last is None else last
    if stop > total or start >= total:
        raise BadOption(
            f"{argument('rows')} {text!r} reaches beyond the matrix, which has {total:,} rows",
            way_out=f"stay within 0:{total}",
        )
    if start >= stop:
        raise BadOption(
            f"{argument('rows')} {text!r} is an empty range", way_out="write A:B with A below B"
        )
    return RowCut(total, start, stop)


@dataclass(frozen=True, slots=True)
class OutputRows:
    """Rows of the output matrix, one for each row of the embedding, if it takes part."""

    rows: Rows | None = None
    tied_by: str = ""
    missing: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # without a row
    notes: tuple[str, ...] = ()


def read_output(choice: Choice, cut: RowCut, data: Rows, *, is_named: bool) -> OutputRows:
    """Read the output matrix, unless it is a copy of the embedding or has no usable row.

    One that the user named may be a copy.
    """
    if choice.output is None:
        return OutputRows()
    ids = choice.output.row_ids
    if ids is not None and choice.input.row_ids is None:
        return _read_draft_output(choice.output, ids(), cut)
    stored = choice.output.shape[1 if choice.output_transposed else 0]
    missing = np.arange(max(stored, cut.start), max(stored, cut.stop)) - cut.start
    projection = read_rows(choice.output, cut, transposed=choice.output_transposed)[: len(data)]
    if not is_named and _has_same_values(data, projection):
        return OutputRows(tied_by=f"{short(choice.output.name)} holds the same numbers")
    if not has_usable_row(projection):
        name = short(choice.output.name)
        note = f"the output matrix {name} is left out: all of its rows are zero or not finite"
        return OutputRows(notes=(note,))
    if len(missing):
        typical = np.broadcast_to(_median_row(projection), (len(missing), projection.shape[1]))
        shape = (len(projection) + len(missing), projection.shape[1])
        projection = fill_rows([projection, typical], shape, projection.dtype)
    return OutputRows(projection, missing=missing)


def _read_draft_output(output: Tensor, ids: IntArray, cut: RowCut) -> OutputRows:
    """Lay the rows of a draft head at their ids; other tokens have none."""
    rows = output.open()
    if len(ids) != len(rows) or len(ids) == 0 or ids.min() < 0 or ids.max() >= cut.total:
        note = f"the ids of {short(output.name)} are not rows of the embedding; it is left out"
        return OutputRows(notes=(note,))
    laid = np.full(cut.total, -1, dtype=np.int64)
    laid[ids] = np.arange(len(ids))
    laid = laid[cut.start : cut.stop]
    missing = np.flatnonzero(laid < 0).astype(np.int64)
    if len(missing) == len(laid) or not has_usable_row(rows):
        note = f"the output matrix {short(output.name)} has no usable row, and is left out"
        return OutputRows(notes=(note,))
    made = np.array(rows[np.maximum(laid, 0)])
    made[missing] = _median_row(rows)
    made.flags.writeable = False
    return OutputRows(made, missing=missing)


def has_usable_row(rows: Rows) -> bool:
    """Tell whether a row is finite and not zero; stops at the first block with one."""
    return any(
        bool((np.isfinite(block).all(axis=1) & block.any(axis=1)).any())
        for start in range(0, len(rows), _COMPARED_ROWS)
        if len(block := _wide(rows[start : start + _COMPARED_ROWS]))
    )


def _wide(rows: Rows) -> Rows:
    with np.errstate(all="ignore"):  # casts of numbers that are not finite
        return np.asarray(rows, dtype=np.float64)


def _median_row(rows: Rows) -> Rows:
    """Return the row of median norm among the first ones."""
    with np.errstate(all="ignore"):
        norms = np.linalg.norm(_wide(rows[:_COMPARED_ROWS]), axis=1)
    order = np.argsort(norms)
    return np.asarray(rows[order[len(order) // 2]])


def note_copies(choice: Choice, data: Rows) -> tuple[str, ...]:
    """Return notes on copies of the embedding for multi-token prediction: equal to it or not."""
    notes = []
    for one in choice.copies if not choice.input_transposed else ():
        rows = one.open()
        equal = rows.shape == data.shape and _has_same_values(data, rows)
        which = "holds the same numbers" if equal else "differs, and is not analyzed"
        notes.append(f"{short(one.name)}, for multi-token prediction, {which}")
    return tuple(notes)


def read_rows(
    tensor: Tensor, cut: RowCut, *, transposed: bool = False, on_demand: bool = False
) -> Rows:
    """Read rows of a tensor, mapped if its format allows it."""
    if tensor.ranges is not None and not transposed:
        if not cut.is_whole:
            return tensor.ranges.read(cut.start, cut.stop)
        if on_demand:
            return cast(Rows, RowsOnDemand(tensor, tensor.ranges))
    array = tensor.open()
    if transposed:
        array = array.T
    return array if cut.is_whole else array[cut.start : cut.stop]


def _has_same_values(one: Rows, other: Rows) -> bool:
    """Tell whether two matrices are equal; stops at the first block that differs."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return all(
        np.array_equal(one[start : start + _COMPARED_ROWS], other[start : start + _COMPARED_ROWS])
        for start in range(0, len(one), _COMPARED_ROWS)
    )


def is_tied_as_configured(
    checkpoint: Checkpoint, choice: Choice, data: Rows, output: OutputRows, cut: RowCut
) -> bool | None:
    """Tell whether configuration and tensors agree on tying; None if that is not known."""
    if checkpoint.facts.tied is None:
        # Where there is one, nothing says that it is untied: converters write copies of tied ones.
        is_missing = all(output_rank(tensor.name) is None for tensor in checkpoint.tensors)
        is_input = input_rank(choice.input.name) is not None
        return True if checkpoint.facts.ties_missing_output and is_missing and is_input else None
    if not checkpoint.facts.tied:
        unsure = choice.has_unread_output or any(
            output_rank(tensor.name) is not None for tensor in choice.candidates
        )
        is_tied = bool(choice.tied_by or output.tied_by)
        return None if output.rows is None and unsure and not is_tied else output.rows is not None
    silent = replace(checkpoint, facts=replace(checkpoint.facts, tied=None))
    stored = choose(silent, tensor=choice.input.name, transpose=choice.input_transposed)
    if stored.output is None:
        return None if stored.has_unread_output else True
    rows = read_rows(stored.output, cut, transposed=stored.output_transposed)
    return _has_same_values(data, rows)


class RowsOnDemand:
    """Indexed like an array by slices of rows and by row numbers; keeps the last range.

    `identity` distinguishes the matrix from others of its shape.
    """

    def __init__(self, tensor: Tensor, ranges: RowRanges) -> None:
        self.shape, self.dtype = tensor.shape, np.dtype(tensor.dtype)
        self.identity = ranges.identity
        self._read = ranges.read
        self._lock = Lock()
        self._first, self._held = 0, np.empty((0, self.shape[1]), self.dtype)

    def copy(self) -> RowsOnDemand:
        """Return the same matrix with its own range."""
        other = copy.copy(self)
        other._lock = Lock()
        return other

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: slice | IntArray) -> Array:
        if isinstance(index, slice):
            start, stop, step = index.indices(self.shape[0])
            first, held = self._find_range(start, max(start, stop))
            return held[start - first : stop - first : step]
        if not len(index):
            return np.empty((0, self.shape[1]), self.dtype)
        rows, places = np.unique(index, return_inverse=True)
        start, stop = int(rows[0]), int(rows[-1]) + 1
        with self._lock:
            first, held = self._first, self._held
        if first <= start and stop <= first + len(held):
            return np.asarray(held[index - first])
        return np.asarray(self._read(start, stop, rows)[places])

    def _find_range(self, start: int, stop: int) -> tuple[int, Array]:
        """Return a range that holds these rows, and its first row."""
        with self._lock:
            if not self._first <= start <= stop <= self._first + len(self._held):
                self._first, self._held = start, self._read(start, stop)
            return self._first, self._held

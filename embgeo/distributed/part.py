"""Parts of a matrix: their rows, their files, and the setup that all parts share."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.options import Options
from embgeo.core.special import cut_special
from embgeo.distributed.code_version import code_version
from embgeo.io.bounded.maps import number_type

_HASH_BYTES = 4 * 2**20
#: Enough to tell matrices apart that share some rows, such as frozen ones.
FINGERPRINT_ROWS = 32


@dataclass(frozen=True, slots=True)
class StatePart:
    """Rows `start` to `stop` of the whole matrix, from a file; equal for an empty part."""

    #: The path as the user wrote it, and the tensor in the file (empty for a single array).
    file: str
    tensor: str
    transposed: bool
    start: int
    stop: int
    #: Number of the file's row 0 in the whole matrix.
    first_row: int
    #: Rows of the whole matrix, if known.
    total: int | None
    #: Hash of the rows as they are stored.
    sha256: str
    #: The :func:`fingerprint` of the file, if the part was cut out of it.
    whole: str = ""
    #: The file that the state was read from; empty in the file itself.
    state: str = ""

    @property
    def named(self) -> str:
        """Its name in messages: the state, because several states may come from one file."""
        return self.state or self.file

    @property
    def rows(self) -> str:
        return span(self.start, self.stop)


def span(start: int, stop: int) -> str:
    """The first and the last row in words.

    >>> span(5000, 10000), span(7, 8), span(3, 3)
    ('rows 5,000 to 9,999', 'rows 7 to 7', 'no rows')
    """
    return f"rows {start:,} to {stop - 1:,}" if stop > start else "no rows"


@dataclass(frozen=True, slots=True)
class MeasuringSetup:
    """What is measured, and the type of the rows: the same for all parts of a matrix."""

    embgeo: str
    sections: tuple[str, ...] | None
    options: Options
    reference: bool
    d: int
    dtype: str
    columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, matrix: Matrix, sections: Sequence[str] | None, options: Options, reference: bool
    ) -> MeasuringSetup:
        chosen = None if sections is None else tuple(sections)
        kind = matrix.d, matrix.dtype, matrix.origin.columns
        return cls(code_version(), chosen, options, reference, *kind)

    def difference(self, other: MeasuringSetup) -> str:
        """The first difference in words; empty if there is none."""
        for name, mine, theirs in self._pairs(other):
            if mine != theirs:
                here, there = _format_value(mine), _format_value(theirs)
                return f"{NAMES.get(name, name)}: {here} here, {there} there"
        return ""

    def _pairs(self, other: MeasuringSetup) -> list[tuple[str, Any, Any]]:
        own = [f.name for f in fields(self) if f.name not in ("options", "columns")]
        chosen = [f.name for f in fields(self.options)]
        return [
            *((name, getattr(self, name), getattr(other, name)) for name in own),
            *(("columns", *pair) for pair in zip_longest(self.columns, other.columns)),
            *((n, getattr(self.options, n), getattr(other.options, n)) for n in chosen),
        ]


NAMES = {
    "columns": "name of a column",
    "d": "columns",
    "dtype": "type of the entries",
    "embgeo": "version of embgeo",
    "reference": "isotropic rows to compare with",
}


def _format_value(value: object) -> str:
    return f"{value:,}" if type(value) is int else str(value)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A placeholder for the entries of a matrix that are not available."""

    shape: tuple[int, int]
    name: str

    @property
    def dtype(self) -> np.dtype[Any]:
        return number_type(self.name)

    def __getitem__(self, rows: object) -> npt.NDArray[Any]:
        raise EmbgeoError("requested rows are not available")


def without_entries(matrix: Matrix) -> Matrix:
    """The matrix without its entries."""
    output = None if matrix.output is None else without_entries(matrix.output)
    if output is not None:  # its labels are those of the embedding
        output = replace(output, tokens=None, frequency=None, masked={})
    frequency = matrix.frequency
    if frequency is not None and frequency.kind == "rank":  # ranks in the whole are known later
        frequency = replace(frequency, counts=np.zeros(0))
    stand_in: Any = Elsewhere((matrix.n, matrix.d), matrix.dtype)
    origin = replace(matrix.origin, stamps=())
    return replace(
        matrix, data=stand_in, output=output, frequency=frequency, hidden=None, origin=origin
    )


def cut(matrix: Matrix, start: int, stop: int) -> Matrix:
    """Rows `start` to `stop`, at least one, with their labels and companions."""
    frequency = matrix.frequency
    if frequency is not None:
        frequency = Frequency(frequency.kind, frequency.counts[start:stop], frequency.source)
    masked = {
        reason: rows[(rows >= start) & (rows < stop)] - start
        for reason, rows in matrix.masked.items()
    }
    return replace(
        matrix,
        data=matrix.data[start:stop],
        tokens=None if matrix.tokens is None else matrix.tokens[start:stop],
        frequency=frequency,
        masked={reason: rows for reason, rows in masked.items() if len(rows)},
        output=None if matrix.output is None else cut(matrix.output, start, stop),
        special=cut_special(matrix.special, start, stop),
    )


def share(text: str, n: int) -> tuple[int, int]:
    """The rows of part I of P of n rows: ``I/P``, counted from 1.

    >>> share("2/3", 10)
    (3, 6)
    """
    number, slash, count = text.partition("/")
    if not (slash and _is_number(number) and _is_number(count)) or not 1 <= int(number) <= int(
        count
    ):
        raise BadOption(
            f"{text!r} is not a part",
            where=argument("part"),
            way_out="write I/P, from 1/16 to 16/16",
        )
    i, p = int(number), int(count)
    return n * (i - 1) // p, n * i // p


def differ_as_wholes(one: StatePart, other: StatePart) -> bool:
    """Whether two parts were cut out of different matrices of the same shape."""
    cut_out = bool(one.whole and other.whole) and one.total == other.total
    return cut_out and one.whole != other.whole


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def fingerprint(data: npt.NDArray[Any]) -> str:
    """A hash that identifies a matrix among others of its shape: SHA-256 of some rows.

    Rows that would have to be decoded have an `identity` of their own.
    """
    if known := getattr(data, "identity", ""):
        return str(known)
    rows = np.unique(np.linspace(0, len(data) - 1, FINGERPRINT_ROWS).astype(np.int64))
    return sha256_of_rows(data[rows])


def sha256_of_rows(data: npt.NDArray[Any]) -> str:
    """SHA-256 of the entries as they are stored, row by row, in hexadecimal."""
    digest = hashlib.sha256()
    step = max(1, _HASH_BYTES // max(1, data.shape[1] * data.dtype.itemsize))
    for start in range(0, len(data), step):
        rows = np.ascontiguousarray(data[start : start + step])
        digest.update(rows.view(np.uint8).data)
    return digest.hexdigest()

"""The matrix as the analysis sees it: rows in blocks, with tokens and frequencies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption
from embgeo.core.file_stamp import FileStamp
from embgeo.core.read_ahead import read_ahead
from embgeo.core.special import SpecialToken
from embgeo.core.visible import visible

#: Rows in a block where nobody says otherwise.
BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a matrix comes from; goes into the result's provenance as it stands.

    Attributes
    ----------
    path : str
        File or folder as the user named it.
    format : str
        Name of the file format.
    tensor : str
        Name of the tensor inside the file.
    stored_shape, dtype
        As the file holds it, before transposing and cutting rows.
    sha256 : str
        Of the file (of a folder: of the files read, in order); empty for arrays in memory.
    transposed : bool
    rows : tuple of two ints or None
        The row range that was cut out.
    reason : str
        Why this tensor was taken.
    tied_by : str
        How the input embedding is the output projection too; empty where it is not.
    notes : tuple of str
        What else a reader has to know (averaged copies, how labels were laid, …).
    stamps : tuple of FileStamp
        Of the files that are read while the matrix is measured.
    columns : tuple of str
        Names of its columns, where each is one of a table.
    """

    path: str = ""
    format: str = "array"
    tensor: str = ""
    stored_shape: tuple[int, ...] = ()
    dtype: str = ""
    sha256: str = ""
    transposed: bool = False
    rows: tuple[int, int] | None = None
    reason: str = ""
    tied_by: str = ""
    notes: tuple[str, ...] = ()
    stamps: tuple[FileStamp, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def tied(self) -> bool:
        """Whether the model is known to use one matrix as input embedding and output projection."""
        return bool(self.tied_by)

    def check_files(self) -> None:
        """Refuse to go on with a file that was written to since it was opened."""
        for stamp in self.stamps:
            stamp.check()


def tied_note(tied_by: str) -> tuple[str, ...]:
    """The note on a tied model; nothing where `tied_by` is empty."""
    return (f"tied: {tied_by}",) if tied_by else ()


@dataclass(frozen=True, slots=True)
class Frequency:
    """How often each row's token occurs, or only in which order.

    Attributes
    ----------
    kind : {"counts", "rank"}
        "counts": `counts` are occurrences. "rank": only the order is known (the vocabulary is
        sorted by frequency, row 0 the most frequent) and `counts` is N, N−1, …, 1.
    counts : array of float64, shape (N,)
        Never negative; 0 for a token that was never seen.
    source : str
        In words, printed with every figure that depends on it.
    """

    kind: Literal["counts", "rank"]
    counts: npt.NDArray[np.float64]
    source: str


@dataclass(frozen=True, slots=True)
class FinalNorm:
    """Scale and bias of a model's final LayerNorm, or why there is no such pair.

    Attributes
    ----------
    name : str
        Of the layer, without ``.weight``; empty where none was found.
    scale, bias : float64 arrays, shape (d,), or None
        Both or neither.
    absent : str
        Why there is no pair.
    """

    name: str = ""
    scale: npt.NDArray[np.float64] | None = None
    bias: npt.NDArray[np.float64] | None = None
    absent: str = ""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Matrix:
    """An embedding matrix W, one row a token.

    Attributes
    ----------
    data : array, shape (N, d)
        Any real dtype that numpy or ml_dtypes knows; usually a map of the file, not a copy.
    name : str
    tokens : tuple of str or None
        One label a row.
    frequency : Frequency or None
    masked : dict of str to int array
        Rows to leave out, by reason (``"padding beyond the vocabulary"``).
    output : Matrix or None
        The output projection of an untied model, over the same N tokens.
    hidden : Matrix or None
        Hidden states of the model, one a row, d columns.
    final_norm : FinalNorm or None
    special : tuple of SpecialToken
        Tokens that the tokenizer or a chat template names, in the order of their rows.
    vocabulary_size : int or None
        Tokens of the tokenizer; None where it is not known, or a range of rows was cut out.
    tied_as_configured : bool or None
        Whether the file holds one matrix for input and output exactly if the model's
        configuration says so; None where it says nothing.
    unreachable : tuple of int, str or None
        Rows of tokens that no text leads to; why they are not known; None where nobody asked.
    origin : Origin
    rounded : bool
        Whether rows are taken in float32 even where they are stored in float64.
    """

    data: npt.NDArray[Any]
    name: str = "W"
    tokens: tuple[str, ...] | None = None
    frequency: Frequency | None = None
    masked: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    output: Matrix | None = None
    hidden: Matrix | None = None
    final_norm: FinalNorm | None = None
    special: tuple[SpecialToken, ...] = ()
    vocabulary_size: int | None = None
    tied_as_configured: bool | None = None
    unreachable: tuple[int, ...] | str | None = None
    origin: Origin = Origin()
    rounded: bool = False

    def __post_init__(self) -> None:
        """Refuse what is not a matrix of real numbers."""
        shape = tuple(self.data.shape)
        if len(shape) != 2 or 0 in shape:
            raise BadOption(
                f"an array of shape {shape} is not a matrix with a row for each token",
                where=self.name,
            )
        if not (self.data.dtype.kind == "f" or "float" in str(self.data.dtype)):
            raise BadOption(
                f"entries of type {self.data.dtype} are not floating-point numbers", where=self.name
            )

    def __repr__(self) -> str:
        file = visible(str(self.origin.path or self.name))
        parts = ("tokens", "frequency", "output", "hidden")
        known = [name for name in parts if getattr(self, name) is not None]
        also = f", with {', '.join(known)}" if known else ""
        return f"<Matrix {file}: {self.n:,} × {self.d:,} {self.dtype}{also}>"

    @property
    def n(self) -> int:
        return int(self.data.shape[0])

    @property
    def d(self) -> int:
        return int(self.data.shape[1])

    @property
    def dtype(self) -> str:
        return str(self.data.dtype)

    @property
    def working(self) -> type[np.float32] | type[np.float64]:
        """What rows come in: float32 where it holds every entry exactly, or was asked for."""
        return np.float32 if self.rounded or self.data.dtype.itemsize <= 4 else np.float64

    def blocks(
        self,
        rows: npt.NDArray[np.int64] | None = None,
        *,
        start: int = 0,
        stop: int | None = None,
        step: int = BLOCK_ROWS,
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[Any]]]:
        """Row numbers and those rows, as float32 or float64, block by block.

        Parameters
        ----------
        rows : int array, optional
            Only these rows, in this order; all of them by default.
        start, stop : int
            Only this range of the rows, or of `rows`.
        step : int
            Rows in a block.
        """
        total = self.n if rows is None else len(rows)
        stop = total if stop is None else min(stop, total)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            if rows is None:
                # Before each block: to read behind the new end of a map would end the process.
                self.origin.check_files()
                read_ahead(self.data, last, min(last + step, stop))
                index = np.arange(first, last, dtype=np.int64)
                yield index, working(self.data[first:last], self.working)
            else:
                index = rows[first:last]
                yield index, self.stored(index)

    def stored(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The named rows as float32 or float64, shape (len(rows), d)."""
        self.origin.check_files()
        # A contiguous run is a slice: fancy indexing would copy in the stored dtype first.
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and bool(np.all(np.diff(rows) == 1)):
            return working(self.data[rows[0] : rows[-1] + 1], self.working)
        return working(self.data[rows], self.working)

    def take(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The named rows in float64, shape (len(rows), d)."""
        return np.asarray(self.stored(rows), dtype=np.float64)

    def with_frequency(self, frequency: Frequency | None) -> Matrix:
        if frequency is not None and len(frequency.counts) != self.n:
            raise BadOption(
                f"{len(frequency.counts):,} counts for {self.n:,} rows",
                way_out="give one count for each row",
            )
        return replace(self, frequency=frequency)


def working(rows: npt.NDArray[Any], dtype: type[np.float32] | type[np.float64]) -> npt.NDArray[Any]:
    """The rows in native byte order and C order, without a copy where they are so already."""
    return np.ascontiguousarray(rows, dtype=dtype)

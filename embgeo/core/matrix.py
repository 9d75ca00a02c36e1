"""A matrix with its labels and companions, read in blocks of rows."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.core.special import SpecialToken
from embgeo.core.text import visible

#: Default number of rows in a block.
BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a matrix comes from, for the provenance of the result."""

    #: File or folder as the user wrote it.
    path: str = ""
    format: str = "array"
    tensor: str = ""
    #: Shape and type in the file, before transposing and cutting rows.
    stored_shape: tuple[int, ...] = ()
    dtype: str = ""
    #: Hash of the file, or of the files read from a folder in order; empty for arrays in memory.
    sha256: str = ""
    transposed: bool = False
    rows: tuple[int, int] | None = None
    #: Whether all files are safetensors, which embgeo repair writes.
    repairable: bool = False
    reason: str = ""
    #: How input embedding and output matrix are tied; empty if they are not.
    tied_by: str = ""
    #: Further notes for the reader (averaged copies, how labels were assigned, …).
    notes: tuple[str, ...] = ()
    #: Stamps of the files that are read during the analysis.
    stamps: tuple[FileStamp, ...] = ()
    #: Names of the columns, if they are columns of a table.
    columns: tuple[str, ...] = ()
    #: How the rows are decoded or joined, such as "FP8, code · weight_scale of the row"; empty if
    #: they are stored as they are.
    form: str = ""
    #: Stored tensors that they are decoded from.
    parts: tuple[str, ...] = ()

    @property
    def tied(self) -> bool:
        """Whether input embedding and output matrix are known to be one matrix."""
        return bool(self.tied_by)

    def check_files(self, *, at_end: bool = False) -> None:
        """Raise UnreadableFile if a file was written to, or `at_end` replaced, since opening."""
        for stamp in self.stamps:
            stamp.check(at_end=at_end)


def tied_note(tied_by: str) -> tuple[str, ...]:
    """Return the note on a tied model; empty if it is not tied."""
    return (f"tied: {tied_by}",) if tied_by else ()


@dataclass(frozen=True, slots=True)
class Frequency:
    """How often the token of each row occurs, or only the order."""

    #: "counts": `counts` are occurrences. "rank": only the order is known (row 0 is the most
    #: frequent), and `counts` is N, N−1, …, 1.
    kind: Literal["counts", "rank"]
    #: Not negative; 0 for a token that never occurs; shape (N,).
    counts: npt.NDArray[np.float64]
    #: Description for values and figures that depend on it.
    source: str


@dataclass(frozen=True, slots=True)
class FinalNorm:
    """Scale and bias of a model's final LayerNorm, or why they are absent."""

    #: Name of the layer without ``.weight``; empty if none was found.
    name: str = ""
    #: Both or neither; shape (d,).
    scale: npt.NDArray[np.float64] | None = None
    bias: npt.NDArray[np.float64] | None = None
    #: Why they are absent.
    absent: str = ""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Matrix:
    """An embedding matrix W with one row for each token.

    Attributes
    ----------
    data : array, shape (N, d)
        Any floating-point dtype of numpy or ml_dtypes; usually a map of the file, not a copy.
    name : str
        In reports and legends; "W" for an array.
    tokens : tuple of str or None
        One label for each row.
    frequency : Frequency or None
        How often each token occurs: N counts, or ranks in their place.
    masked : dict of str to int array
        Rows to leave out, by reason (``"padding beyond the vocabulary"``).
    output : Matrix or None
        The output matrix of an untied model, over the same N tokens.
    hidden : Matrix or None
        Hidden states of the model, one in each row, with d columns.
    final_norm : FinalNorm or None
    special : tuple of SpecialToken
        Tokens that the tokenizer or a chat template names, in the order of their rows.
    vocabulary_size : int or None
        Tokens of the tokenizer, else of the configuration; None if unknown, or if a range of rows
        was cut out.
    tied_as_configured : bool or None
        Whether the tying in the file agrees with the model's configuration; None if the
        configuration does not state it.
    unreachable : tuple of int, str or None
        Rows of tokens that no text is encoded to, or why they are unknown; None if not requested.
    origin : Origin
    rounded : bool
        Whether rows are read in float32 even if they are stored in float64.

    Examples
    --------
    >>> import embgeo
    >>> import numpy as np
    >>> embgeo.Matrix(np.eye(3), tokens=("a", "b", "c"))
    <Matrix W: 3 × 3 float64, with tokens>
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
        """Refuse an array that is not a matrix of floating-point numbers."""
        shape = tuple(self.data.shape)
        if len(shape) != 2 or 0 in shape:
            raise BadOption(
                f"an array of shape {shape} is not a matrix with a row for each token",
                where=self.name,
            )
        if not (self.data.dtype.kind == "f" or "float" in str(self.data.dtype)):
            raise BadOption(
                f"entries of type {self.data.dtype} are not floating-point numbers",
                where=self.name,
                way_out="convert them to float32",
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
        """Type of the rows: float32 if it is exact for every entry or requested, else float64."""
        return np.float32 if self.rounded or self.data.dtype.itemsize <= 4 else np.float64

    def blocks(
        self,
        rows: npt.NDArray[np.int64] | None = None,
        *,
        start: int = 0,
        stop: int | None = None,
        step: int = BLOCK_ROWS,
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[Any]]]:
        """Yield row numbers and rows in float32 or float64, in blocks of `step` rows.

        Parameters
        ----------
        rows : int array, optional
            Only these rows, in this order; by default all rows.
        start, stop : int
            Only this range of all rows, or of `rows`.
        step : int
            Rows in a block.
        """
        total = self.n if rows is None else len(rows)
        stop = total if stop is None else min(stop, total)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            if rows is None:
                # Before each block: reading beyond the end of a truncated map kills the process.
                self.origin.check_files()
                read_ahead(self.data, last, min(last + step, stop))
                index = np.arange(first, last, dtype=np.int64)
                yield index, working(self.data[first:last], self.working)
            else:
                index = rows[first:last]
                yield index, self.stored(index)

    def stored(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return these rows as float32 or float64, shape (len(rows), d)."""
        self.origin.check_files()
        # Slice consecutive rows: fancy indexing would copy in the stored dtype first.
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and bool(np.all(np.diff(rows) == 1)):
            return working(self.data[rows[0] : rows[-1] + 1], self.working)
        return working(self.data[rows], self.working)

    def take(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return these rows in float64, shape (len(rows), d)."""
        return np.asarray(self.stored(rows), dtype=np.float64)

    def with_frequency(self, frequency: Frequency | None) -> Matrix:
        if frequency is not None and len(frequency.counts) != self.n:
            raise BadOption(
                f"{len(frequency.counts):,} counts for {self.n:,} rows",
                way_out="give one count for each row",
            )
        return replace(self, frequency=frequency)


def working(rows: npt.NDArray[Any], dtype: type[np.float32] | type[np.float64]) -> npt.NDArray[Any]:
    """Return the rows in native byte order and C order, copied only if necessary."""
    return np.ascontiguousarray(rows, dtype=dtype)


def read_ahead(data: Any, start: int, stop: int) -> None:
    """Ask the system to read the pages of some rows of a memory map; ignore any other array."""
    mapped = _find_map(data)
    if mapped is None or not hasattr(mmap, "MADV_WILLNEED") or start >= stop:
        return
    rows = data[start:stop]
    base = np.frombuffer(mapped, dtype=np.uint8, count=1)
    offset = rows.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    page = offset - offset % mmap.PAGESIZE
    if 0 <= page < len(mapped) and rows.flags.c_contiguous:
        length = min(offset + rows.nbytes, len(mapped)) - page
        mapped.madvise(mmap.MADV_WILLNEED, page, length)


def _find_map(array: Any) -> mmap.mmap | None:
    """Find the map that an array is a view of, directly or through other views."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Size, time of the last change, and identity of a file."""

    path: str
    size: int
    changed: int
    inode: int
    device: int

    @classmethod
    def of(cls, path: Path | str, handle: int | None = None) -> Self:
        """Return the present stamp of a file, open or not; OSError if it cannot be read."""
        found = os.stat(path if handle is None else handle)
        return cls(str(path), found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev)

    def open(self) -> BinaryIO:
        """Open the same file again; refuse one that was written to or has taken its name."""
        file = open(self.path, "rb")  # noqa: SIM115
        if FileStamp.of(self.path, file.fileno()) != self:
            file.close()
            raise UnreadableFile(
                "the file was changed or replaced while it was read",
                where=self.path,
                way_out="run again",
            )
        return file

    def check(self, *, at_end: bool = False) -> None:
        """Refuse a file that was written to, and `at_end` one that another has replaced.

        Until then a replaced file can be read from its map.
        """
        try:
            now = FileStamp.of(self.path)
        except OSError:  # removed: nothing is taken for what it is not
            return
        is_same = (now.device, now.inode) == (self.device, self.inode)
        if now != self and (is_same or at_end):
            how = "changed" if is_same else "replaced"
            raise UnreadableFile(
                f"the file was {how} while it was measured", where=self.path, way_out="run again"
            )

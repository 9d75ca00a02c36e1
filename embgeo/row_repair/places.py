"""The rows to replace, their places in safetensors files, and the bytes of an edited file."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arguments import refuse_if, refuse_type
from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.core.matrix import Matrix
from embgeo.files.guard import plain, reading, refuse, short
from embgeo.files.maps import Array, map_file
from embgeo.files.saved import write_file
from embgeo.files.small_files import read_head, read_text, split_lines
from embgeo.io.formats import safetensors
from embgeo.io.model.checkpoint import Checkpoint, Tensor

_BLOCK = 4 * 2**20

#: An offset, and the bytes to write there.
Edit = tuple[int, bytes]
#: SHA-256 of a file before and after.
Hashes = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """The bytes `start` to `stop` of a file, which hold a tensor."""

    file: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    def place_rows(self, rows: IntArray, stored: npt.NDArray[np.generic]) -> list[Edit]:
        """Return the edits that write these rows, in the byte order of the file."""
        width = (self.stop - self.start) // self.shape[0]
        size = stored.dtype.itemsize
        ordered = stored.view(f"u{size}").astype(f"<u{size}")
        return [
            (self.start + row * width, new.tobytes())
            for row, new in zip(rows.tolist(), ordered, strict=True)
        ]

    def hash_bytes(self, edits: Sequence[Edit] = ()) -> str:
        """Return SHA-256 of the bytes after edits."""
        digest = hashlib.sha256()
        for block in read_edited(map_file(self.file), edits, self.start, self.stop):
            digest.update(block)
        return digest.hexdigest()

    def equals(self, other: TensorPlace) -> bool:
        """Tell whether another tensor has the same dtype, shape and bytes."""
        if (self.dtype, self.shape) != (other.dtype, other.shape):
            return False
        one, two = map_file(self.file), map_file(other.file)
        apart = other.start - self.start
        return all(
            np.array_equal(
                one[at : (end := min(at + _BLOCK, self.stop))], two[at + apart : end + apart]
            )
            for at in range(self.start, self.stop, _BLOCK)
        )


def read_edited(data: Array, edits: Sequence[Edit], start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes `start` to `stop` of a file after edits, block by block."""
    for first in range(start, stop, _BLOCK):
        last = min(first + _BLOCK, stop)
        block = bytearray(data[first:last])
        for offset, new in edits:
            low, high = max(offset, first), min(offset + len(new), last)
            if low < high:
                block[low - first : high - first] = new[low - offset : high - offset]
        yield bytes(block)


def write_edited(source: Path, target: Path, edits: Sequence[Edit]) -> Hashes:
    """Copy a file with edits; return the hashes of both."""
    data = map_file(source)
    before, after = hashlib.sha256(), hashlib.sha256()

    def copy_blocks() -> Iterator[bytes]:
        plain, edited = (read_edited(data, some, 0, len(data)) for some in ((), edits))
        for old, new in zip(plain, edited, strict=True):
            before.update(old)
            after.update(new)
            yield new

    write_file(target, copy_blocks(), durable=True)
    shutil.copymode(source, target)
    return before.hexdigest(), after.hexdigest()


def find_places(checkpoint: Checkpoint, chosen: Tensor) -> list[TensorPlace]:
    """Find the place of a tensor, then the places of all other tensors with the same bytes.

    A tied model may be stored with both of its matrices, which have to stay equal. UnreadableFile
    unless the checkpoint consists of safetensors files.
    """
    every = [place for file in checkpoint.files for place in _list_places(file)]
    own = [place for place in every if place.name == chosen.name]
    if len(own) != 1:
        way_out = "leave the other one out of the index"
        raise refuse(checkpoint.path, f"{chosen.name} is in {len(own)} of its files", way_out)
    return own + [place for place in every if place is not own[0] and place.equals(own[0])]


def _list_places(file: Path) -> list[TensorPlace]:
    if not safetensors.sniff(read_head(file)):
        raise refuse(
            file,
            "is not a safetensors file, and no other is rewritten",
            "save the model as safetensors first (save_pretrained of transformers does)",
        )
    with reading(file, safetensors.NAME):
        body, entries = safetensors.read_entries(map_file(file))
    return [
        TensorPlace(file, plain(e.name), e.dtype, e.shape, body + e.start, body + e.end)
        for e in entries
    ]


def choose_rows(matrix: Matrix, rows: Any) -> IntArray:
    """Choose ascending row numbers for the argument `rows` of :func:`embgeo.repair`."""
    if isinstance(rows, str | Path):
        return _check(matrix, _read_rows(Path(rows), matrix), str(rows))
    if not isinstance(rows, Sequence | np.ndarray):
        raise refuse_type(rows, "rows", "a file, or row numbers")
    return _check(matrix, [int(row) for row in rows], argument("rows"))


def _read_rows(path: Path, matrix: Matrix) -> list[int]:
    """Read the row numbers in a file, or the rows of the tokens unless all lines are numbers."""
    lines = [line for line in split_lines(read_text(path)) if line.strip()]
    if all(line.strip().isascii() and line.strip().isdigit() for line in lines):
        return [int(line) for line in lines]
    tokens = matrix.tokens
    if tokens is None:
        way_out = "give row numbers, one a line"
        raise BadOption("names tokens, and the rows have no labels", where=path, way_out=way_out)
    known = {token: row for row, token in reversed(list(enumerate(tokens)))}  # the first of equals
    for line in lines:
        way_out = "write tokens as embgeo analyze shows them, one a line, or row numbers only"
        refuse_if(line not in known, str(path), f"there is no token {short(line)!r}", way_out)
    return [known[line] for line in lines]


def _check(matrix: Matrix, rows: Sequence[int], where: str) -> IntArray:
    n = matrix.n
    for row in rows:
        way_out = f"rows are 0 to {n - 1:,}"
        refuse_if(not 0 <= row < n, where, f"there is no row {row:,}", way_out)
    return np.unique(np.array(rows, dtype=np.int64))

"""Parquet and Arrow files: columns of vectors, of words and of counts.

pyarrow decodes in a limited process (`arrow_tables`): it is a large C++ library whose own limits do
not hold against hostile files.
"""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.matrix import FileStamp
from embgeo.files.guard import Damaged, plain, refuse
from embgeo.files.maps import TEXT, Array, Bytes, count, map_file, path_of, view
from embgeo.files.scratch import ScratchFile
from embgeo.files.small_files import SIDE_FILE_BYTES, safe_text
from embgeo.io.checkpoint import Checkpoint, RowRanges, Tensor, unreadable
from embgeo.io.formats.format import Beside, Box, join_grid
from embgeo.io.formats.limited import MOST_MEMORY, fetch_array, run_limited
from embgeo.io.labels.counts_file import LARGEST_COUNT

NAME = "Arrow table"
RECOGNIZED = (
    "PAR1 (Parquet), ARROW1 (Arrow, Feather version 2) or FEA1 at the start, or a stream of Arrow"
)
READ = (
    "decoded by pyarrow into memory or a temporary file; an uncompressed Arrow file of one batch "
    "is mapped"
)
EXTRA = "arrow"

_AS_LISTS = "save the vectors as one column of lists of float32"
_PARQUET = b"PAR1"
_FILE = b"ARROW1"
_OLD_FEATHER = b"FEA1"
_CONTINUATION = b"\xff\xff\xff\xff"
_LONGEST_SCHEMA = 16 * 2**20

_MOST_MEMORY = MOST_MEMORY
#: Processor seconds for the description of a file and for a matrix, plus bytes per second.
_DESCRIBING, _READING = 5, 3
_SLOWEST = 20 * 2**20

# Samples of a file that are hashed to identify it.
_SAMPLES, _SAMPLE_BYTES = 32, 4096

# The budget of compressed files.
_MOST_RATIO = 100
_RATIO_FREE_BYTES = 256 * 2**20


def sniff(head: bytes) -> bool:
    """Return a magic string, or the mark and a plausible length before the schema of a stream."""
    if head.startswith((_PARQUET, _FILE, _OLD_FEATHER)):
        return True
    length = int.from_bytes(head[4:8], "little")
    return head.startswith(_CONTINUATION) and length % 8 == 0 and 0 < length < _LONGEST_SCHEMA


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    """Open the matrices of a table, one for each column of vectors, with words and counts."""
    path = path_of(data)
    stamp = FileStamp.of(path)
    head, size = data[: len(_FILE)].tobytes(), len(data)
    name = "Parquet" if head.startswith(_PARQUET) else "Arrow"
    if head.startswith(_OLD_FEATHER):
        raise Damaged(
            "a file of Feather version 1, which is not read",
            "read it with pandas and write it as Parquet",
        )
    if importlib.util.find_spec("pyarrow") is None:
        raise Damaged(f"{name} files need the package pyarrow", "pip install 'embgeo[arrow]'")
    labels = ScratchFile()
    try:
        answer = run_limited(
            "arrow_tables:describe",
            "pyarrow",
            _DESCRIBING + size / _SLOWEST,
            memory=_MOST_MEMORY,
            path=str(path.resolve()),
            output=str(labels.path),
            most=SIDE_FILE_BYTES,
        )
        tokens, counts, why_no_counts = _labels(labels.path, answer)
    finally:
        labels.remove()
    known = _hash_samples(data) if answer["groups"] else ""
    tensors = [_tensor(path, stamp, answer, m, known) for m in answer["matrices"]]
    for column in answer["unread"]:
        problem = f"is a column of {plain(column['type'])}, not of lists of floating-point numbers"
        name = plain(column["name"])
        dtype = TEXT if column["is_text"] else ""
        tensors.append(unreadable(name, (answer["rows"],), dtype, problem, _AS_LISTS))
    return Checkpoint(
        format=name,
        tensors=tuple(tensors),
        tokens=tokens,
        tokens_source=f"column {plain(str(answer['labels']))} of the file",
        notes=tuple(plain(note) for note in (*answer["notes"], *why_no_counts)),
        counts=counts,
        counts_source=f"column {plain(str(answer['counts']))} of the file",
    )


def _labels(
    path: Path, answer: dict[str, Any]
) -> tuple[tuple[str, ...] | None, npt.NDArray[np.float64] | None, tuple[str, ...]]:
    """Return labels and counts of the rows, with a note if the column of counts is left out."""
    if path.stat().st_size > 2 * SIDE_FILE_BYTES:
        raise Damaged(f"its counts take more than {SIDE_FILE_BYTES // 2**20:,} MiB")
    tokens: list[str] = []
    counts: list[int | None] = []
    with path.open(encoding="ascii") as lines:
        for line in lines:
            if line == "\n":
                break
            tokens += json.loads(line)
        for line in lines:
            counts += json.loads(line)
    rows = answer["rows"]
    if answer["labels"] is not None and len(tokens) != rows:
        raise Damaged(f"it holds {len(tokens):,} labels and says {rows:,} rows")
    labels = None if answer["labels"] is None else tuple(safe_text(token) for token in tokens)
    if answer["counts"] is None or len(counts) != rows:
        return labels, None, ()
    for row, value in enumerate(counts):
        if value is None or not 0 <= value <= LARGEST_COUNT:
            problem = "has no count" if value is None else f"has the count {value}"
            note = f"column {answer['counts']} is not used as counts: row {row:,} {problem}"
            return labels, None, (note,)
    return labels, np.array(counts, dtype=np.float64), ()


def _tensor(
    path: Path, stamp: FileStamp, answer: dict[str, Any], matrix: dict[str, Any], known: str
) -> Tensor:
    rows, dtype = answer["rows"], np.dtype(matrix["dtype"])
    if matrix["width"] is None:
        if rows < 0 or rows > max(_RATIO_FREE_BYTES, _MOST_RATIO * stamp.size):
            raise Damaged(f"it promises {rows:,} numbers in {stamp.size:,} bytes")
        one = partial(_values, path, stamp, tuple(answer["groups"]), matrix, 0, rows)
        return Tensor(plain(matrix["name"]), (rows,), dtype.name, lambda: one().reshape(-1))
    width = matrix["width"]
    promised = rows * width * dtype.itemsize
    if rows < 0 or width < 0 or promised > max(_RATIO_FREE_BYTES, _MOST_RATIO * stamp.size):
        raise Damaged(f"it promises {rows:,}×{width:,} numbers in {stamp.size:,} bytes")
    read = partial(_values, path, stamp, tuple(answer["groups"]), matrix)
    ranges = RowRanges(read, f"{known} {matrix['name']}") if answer["groups"] else None
    whole = partial(read, 0, rows)
    return Tensor(plain(matrix["name"]), (rows, width), dtype.name, whole, ranges=ranges)


def _hash_samples(data: Bytes) -> str:
    """Get SHA-256 of the footer of a Parquet file, which describes every page, and of samples."""
    length = int.from_bytes(data[-8:-4].tobytes(), "little")
    digest = hashlib.sha256(data[max(0, len(data) - 8 - length) :].data)
    for start in np.linspace(0, len(data), _SAMPLES, endpoint=False).astype(np.int64).tolist():
        digest.update(data[start : start + _SAMPLE_BYTES].data)
    return digest.hexdigest()


def _values(
    path: Path,
    stamp: FileStamp,
    groups: tuple[int, ...],
    matrix: dict[str, Any],
    start: int,
    stop: int,
    rows: IntArray | None = None,
) -> Array:
    n = stop - start if rows is None else len(rows)
    shape, dtype = (n, matrix["width"] or 1), np.dtype(matrix["dtype"])
    if not count(shape):
        return np.empty(shape, dtype=dtype)
    # Whole row groups are decoded, even for some of their rows.
    decoded = (stop - start + 2 * max(groups, default=0)) * shape[1] * dtype.itemsize
    found = fetch_array(
        "arrow_tables:values",
        "pyarrow",
        _READING + decoded / _SLOWEST,
        dtype,
        shape,
        memory=_MOST_MEMORY,
        path=str(path.resolve()),
        matrix=matrix,
        start=start,
        stop=stop,
        rows=None if rows is None else rows.tolist(),
    )
    # Each call opens the path again.
    if FileStamp.of(path) != stamp:
        raise Damaged("the file was changed or replaced while it was read", "run again")
    return view(map_file(path)[found:], dtype, shape) if isinstance(found, int) else found


ENDING = ".parquet"


def is_dataset(files: Sequence[str]) -> bool:
    return len(files) > 1 and all(name.endswith(ENDING) for name in files)


def join_tables(folder: Path, tables: Sequence[Checkpoint]) -> Checkpoint:
    """Concatenate tables; tokens and counts are kept if all of them have some."""
    filled = [table for table in tables if any(t.shape[:1] != (0,) for t in table.tensors)]
    by_name = [{tensor.name: tensor for tensor in table.tensors} for table in filled]
    if not filled:
        raise refuse(folder, "its Parquet files have no rows", "name another folder")
    every = dict.fromkeys(name for own in by_name for name in own)
    columns = [_join_column(name, [own.get(name) for own in by_name]) for name in every]
    if all(column.problem for column in columns):
        cause = "its Parquet files have no column of vectors in common"
        raise refuse(folder, cause, "name one of the files")
    tokens = [table.tokens for table in filled if table.tokens is not None]
    counts = [table.counts for table in filled if table.counts is not None]
    has_tokens, has_counts = len(tokens) == len(filled), len(counts) == len(filled)
    return Checkpoint(
        tables[0].format,
        tuple(columns),
        path=folder,
        files=tuple(file for table in tables for file in table.files),
        tokens=tuple(one for own in tokens for one in own) if has_tokens else None,
        tokens_source=filled[0].tokens_source,
        notes=(
            f"rows of {len(tables):,} files in the order of their names",
            *dict.fromkeys(note for table in tables for note in table.notes),
        ),
        counts=np.concatenate(counts) if has_counts else None,
        counts_source=filled[0].counts_source,
    )


def _join_column(name: str, found: Sequence[Tensor | None]) -> Tensor:
    """Join the parts of a column; it cannot be read if it is not the same in all files."""
    parts = [part for part in found if part is not None]
    if len(parts) == len(found) and (unread := next((p for p in parts if p.problem), None)):
        return unread
    kinds = {(part.shape[1:], part.dtype) for part in parts}
    known = [part.ranges.identity for part in parts if part.ranges is not None]
    if len(known) < len(found) or len(kinds) > 1:
        problem = "is not in all files of the folder with one width and type"
        return unreadable(name, (), "", problem, "name one of the files")
    rows, width = sum(part.shape[0] for part in parts), parts[0].shape[1]
    read = partial(_read, tuple(parts))
    whole = partial(read, 0, rows)
    ranges = RowRanges(read, hashlib.sha256("\n".join(known).encode()).hexdigest())
    return replace(parts[0], shape=(rows, width), open=whole, ranges=ranges)


def _read(parts: Sequence[Tensor], start: int, stop: int, rows: IntArray | None = None) -> Array:
    """Read rows `start` to `stop` of the table, or those of `rows` among them."""
    pieces: list[tuple[Box, Callable[[], Array]]] = []
    width, end, n = parts[0].shape[1], 0, 0
    for part in parts:
        first, end = end, end + part.shape[0]
        low, high = max(start, first), min(stop, end)
        chosen = None if rows is None else rows[(low <= rows) & (rows < high)] - first
        count = high - low if chosen is None else len(chosen)
        if count > 0 and part.ranges is not None:
            read = partial(part.ranges.read, low - first, high - first, chosen)
            pieces.append((((n, 0), (count, width)), read))
            n += count
    return join_grid(pieces, (n, width), parts[0].dtype)

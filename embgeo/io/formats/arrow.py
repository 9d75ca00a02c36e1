"""Parquet and Arrow files: columns of vectors, of words and of counts.

pyarrow decodes in a limited process: it is a large C++ library whose own limits do not hold against
hostile files.
"""

import bisect
import contextlib
import hashlib
import importlib.util
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.matrix import FileStamp
from embgeo.files.guard import Damaged, plain, refuse
from embgeo.files.limited import MOST_MEMORY, fetch_array, run_limited
from embgeo.files.links import name_opened
from embgeo.files.maps import TEXT, Array, Bytes, count, stamp_of
from embgeo.files.scratch import ScratchFile
from embgeo.files.small_files import SIDE_FILE_BYTES, safe_text
from embgeo.io.formats.format import Beside, Box, join_grid
from embgeo.io.formats.word_lists import CLASSES, PANDAS_INDEX, are_classes, are_words
from embgeo.io.labels.counts_file import LARGEST_COUNT
from embgeo.io.labels.side_tables import COUNT_HEADINGS, TOKEN_HEADINGS
from embgeo.io.model.checkpoint import SAVE_FLOATS, Checkpoint, RowRanges, Tensor, unreadable

NAME = "Arrow table"
RECOGNIZED = "PAR1 (Parquet) or ARROW1 (Arrow, Feather) at the start, or a stream of Arrow"
READ = "decoded by pyarrow into memory or a temporary file"
EXTRA = "arrow"

_PARQUET = b"PAR1"
_FILE = b"ARROW1"
_CONTINUATION = b"\xff\xff\xff\xff"
# A stream begins with any bytes of this form: a length beyond this is no schema but numbers.
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
    """Recognize a magic string, or the mark of a stream before a plausible length of its schema."""
    if head.startswith((_PARQUET, _FILE)):
        return True
    length = int.from_bytes(head[4:8], "little")
    return head.startswith(_CONTINUATION) and length % 8 == 0 and 0 < length < _LONGEST_SCHEMA


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    """Open the matrices of a table, one for each column of vectors, with words and counts."""
    stamp = stamp_of(data)
    head, size = data[: len(_FILE)].tobytes(), len(data)
    name = "Parquet" if head.startswith(_PARQUET) else "Arrow"
    if importlib.util.find_spec("pyarrow") is None:
        raise Damaged(f"{name} files need the package pyarrow", "pip install 'embgeo[arrow]'")
    with ScratchFile() as labels:
        answer = run_limited(
            f"{__name__}:describe",
            "pyarrow",
            _DESCRIBING + size / _SLOWEST,
            memory=_MOST_MEMORY,
            stamp=astuple(stamp),
            output=str(labels),
            most=SIDE_FILE_BYTES,
        )
        tokens, counts, why_no_counts = _labels(labels, answer)
    known = _hash_samples(data) if answer["groups"] else ""
    tensors = [_tensor(stamp, answer, m, known) for m in answer["matrices"]]
    for column in answer["unread"]:
        problem = f"is a column of {plain(column['type'])}, not of lists of floating-point numbers"
        name = plain(column["name"])
        dtype = TEXT if column["is_text"] else ""
        tensors.append(unreadable(name, (answer["rows"],), dtype, problem, SAVE_FLOATS))
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
    """Return labels and counts of the rows, with notes on columns that are not used."""
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
    notes: tuple[str, ...] = ()
    if labels is not None and are_classes(answer["labels"], labels):
        labels, notes = None, (f"column {answer['labels']} {CLASSES}",)
    if answer["counts"] is None or len(counts) != rows:
        return labels, None, notes
    for row, value in enumerate(counts):
        if value is None or not 0 <= value <= LARGEST_COUNT:
            problem = "has no count" if value is None else f"has the count {value}"
            note = f"column {answer['counts']} is not used as counts: row {row:,} {problem}"
            return labels, None, (*notes, note)
    return labels, np.array(counts, dtype=np.float64), notes


def _tensor(stamp: FileStamp, answer: dict[str, Any], matrix: dict[str, Any], known: str) -> Tensor:
    rows, width, dtype = answer["rows"], matrix["width"], np.dtype(matrix["dtype"])
    shape = (rows,) if width is None else (rows, width)
    promised = rows if width is None else rows * width * dtype.itemsize
    if min(shape) < 0 or promised > max(_RATIO_FREE_BYTES, _MOST_RATIO * stamp.size):
        numbers = "×".join(f"{size:,}" for size in shape)
        raise Damaged(f"it promises {numbers} numbers in {stamp.size:,} bytes")
    read = partial(_values, stamp, tuple(answer["groups"]), matrix)
    has_ranges = answer["groups"] and width is not None
    ranges = RowRanges(read, f"{known} {matrix['name']}") if has_ranges else None
    name = plain(matrix["name"])
    return Tensor(name, shape, dtype.name, lambda: read(0, rows).reshape(shape), ranges=ranges)


def _hash_samples(data: Bytes) -> str:
    """Hash the footer of a Parquet file, which describes every page, and samples of the file."""
    length = int.from_bytes(data[-8:-4].tobytes(), "little")
    digest = hashlib.sha256(data[max(0, len(data) - 8 - length) :].data)
    for start in np.linspace(0, len(data), _SAMPLES, endpoint=False).astype(np.int64).tolist():
        digest.update(data[start : start + _SAMPLE_BYTES].data)
    return digest.hexdigest()


def _values(
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
    return fetch_array(
        f"{__name__}:write_values",
        "pyarrow",
        _READING + decoded / _SLOWEST,
        dtype,
        shape,
        memory=_MOST_MEMORY,
        stamp=astuple(stamp),
        matrix=matrix,
        start=start,
        stop=stop,
        rows=None if rows is None else rows.tolist(),
    )


# Tables of several files

ENDING = ".parquet"


def is_dataset(files: Sequence[str]) -> bool:
    return len(files) > 1 and all(name.endswith(ENDING) for name in files)


def join_tables(folder: Path, tables: Sequence[Checkpoint]) -> Checkpoint:
    """Concatenate tables; tokens and counts are kept if all of them have some."""
    filled = [table for table in tables if any(t.shape[:1] != (0,) for t in table.tensors)]
    by_name = [{tensor.name: tensor for tensor in table.tensors} for table in filled]
    if not filled:
        raise refuse(folder, "its Parquet files have no rows")
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


# In the limited process

# A batch is copied to the output file before the next one is decoded: it bounds the memory.
_BATCH_BYTES = 4 * 2**20
_WHITE = "\t\n\r "
#: Names of floating-point types in Arrow and in numpy.
FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


@dataclass
class BatchedTable:
    """A file as validated batches of some of its columns."""

    schema: Any
    rows: int
    #: Called with columns, rows of a batch, and the row groups to read (None: all).
    batches: Callable[[list[int], int, range | None], Iterator[Any]]
    groups: tuple[int, ...] = ()  # rows of each row group, where single ones can be read


def describe(stamp: list[Any], output: str, most: int = SIDE_FILE_BYTES) -> dict[str, Any]:
    """Describe matrices; write labels and counts to the output file, a line for each batch.

    Labels of more than `most` bytes are left out.
    """
    table = open_table(FileStamp(*stamp))
    names = [field.name for field in table.schema]
    if len(set(names)) < len(names):
        raise Damaged(
            "two of its columns have the same name", "rename one with pyarrow.Table.rename_columns"
        )
    matrices = [m for place in range(len(names)) if (m := matrix_of(table, place)) is not None]
    labels, note = label_column(table.schema)
    counts = count_column(table.schema)
    unread = [
        {"name": field.name, "type": str(field.type)[:60], "is_text": holds_words(table, place)}
        for place, field in enumerate(table.schema)
        if not item_type(table.schema, place) and not number_name(field.type)
    ]
    with open(output, "w", encoding="ascii") as out:
        if labels is not None and not write_labels(table, labels, out, most):
            limit = f"{most / 2**20:,.4g} MiB"
            texts = f"the texts of column {names[labels]}"
            note = f"{texts} take more than {limit} and do not name the rows"
            labels = None
            out.seek(0)
            out.truncate()
        out.write("\n")
        if counts is not None:
            for batch in table.batches([counts], 65536, None):
                out.write(json.dumps(batch.column(0).to_pylist()) + "\n")
    return {
        "rows": table.rows,
        "groups": list(table.groups),
        "matrices": matrices,
        "unread": unread,
        "labels": None if labels is None else names[labels],
        "counts": None if counts is None else names[counts],
        "notes": [note] if note else [],
    }


def write_labels(table: BatchedTable, place: int, out: TextIO, most: int) -> bool:
    """Write the texts of a column, a line for each batch; False if they take too much."""
    for batch in table.batches([place], 4096, None):
        if out.tell() + batch.column(0).nbytes > most:
            return False
        out.write(json.dumps([text or "" for text in batch.column(0).to_pylist()]) + "\n")
    return out.tell() <= most


def write_values(
    stamp: list[Any],
    output: str,
    matrix: dict[str, Any],
    start: int,
    stop: int,
    rows: list[int] | None,
) -> None:
    """Write rows of a matrix to the output file.

    `rows` selects rows of a Parquet file: ascending, each once.
    """
    table = open_table(FileStamp(*stamp))
    with open(output, "wb") as out:
        if rows is None:
            write_rows(table, matrix, range(start, stop), out)
            return
        group = np.searchsorted(np.cumsum(table.groups), rows, side="right")
        for part in np.split(np.array(rows), np.flatnonzero(np.diff(group) > 1) + 1):
            write_rows(table, matrix, part, out)


def write_rows(table: BatchedTable, matrix: dict[str, Any], rows: Any, out: BinaryIO) -> None:
    """Write a range or an array of rows."""
    start, stop = int(rows[0]), int(rows[-1]) + 1
    groups, row = choose_groups(table.groups, start, stop)
    width = matrix["width"] or 1
    dtype = np.dtype(matrix["dtype"])
    batch_rows = max(1, _BATCH_BYTES // (width * 8))
    for batch in table.batches([matrix["place"]], batch_rows, groups):
        first, row = max(start, row), row + batch.num_rows
        if row <= first:
            continue
        batch = batch.slice(batch.num_rows - (row - first), min(stop, row) - first)
        if matrix["width"] is None:
            refuse_missing(batch.column(0), first, "a missing number")
            block = batch.column(0).to_numpy(zero_copy_only=False)
        else:
            block = list_values(batch.column(0), width, first)
        if not isinstance(rows, range):
            low, high = np.searchsorted(rows, (first, first + len(block)))
            block = block[rows[low:high] - first]
        out.write(np.ascontiguousarray(block, dtype=dtype).data)
        if stop < table.rows and row >= stop:
            break
    if row < stop or row > table.rows:
        raise Damaged(f"it holds {row:,} rows and says {table.rows:,}")


def choose_groups(groups: tuple[int, ...], start: int, stop: int) -> tuple[range | None, int]:
    """Choose the row groups that hold rows of a range, and the first row of these groups."""
    ends = list(itertools.accumulate(groups))
    if not ends:
        return None, 0
    first, last = bisect.bisect_right(ends, start), bisect.bisect_left(ends, stop)
    return range(first, last + 1), ends[first] - groups[first]


# Files


def open_table(stamp: FileStamp) -> BatchedTable:
    import pyarrow

    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    with stamp.open() as file:
        head = file.read(6)
        whole = pyarrow.memory_map(name_opened(file))
    if head.startswith(b"PAR1"):
        return open_parquet(whole)
    return open_ipc(whole.read_buffer(), is_file=head == b"ARROW1")


def open_parquet(whole: Any) -> BatchedTable:
    from pyarrow import parquet

    # Streams pages from a map: a row group is not held in memory, whatever its size.
    file = parquet.ParquetFile(whole, pre_buffer=False, buffer_size=2**20)
    schema, about = file.schema_arrow, file.metadata
    groups = tuple(about.row_group(number).num_rows for number in range(about.num_row_groups))
    if sum(groups) != about.num_rows or min(groups, default=0) < 0:
        cause = f"its row groups hold {sum(groups):,} rows, it says {about.num_rows:,}"
        raise Damaged(cause)

    def batches(places: list[int], rows: int, chosen: range | None) -> Iterator[Any]:
        names = [schema.field(place).name for place in places]
        for number in range(len(groups)) if chosen is None else chosen:
            held = 0
            for batch in file.iter_batches(rows, [number], columns=names, use_threads=False):
                batch.validate(full=True)
                held += batch.num_rows
                if held > groups[number]:
                    break
                yield batch.select(names)
            # Rows of the next groups would take the places of missing ones.
            if held != groups[number]:
                cause = f"row group {number:,} holds {held:,} rows and says {groups[number]:,}"
                raise Damaged(cause)

    return BatchedTable(schema, about.num_rows, batches, groups=groups)


def open_ipc(whole: Any, *, is_file: bool) -> BatchedTable:
    import pyarrow

    open_reader = pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream
    reader = open_reader(whole)

    def batches(places: list[int], _rows: int, _groups: range | None) -> Iterator[Any]:
        names = [reader.schema.field(place).name for place in places]
        options = pyarrow.ipc.IpcReadOptions(included_fields=places, use_threads=False)
        part = open_reader(whole, options=options)
        for batch in file_batches(part, reader) if is_file else part:
            batch.validate(full=True)
            yield batch.select(names)

    rows = sum(batch.num_rows for batch in batches([0], 0, None)) if len(reader.schema) else 0
    return BatchedTable(reader.schema, rows, batches)


def file_batches(part: Any, reader: Any) -> Iterator[Any]:
    """Yield the batches of an Arrow file; `part` reads some of the columns, `reader` all.

    pyarrow copies a part of the columns, but not a whole batch without compression, which may be
    larger than the memory: a single batch is read whole, unless that takes too much.
    """
    if part.num_record_batches == 1:
        with contextlib.suppress(MemoryError):
            yield reader.get_batch(0)
            return
    yield from map(part.get_batch, range(part.num_record_batches))


# Columns


def number_name(kind: Any) -> str:
    """Return the numpy name of a type of single numbers; empty for other types."""
    from pyarrow import types

    is_number = types.is_integer(kind) or types.is_floating(kind)
    return str(np.dtype(kind.to_pandas_dtype()).name) if is_number else ""


def item_type(schema: Any, place: int) -> str:
    """Return the numpy name of the items of a column of lists; empty unless they are floats."""
    from pyarrow import types

    kind = schema.field(place).type
    kind = getattr(kind, "storage_type", kind)  # of an extension type, such as that of tensors
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return FLOATS.get(str(kind.value_type), "") if is_list else ""


def matrix_of(table: BatchedTable, place: int) -> dict[str, Any] | None:
    """Describe a column of vectors, or of numbers, without a width; None for other columns."""
    from pyarrow import types

    field, dtype = table.schema.field(place), item_type(table.schema, place)
    if not dtype:
        number = number_name(field.type)
        found = {"name": field.name, "place": place, "width": None, "dtype": number}
        return found if number else None
    kind = getattr(field.type, "storage_type", field.type)
    if types.is_fixed_size_list(kind):
        width = kind.list_size
    else:
        first = next((b for b in table.batches([place], 1, None) if b.num_rows), None)
        width = 0 if first is None else first.column(0).value_lengths()[0].as_py() or 0
    return {"name": field.name, "place": place, "width": width, "dtype": dtype}


def label_column(schema: Any) -> tuple[int | None, str]:
    """Find the only column of strings, or the only one with a usual name; else None and a note."""
    texts = [place for place in range(len(schema)) if is_text(schema.field(place).type)]
    if len(texts) <= 1:
        return (texts[0] if texts else None), ""
    known = {*TOKEN_HEADINGS, PANDAS_INDEX}
    named = [p for p in texts if schema.field(p).name.strip(_WHITE).lower() in known]
    if len(named) == 1:
        return named[0], ""
    return None, "several columns hold text; the rows are labeled by none of them (use --tokens)"


def is_text(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def holds_words(table: BatchedTable, place: int) -> bool:
    """Tell whether a column holds texts, the first of which is not a vector written as text."""
    if not is_text(table.schema.field(place).type):
        return False
    first = next((b for b in table.batches([place], 1, None) if b.num_rows), None)
    return are_words([] if first is None else [first.column(0)[0].as_py() or ""])


def count_column(schema: Any) -> int | None:
    from pyarrow import types

    found = [
        place
        for place, field in enumerate(schema)
        if types.is_integer(field.type) and field.name.strip(_WHITE).lower() in COUNT_HEADINGS
    ]
    return found[0] if len(found) == 1 else None


def refuse_missing(column: Any, row: int, what: str) -> None:
    if column.null_count:
        place = row + int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        raise Damaged(
            f"row {place:,} has {what}", "leave such rows out with pandas.DataFrame.dropna"
        )


def list_values(column: Any, width: int, row: int) -> Any:
    """List the numbers of a column of lists, shape (rows, width), as a view where possible."""
    from pyarrow import types

    column = getattr(column, "storage", column)
    refuse_missing(column, row, "no vector")
    if not types.is_fixed_size_list(column.type):
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        odd = np.flatnonzero(lengths != width)
        if len(odd):
            raise Damaged(
                f"row {row + int(odd[0]):,} has {int(lengths[odd[0]]):,} numbers, "
                f"the first one {width:,}",
            )
    flat = column.flatten()
    if flat.null_count:
        raise Damaged(f"a vector of the rows from {row:,} has a missing number")
    return flat.to_numpy(zero_copy_only=False).reshape(len(column), width)

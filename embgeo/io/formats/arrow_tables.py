"""Decodes Parquet and Arrow files with pyarrow, in a limited process; see `limited`."""

import bisect
import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, TextIO

import numpy as np

from embgeo.files.guard import Damaged
from embgeo.files.small_files import SIDE_FILE_BYTES
from embgeo.io.labels.side_tables import COUNT_HEADINGS, TOKEN_HEADINGS

_BATCH_BYTES = 4 * 2**20
_WHITE = "\t\n\r "
#: The column of the index in files of pandas.
_INDEX = "__index_level_0__"
#: Names of floating-point types in Arrow and in numpy.
FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


@dataclass
class BatchedTable:
    """A file as validated batches of some of its columns."""

    schema: Any
    rows: int
    #: Called with columns, rows of a batch, and the row groups to read (None: all).
    batches: Callable[[list[int], int, range | None], Iterator[Any]]
    mapped: Any = None
    groups: tuple[int, ...] = ()  # rows of each row group, where single ones can be read


def describe(path: str, output: str, most: int = SIDE_FILE_BYTES) -> dict[str, Any]:
    """Describe matrices; write labels and counts to the output file, a line for each batch.

    Labels of more than `most` bytes are left out.
    """
    table = open_table(path)
    names = [field.name for field in table.schema]
    if len(set(names)) < len(names):
        raise Damaged("two of its columns have the same name", "rename one of them")
    matrices = [m for place in range(len(names)) if (m := matrix_of(table, place)) is not None]
    labels, note = label_column(table.schema)
    counts = count_column(table.schema)
    unread = [
        {"name": field.name, "type": str(field.type)[:60], "is_text": is_text(field.type)}
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


def values(
    path: str, output: str, matrix: dict[str, Any], start: int, stop: int, rows: list[int] | None
) -> int | None:
    """Write rows of a matrix to the output file, or give their offset in the mapped file.

    `rows` selects rows of a Parquet file: ascending, each once.
    """
    table = open_table(path)
    with open(output, "wb") as out:
        if rows is None:
            return write_rows(table, matrix, range(start, stop), out)
        group = np.searchsorted(np.cumsum(table.groups), rows, side="right")
        for part in np.split(np.array(rows), np.flatnonzero(np.diff(group) > 1) + 1):
            write_rows(table, matrix, part, out)
    return None


def write_rows(table: BatchedTable, matrix: dict[str, Any], rows: Any, out: BinaryIO) -> int | None:
    """Write a range or an array of rows, or return the offset of a matrix in the mapped file."""
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
        place = offset_in(table, block)
        if place is not None and len(block) == table.rows:
            return place
        if not isinstance(rows, range):
            low, high = np.searchsorted(rows, (first, first + len(block)))
            block = block[rows[low:high] - first]
        out.write(np.ascontiguousarray(block, dtype=dtype).data)
        if stop < table.rows and row >= stop:
            break
    if row < stop or row > table.rows:
        raise Damaged(f"it holds {row:,} rows and says {table.rows:,}", "write it again")
    return None


def choose_groups(groups: tuple[int, ...], start: int, stop: int) -> tuple[range | None, int]:
    """Choose the row groups that hold rows of a range, and the first row of these groups."""
    ends = list(itertools.accumulate(groups))
    if not ends:
        return None, 0
    first, last = bisect.bisect_right(ends, start), bisect.bisect_left(ends, stop)
    return range(first, last + 1), ends[first] - groups[first]


# Files


def open_table(path: str) -> BatchedTable:
    import pyarrow

    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    with open(path, "rb") as file:
        head = file.read(6)
    if head.startswith(b"PAR1"):
        return open_parquet(path)
    return open_ipc(path, is_file=head == b"ARROW1")


def open_parquet(path: str) -> BatchedTable:
    from pyarrow import parquet

    # Streams pages from a map: a row group is not held in memory, whatever its size.
    file = parquet.ParquetFile(path, memory_map=True, pre_buffer=False, buffer_size=2**20)
    schema, about = file.schema_arrow, file.metadata
    groups = tuple(about.row_group(number).num_rows for number in range(about.num_row_groups))
    if sum(groups) != about.num_rows or min(groups, default=0) < 0:
        cause = f"its row groups hold {sum(groups):,} rows, it says {about.num_rows:,}"
        raise Damaged(cause, "write it again")

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
                raise Damaged(cause, "write it again")

    return BatchedTable(schema, about.num_rows, batches, groups=groups)


def open_ipc(path: str, *, is_file: bool) -> BatchedTable:
    import pyarrow

    whole = pyarrow.memory_map(path).read_buffer()
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
    return BatchedTable(reader.schema, rows, batches, whole if is_file else None)


def file_batches(part: Any, reader: Any) -> Iterator[Any]:
    """Yield the batches of an Arrow file; `part` reads some of the columns, `reader` all.

    pyarrow copies a part of the columns, but not a whole batch without compression: a single batch
    is read whole, so that it can be mapped, unless that takes too much memory.
    """
    if part.num_record_batches == 1:
        with contextlib.suppress(MemoryError):
            yield reader.get_batch(0)
            return
    yield from map(part.get_batch, range(part.num_record_batches))


# Columns


def float_name(kind: Any) -> str:
    """Return the numpy name of a floating-point type; empty for other types."""
    return FLOATS.get(str(kind), "")


def number_name(kind: Any) -> str:
    """Return the numpy name of a type of single numbers; empty for other types."""
    from pyarrow import types

    is_number = types.is_integer(kind) or types.is_floating(kind)
    return str(np.dtype(kind.to_pandas_dtype()).name) if is_number else ""


def storage(kind: Any) -> Any:
    """Return the storage type of an extension type, such as that of tensors."""
    return getattr(kind, "storage_type", kind)


def item_type(schema: Any, place: int) -> str:
    """Return the numpy name of the items of a column of lists; empty unless they are floats."""
    from pyarrow import types

    kind = storage(schema.field(place).type)
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return float_name(kind.value_type) if is_list else ""


def matrix_of(table: BatchedTable, place: int) -> dict[str, Any] | None:
    """Describe a column of vectors, or of numbers, without a width; None for other columns."""
    from pyarrow import types

    field, dtype = table.schema.field(place), item_type(table.schema, place)
    if not dtype:
        number = number_name(field.type)
        found = {"name": field.name, "place": place, "width": None, "dtype": number}
        return found if number else None
    kind = storage(field.type)
    if types.is_fixed_size_list(kind):
        width = kind.list_size
    else:
        first = next((b for b in table.batches([place], 1, None) if b.num_rows), None)
        width = 0 if first is None else first.column(0).value_lengths()[0].as_py() or 0
    return {"name": field.name, "place": place, "width": width, "dtype": dtype}


def label_column(schema: Any) -> tuple[int | None, str]:
    """Get the only column of strings, or the only one with a usual name; else None and a note."""
    texts = [place for place in range(len(schema)) if is_text(schema.field(place).type)]
    if len(texts) <= 1:
        return (texts[0] if texts else None), ""
    known = {*TOKEN_HEADINGS, _INDEX}
    named = [p for p in texts if schema.field(p).name.strip(_WHITE).lower() in known]
    if len(named) == 1:
        return named[0], ""
    return None, "several columns hold text; the rows are labeled by none of them (use --tokens)"


def is_text(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind))


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
        raise Damaged(f"row {place:,} has {what}", "leave that row out")


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
                "every row needs the same number of them",
            )
    flat = column.flatten()
    if flat.null_count:
        raise Damaged(f"a vector of the rows from {row:,} has a missing number", "leave it out")
    return flat.to_numpy(zero_copy_only=False).reshape(len(column), width)


def offset_in(table: BatchedTable, block: Any) -> int | None:
    """Return the offset of mapped numbers in the file; None if they are decoded."""
    if table.mapped is None or not block.flags.c_contiguous or not len(block):
        return None
    start = block.__array_interface__["data"][0] - table.mapped.address
    return start if 0 <= start <= table.mapped.size - block.nbytes else None

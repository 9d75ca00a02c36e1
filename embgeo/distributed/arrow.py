"""Both passes over a table of Arrow batches of another engine: Spark, Ray Data, dask.

The engine gives a task the batches of a part (a partition, a block), and merges the states that the
tasks return; docs/scale.md shows how.
A task reads the rows of its part into memory. States are pickled, as all data that these engines
send between their own processes; they are never read from files.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.options import Options
from embgeo.core.values import Note
from embgeo.distributed.passes import Part, PassState, PassTask, run_pass, sha256_of_rows
from embgeo.distributed.reader import analyze_remotely, join_parts, without_entries
from embgeo.io.bounded.guard import Damaged
from embgeo.io.convert.arrow_tables import is_text, item_type, list_values, numbers
from embgeo.io.labels.counts_file import LARGEST_COUNT
from embgeo.result.analysis import Analysis
from embgeo.stats.resources import Resources

#: Takes the record batches of a part; gives a batch with one row and a column ``state``, or none.
Task = Callable[[Iterable[Any]], Iterator[Any]]
#: Merges two states.
Merge = Callable[[bytes, bytes], bytes]
#: Applies a task to every part, and reduces the values of ``state`` to one with a merge.
Run = Callable[[Task, Merge], bytes]

#: Sections that name no row, for tables without row numbers and tokens.
WITHOUT_ORDER = ("spectrum", "cosine", "isotropy", "coordinates", "frequency")
#: A part of the table: the number of its first row, or `UNKNOWN`, and the SHA-256 of its rows.
Key = tuple[int, str]
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class ArrowColumns:
    """Names of the columns to read; empty for columns that the table does not have."""

    vector: str
    row: str = ""
    token: str = ""
    count: str = ""

    @property
    def named(self) -> list[str]:
        return [name for name in (self.vector, self.row, self.token, self.count) if name]


@dataclass
class CountedParts:
    """The state of the run before the first pass: the parts without their entries."""

    matrices: dict[Key, Matrix] = field(default_factory=dict)

    def merge(self, other: Self) -> None:
        """Add the parts of another task."""
        if twice := self.matrices.keys() & other.matrices.keys():
            first, _ = min(twice)
            which = "hold the same rows" if first == UNKNOWN else f"begin with row {first:,}"
            raise UnreadableFile(
                f"two parts of the table {which}",
                way_out=f"name the column with the numbers of the rows ({argument('row')}), each "
                "of which occurs once",
            )
        self.matrices |= other.matrices

    def place(self) -> dict[Key, int]:
        """Get the first row of each part; parts without row numbers are ordered by their hashes."""
        starts, end = {}, 0
        for key in sorted(self.matrices):
            first, _ = key
            starts[key] = end if first == UNKNOWN else first
            end = starts[key] + self.matrices[key].n
        return starts


@dataclass(frozen=True, slots=True)
class PartTask:
    """The function that the engine applies to every part of the table."""

    columns: ArrowColumns
    starts: Mapping[Key, int] = field(default_factory=dict)
    #: None if the parts are to be counted.
    task: PassTask | None = None
    resources: Resources = field(default_factory=lambda: Resources(threads=1))

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        try:
            first, matrix = read_part(batches, self.columns)
        except Damaged as error:
            raise UnreadableFile(error.cause, way_out=error.way_out) from None
        if matrix is not None:
            state = pickle.dumps(self.measure(first, matrix))
            yield pyarrow.record_batch([pyarrow.array([state], pyarrow.binary())], names=["state"])

    def measure(self, first: int, matrix: Matrix) -> CountedParts | PassState:
        key = (first, sha256_of_rows(matrix.data))
        if self.task is None:
            return CountedParts({key: without_entries(matrix)})
        if key not in self.starts:
            raise UnreadableFile(
                "the rows of a part differ from the pass before",
                way_out="save or cache the table, so that every pass sees the same parts",
            )
        return run_pass(self.task, matrix, self.starts[key], self.resources)


def read_part(batches: Iterable[Any], columns: ArrowColumns) -> tuple[int, Matrix | None]:
    """Read the first row and the rows of a part; None for an empty part."""
    blocks: list[Any] = []
    rows: list[Any] = []
    tokens: list[str] = []
    counts: list[Any] = []
    seen = 0
    for piece in (piece for batch in batches for piece in split_batch(batch) if piece.num_rows):
        check_columns(piece.schema, columns)
        chunk = piece.column(columns.vector)
        chunk = getattr(chunk, "storage", chunk)  # of the tensor type of Ray Data
        width = blocks[0].shape[1] if blocks else len(chunk[0]) if chunk[0].is_valid else 0
        blocks.append(list_values(chunk, width, seen))
        if columns.row:
            rows.append(numbers(piece.column(columns.row), seen))
        if columns.token:
            tokens += [text or "" for text in piece.column(columns.token).to_pylist()]
        if columns.count:
            counts.append(read_counts(piece.column(columns.count), seen))
        seen += len(chunk)
    if not blocks:
        return 0, None
    first = find_first(np.concatenate(rows)) if rows else UNKNOWN
    frequency = None
    if counts:
        frequency = Frequency("counts", np.concatenate(counts), f"the column {columns.count}")
    data = np.ascontiguousarray(np.concatenate(blocks))
    return first, Matrix(data, "table", tokens=tuple(tokens) or None, frequency=frequency)


def split_batch(batch: Any) -> list[Any]:
    """Return the record batches of a table, or the batch itself."""
    return batch.to_batches() if hasattr(batch, "to_batches") else [batch]


def read_counts(column: Any, row: int) -> FloatArray:
    """Read the counts of the rows from number `row` on."""
    counts = np.asarray(numbers(column, row), np.float64)
    if len(wrong := np.flatnonzero((counts < 0) | (counts > LARGEST_COUNT))):
        cause = f"row {row + int(wrong[0]):,} has a count below 0 or above 2^53"
        raise Damaged(cause, "leave that row out")
    return counts


def check_columns(schema: Any, columns: ArrowColumns) -> None:
    """Refuse a table without the columns, or with columns of another type."""
    from pyarrow import types

    for name in columns.named:
        if schema.names.count(name) != 1:
            held = ", ".join(schema.names[:10])
            raise Damaged(f"no single column {name!r} in the table ({held})", "name another")
    for name, kind, right in (
        (columns.vector, "lists of floating-point numbers", None),
        (columns.row, "whole numbers", types.is_integer),
        (columns.token, "text", is_text),
        (columns.count, "whole numbers", types.is_integer),
    ):
        place = schema.names.index(name) if name else None
        if place is None:
            continue
        fits = right(schema.field(place).type) if right else item_type(schema, place)
        if not fits:
            found = schema.field(place).type
            raise Damaged(f"column {name!r} holds {found}, not {kind}", "name another")


def find_first(rows: Any) -> int:
    """Find the number of the first row of a part; Damaged unless its rows are consecutive."""
    first = int(rows[0])
    if not 0 <= first <= LARGEST_COUNT or not np.array_equal(
        rows, np.arange(first, first + len(rows))
    ):
        raise Damaged(
            "the rows of a part are not numbered one after the other",
            "sort the table by the row number and cut it into ranges",
        )
    return first


def count_parts(
    run: Run, columns: ArrowColumns, total: int | None
) -> tuple[dict[Key, int], list[Part], Matrix]:
    """Count the first row of each part of the table, the parts, and the whole without entries."""
    counted: CountedParts = pickle.loads(run(PartTask(columns), merge_states))
    starts, matrices = counted.place(), counted.matrices
    rows = sum(matrix.n for matrix in matrices.values())
    if total not in (None, rows):
        cause = f"the parts hold {rows:,} rows, the table {total:,}"
        raise UnreadableFile(cause, way_out="run has to give the task to every part")
    whole = join_parts([(start, matrices[key]) for key, start in starts.items()])
    return starts, [Part(start, start + matrices[key].n) for key, start in starts.items()], whole


def merge_states(one: bytes, other: bytes) -> bytes:
    """Merge two states of one pass, in any order."""
    state = pickle.loads(one)
    state.merge(pickle.loads(other))
    return pickle.dumps(state)


def analyze_batches(
    run: Run,
    vector: str,
    *,
    row: str = "",
    token: str = "",
    count: str = "",
    total: int | None = None,
    sections: Sequence[str] | None = None,
    options: Options | None = None,
    reference: bool = True,
    command: str = "",
    resources: Resources | None = None,
) -> Analysis:
    """Measure a table of another engine.

    Parameters
    ----------
    run : callable
        ``run(task, merge)`` applies `task` to every part of the table and reduces the states of the
        tasks by `merge`, in any order. A task takes an iterable of record batches and gives an
        iterator of at most one batch, with the column ``state``. Called at least three
        times.
    vector : str
        Column of lists of floating-point numbers, all of one length.
    row : str
        Column of row numbers from 0, consecutive in every part. Without it, rows are numbered in
        the order of the hashes of their parts; parts have to be the same in all passes, and
        sections that name rows need tokens.
    token, count : str
        Columns of labels and counts.
    total : int, optional
        Number of rows as the engine counts them. Without it, parts that never reach a task go
        unnoticed.
    sections, options, reference, command
        As for :func:`embgeo.analyze`.
    resources : Resources, optional
        Resources of each task; by default one thread.

    Returns
    -------
    Analysis

    Raises
    ------
    EmbgeoError
        If a column is missing or of another type, parts are missing or differ between passes, or
        sections name rows of a table without row numbers and tokens.
    """
    columns = ArrowColumns(vector, row, token, count)
    if not (row or token):
        others = [one for one in sections or () if one not in WITHOUT_ORDER]
        if others:
            raise BadOption(
                f"{', '.join(others)}: needs names of rows, and the table has no row numbers or "
                "tokens",
                where=argument("sections"),
                way_out="name a column for row or token, or choose from "
                f"{', '.join(WITHOUT_ORDER)}",
            )
        sections = sections or WITHOUT_ORDER
    starts, parts, matrix = count_parts(run, columns, total)
    own = resources or Resources(threads=1)

    def run_on_table(task: PassTask, _advance: Callable[[int], None]) -> PassState:
        found: PassState = pickle.loads(run(PartTask(columns, starts, task, own), merge_states))
        return found

    options = (options or Options()).for_tokens(matrix.tokens)
    found = analyze_remotely(
        matrix,
        parts,
        run_on_table,
        sections=sections,
        options=options,
        reference=reference,
        command=command,
        resources=resources,
    )
    if row:
        return found
    text = "rows are numbered in the order of the hashes of the parts that hold them"
    return replace(found, notes=(*found.notes, Note("parts", text)))

"""Both passes over a table of Arrow batches of another engine: Spark, Ray Data, dask.

The engine gives a task the batches of a part (a partition, a block), and merges the states that the
tasks return::

    def run(task, merge):  # with Spark
        states = table.mapInArrow(task, "state binary").rdd.map(lambda row: bytes(row.state))
        return states.treeReduce(merge)


    analysis = analyze_batches(run, "vector", token="word")

A task reads the rows of its part into memory. States are pickled, as all data that these engines
send between their own processes; they are never read from files.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.values import Note
from embgeo.distributed.engine import analyze_through
from embgeo.distributed.part import StatePart, sha256_of_rows
from embgeo.distributed.rounds import SecondPassTask, first_round, second_round
from embgeo.distributed.states import FirstState, SecondState
from embgeo.io.formats.arrow_worker import TableRefused, is_text, item_type, list_values, numbers
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
RUN = "run has to give the task to every part, and to merge each state once"


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
class ArrowParts:
    """The state of a pass before the first round, which counts the rows of each part."""

    lengths: dict[Key, int] = field(default_factory=dict)

    def merge(self, other: Self) -> None:
        """Add the parts of another task."""
        if twice := self.lengths.keys() & other.lengths.keys():
            first, _ = min(twice)
            which = "hold the same rows" if first == UNKNOWN else f"begin with row {first:,}"
            raise UnreadableFile(
                f"two parts of the table {which}",
                way_out=f"name the column with the numbers of the rows ({argument('row')}), each "
                "of which occurs once",
            )
        self.lengths |= other.lengths

    def place(self) -> dict[Key, int]:
        """The first row of each part; parts without row numbers are ordered by their hashes."""
        starts, end = {}, 0
        for key in sorted(self.lengths):
            first, _ = key
            starts[key] = end if first == UNKNOWN else first
            end = starts[key] + self.lengths[key]
        return starts


@dataclass(frozen=True, slots=True)
class PartTask:
    """The function that the engine applies to every part of the table."""

    columns: ArrowColumns
    #: The first row of each part; None if the parts are to be counted.
    starts: Mapping[Key, int] | None = None
    #: Gives the state of a part.
    measure: Callable[[Matrix, StatePart], Any] | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        try:
            first, matrix = read_part(batches, self.columns)
        except TableRefused as error:
            cause, way_out = error.args
            raise UnreadableFile(cause, way_out=way_out) from None
        if matrix is not None:
            state = pickle.dumps(self.state(first, matrix))
            yield pyarrow.record_batch([pyarrow.array([state], pyarrow.binary())], names=["state"])

    def state(self, first: int, matrix: Matrix) -> Any:
        """The state of a part."""
        key = (first, sha256_of_rows(matrix.data))
        if self.starts is None or self.measure is None:
            return ArrowParts({key: matrix.n})
        if key not in self.starts:
            raise UnreadableFile(
                "the rows of a part differ from the pass before",
                way_out="save or cache the table, so that every pass sees the same parts",
            )
        start = self.starts[key]
        part = StatePart(matrix.name, "", False, start, start + matrix.n, start, None, key[1])
        return self.measure(matrix, part)


def read_part(batches: Iterable[Any], columns: ArrowColumns) -> tuple[int, Matrix | None]:
    """The first row and the rows of a part; None for an empty part."""
    blocks: list[Any] = []
    rows: list[Any] = []
    tokens: list[str] = []
    counts: list[Any] = []
    seen = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        check_columns(batch.schema, columns)
        begin = seen
        vectors = batch.column(columns.vector)
        for chunk in getattr(vectors, "chunks", [vectors]):
            if not len(chunk):
                continue
            chunk = getattr(chunk, "storage", chunk)  # of the tensor type of Ray Data
            width = blocks[0].shape[1] if blocks else len(chunk[0]) if chunk[0].is_valid else 0
            blocks.append(list_values(chunk, width, seen))
            seen += len(chunk)
        if columns.row:
            rows.append(numbers(batch.column(columns.row), begin))
        if columns.token:
            tokens += [text or "" for text in batch.column(columns.token).to_pylist()]
        if columns.count:
            counts.append(read_counts(batch.column(columns.count), begin))
    if not blocks:
        return 0, None
    first = find_first(np.concatenate(rows)) if rows else UNKNOWN
    frequency = None
    if counts:
        frequency = Frequency("counts", np.concatenate(counts), f"the column {columns.count}")
    data = np.ascontiguousarray(np.concatenate(blocks))
    return first, Matrix(data, "table", tokens=tuple(tokens) or None, frequency=frequency)


def read_counts(column: Any, row: int) -> FloatArray:
    """Counts of rows from number `row` on."""
    counts = np.asarray(numbers(column, row), np.float64)
    if len(wrong := np.flatnonzero((counts < 0) | (counts > LARGEST_COUNT))):
        cause = f"row {row + int(wrong[0]):,} has a count below 0 or above 2^53"
        raise TableRefused(cause, "leave that row out")
    return counts


def check_columns(schema: Any, columns: ArrowColumns) -> None:
    """Refuse a table without the columns, or with columns of another type."""
    from pyarrow import types

    for name in columns.named:
        if schema.names.count(name) != 1:
            held = ", ".join(schema.names[:10])
            raise TableRefused(f"no single column {name!r} in the table ({held})", "name another")
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
            raise TableRefused(f"column {name!r} holds {found}, not {kind}", "name another")


def find_first(rows: Any) -> int:
    """The number of the first row of a part; TableRefused unless its rows are consecutive."""
    first = int(rows[0])
    if not 0 <= first <= LARGEST_COUNT or not np.array_equal(
        rows, np.arange(first, first + len(rows))
    ):
        raise TableRefused(
            "the rows of a part are not numbered one after the other",
            "sort the table by the row number and cut it into ranges",
        )
    return first


@dataclass
class ArrowEngine:
    """An :class:`Engine` over a table of another engine."""

    run: Run
    columns: ArrowColumns
    resources: Resources
    total: int | None = None
    progress: Progress = field(default_factory=Progress)
    starts: Mapping[Key, int] = field(default_factory=dict)

    def first(
        self, sections: tuple[str, ...] | None, options: Options, reference: bool
    ) -> FirstState:
        parts: ArrowParts = pickle.loads(self.run(PartTask(self.columns), merge_states))
        rows = sum(parts.lengths.values())
        if self.total not in (None, rows):
            cause = f"the parts hold {rows:,} rows, the table {self.total:,}"
            raise UnreadableFile(cause, way_out=RUN)
        self.starts = parts.place()
        measure = partial(
            first_round,
            sections=sections,
            options=options,
            reference=reference,
            resources=self.resources,
        )
        found: FirstState = self._measure(measure)
        self.check_seen([part for part, _ in found.pieces])
        return found

    def second(self, task: SecondPassTask) -> SecondState:
        found: SecondState = self._measure(partial(second_round, task, resources=self.resources))
        self.check_seen(found.parts)
        return found

    def check_seen(self, parts: Sequence[StatePart]) -> None:
        """Refuse a pass that did not see each counted part once."""
        if sorted(part.start for part in parts) != sorted(self.starts.values()):
            raise UnreadableFile(
                f"{len(self.starts):,} parts were counted, a pass saw {len(parts):,}: some are "
                "missing or repeated",
                way_out=RUN,
            )

    def _measure(self, measure: Callable[[Matrix, StatePart], Any]) -> Any:
        task = PartTask(self.columns, self.starts, measure)
        return pickle.loads(self.run(task, merge_states))


def merge_states(one: bytes, other: bytes) -> bytes:
    """Merge two states of one round, in any order."""
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
        iterator of at most one batch, with the column ``state``. Called at least three times.
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
    engine = ArrowEngine(run, columns, resources or Resources(threads=1), total)
    found = analyze_through(
        engine,
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

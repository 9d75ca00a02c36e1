"""Measures a matrix whose rows lie elsewhere, by a function that runs passes over its parts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.errors import UnreadableFile
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.values import Note
from embgeo.core.version import VERSION
from embgeo.distributed.passes import Part, PassState, PassTask, StoredRows
from embgeo.measure.analyze import measure_rows
from embgeo.measure.passes import Passes, check_width
from embgeo.metrics.facts import NO_ROWS
from embgeo.result.analysis import Analysis
from embgeo.stats.block import Block
from embgeo.stats.reader import RowReader
from embgeo.stats.resources import Resources
from embgeo.stats.statistic import Statistic, merge_all

S = TypeVar("S", bound=Statistic)

#: Most bytes of rows that are gathered for one family.
MOST_GATHERED = 2 * 2**30


#: Runs a pass over all parts, or over those that hold needed rows, and merges their states; the
#: second argument is called with numbers of rows that were read.
RunPass = Callable[[PassTask, Callable[[int], None]], PassState]


class RemoteRows:
    """The entries of a matrix that lie elsewhere, indexed by rows like an array.

    Keeps the rows that it has fetched. ``fetch(rows)`` takes ascending row numbers; without it the
    entries cannot be read.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        fetch: Callable[[IntArray], StoredRows] | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.rows = StoredRows()
        self._fetch = fetch

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: IntArray | slice) -> npt.NDArray[Any]:
        if isinstance(index, slice):
            index = np.arange(*index.indices(len(self)), dtype=np.int64)
        rows = self.rows
        missing = np.setdiff1d(index, rows.index)
        if len(missing):
            if self._fetch is None:
                raise LookupError("these rows are elsewhere")
            self.rows = rows = rows.join(self._fetch(missing))
        if rows.entries is None:
            return np.zeros((0, self.shape[1]), dtype=self.dtype)
        return np.asarray(rows.entries[np.searchsorted(rows.index, index)])


def without_entries(
    matrix: Matrix, fetch: Callable[[IntArray], StoredRows] | None = None
) -> Matrix:
    """Return the matrix with entries that lie elsewhere."""
    data: Any = RemoteRows((matrix.n, matrix.d), matrix.data.dtype, fetch)
    output = None if matrix.output is None else without_entries(matrix.output)
    origin = replace(matrix.origin, stamps=())
    return replace(matrix, data=data, output=output, hidden=None, origin=origin)


class RemoteReader(RowReader):
    """Reads the rows of a matrix whose parts lie elsewhere.

    `parts`: the parts by their first rows, with hashes once a pass has read them.
    """

    is_local = False

    def __init__(
        self,
        matrix: Matrix,
        parts: Sequence[Part],
        run: RunPass,
        resources: Resources | None = None,
        progress: Progress | None = None,
        of_output: bool = False,
    ) -> None:
        super().__init__(without_entries(matrix, self.fetch), resources, progress)
        self.run = run
        self.parts = {part.start: part for part in parts}
        self.of_output = of_output

    def open_output(self, output: Matrix) -> "RemoteReader":
        parts = [replace(part, sha256="") for part in self.parts.values()]
        return RemoteReader(output, parts, self.run, self.resources, self.progress, True)

    def sift(self, statistics: Sequence[Statistic]) -> None:
        self.announce("first pass", self.matrix.n)
        found = self._run(statistics, sifts=True)
        self.census.merge(found.census)
        for rows in (found.census.zero, found.census.nonfinite):
            self.takes_part[rows] = False

    def fold(self, statistics: Sequence[Statistic], rows: IntArray | None = None) -> None:
        if rows is None:
            self._run(statistics)
        else:
            super().fold(statistics, rows)

    def sweep(self, make: Callable[[Any], S], rows: IntArray, what: str) -> Iterator[S]:
        """Yield like that of a :class:`RowReader`, in one pass for all blocks of the named rows."""
        step = self.plan.block_rows
        named = [rows[start : start + step] for start in range(0, len(rows), step)]
        found = [make(Block(index, self.take_stored(index))) for index in named]
        self.announce(what, self.matrix.n)
        self.fold(found)
        yield from found

    def fetch(self, rows: IntArray) -> StoredRows:
        self.announce("single rows", len(rows))
        found = self._run((), needed=rows).rows
        if not np.array_equal(found.index, rows):
            cause = "the parts returned other rows than the ones that were requested"
            raise UnreadableFile(cause, way_out="measure again")
        return found

    def _run(
        self, statistics: Sequence[Statistic], *, sifts: bool = False, needed: IntArray = NO_ROWS
    ) -> PassState:
        """Run a pass, check that its parts are those of earlier ones, and merge its statistics."""
        left_out = np.flatnonzero(~self.takes_part)
        blanks = [statistic.blank() for statistic in statistics]
        task = PassTask(blanks, sifts, left_out, needed, self.matrix.rounded, self.of_output)
        found = self.run(task, self.progress.advance)
        if task.reads_all and sorted(part.start for part in found.parts) != sorted(self.parts):
            raise UnreadableFile(
                f"{len(self.parts):,} parts were counted, a pass saw {len(found.parts):,}: some "
                "are missing or repeated",
                way_out="run has to give the task to every part, and to merge each state once",
            )
        for part in found.parts:
            check_part(part, self.parts[part.start])
            self.parts[part.start] = part
        merge_all(statistics, found.statistics)
        return found


def check_part(part: Part, known: Part) -> None:
    """Refuse a part whose rows are others than in an earlier pass, or of another version."""
    if part.embgeo != VERSION:
        cause = f"measured by embgeo {part.embgeo}, this is {VERSION}"
        raise UnreadableFile(cause, where=part.file, way_out="install one version everywhere")
    if (known.stop, known.sha256 or part.sha256) != (part.stop, part.sha256):
        raise UnreadableFile(
            f"its rows {part.start:,} to {part.stop - 1:,} are not those of the pass before",
            where=part.file,
            way_out="measure again, and change no file meanwhile",
        )


def analyze_remotely(
    matrix: Matrix,
    parts: Sequence[Part],
    run: RunPass,
    *,
    sections: Sequence[str] | None = None,
    options: Options | None = None,
    reference: bool = True,
    command: str = "",
    progress: Progress | None = None,
    resources: Resources | None = None,
) -> Analysis:
    """Measure a matrix whose parts lie elsewhere, like :func:`embgeo.measure.analyze.analyze`.

    The entries of `matrix` are not read.
    """
    check_width(matrix, resources)
    options = options or Options()
    matrix = replace(matrix, rounded=options.precision == "float32")
    reader = RemoteReader(matrix, parts, run, resources, progress)
    notes: list[Note] = []

    def prepare(passes: Passes) -> None:
        notes.extend(gather_rows(passes))

    found = measure_rows(reader, options, sections, reference, command, prepare)
    described = [
        {
            "file": part.file,
            "tensor": part.tensor,
            "rows": [part.start, part.stop],
            "sha256": part.sha256,
        }
        for _, part in sorted(reader.parts.items())
    ]
    provenance = {**found.provenance, "parts": described}
    return replace(found, notes=(*found.notes, *notes), provenance=provenance)


def gather_rows(measurement: Passes) -> list[Note]:
    """Fetch the rows that the families read one by one, at once.

    Families that read too many are left out, with a note.
    """
    matrix = measurement.reader.matrix
    most = MOST_GATHERED // (matrix.d * matrix.data.dtype.itemsize)
    kept, read, notes = [], [NO_ROWS], []
    for family in measurement.families:
        rows = family.rows_read(measurement)
        if len(rows) <= most:
            kept.append(family)
            read.append(rows)
        else:
            name = family.compute.__module__.rpartition(".")[2]
            cause = f"which reads {len(rows):,} single rows, too many to gather from parts"
            notes.append(Note("parts", f"skipped {family.section} ({name}): {cause}"))
    measurement.families = kept
    matrix.data[np.unique(np.concatenate(read))]
    return notes


#: At most this many notes of parts are shown; there may be thousands of parts.
SHOWN_NOTES = 8

#: The first row of a part in the whole, and the part without its entries.
Piece = tuple[int, Matrix]


def join_parts(parts: Sequence[Piece]) -> Matrix:
    """Return the whole matrix without its entries, with the tokens and counts of its parts.

    Raises UnreadableFile if parts are of different kinds, or rows are missing or in two of them.
    """
    pieces = sorted(parts, key=lambda piece: piece[0])
    matrices = [matrix for _, matrix in pieces]
    for matrix in matrices:
        check_alike(matrix, matrices[0])
    first, n = matrices[0], check_cover(pieces)
    paths = list(dict.fromkeys(map(name_of, matrices)))
    path, stored, notes = paths[0], first.origin.stored_shape, first.origin.notes
    if len(paths) > 1:
        path = f"{path} and {len(paths) - 1:,} more"
        stored = (first.d, n) if first.origin.transposed else (n, first.d)
        found = list(dict.fromkeys(note for one in matrices for note in one.origin.notes))
        more = f"{len(found) - SHOWN_NOTES:,} more notes of single files"
        notes = (*found[:SHOWN_NOTES], *([more] if len(found) > SHOWN_NOTES else []))
    counts = [one.frequency for one in matrices if one.frequency is not None]
    frequency = None
    if counts:
        every = np.concatenate([one.counts for one in counts])
        frequency = Frequency("counts", every, counts[0].source)
    tokens = None
    if first.tokens is not None:
        tokens = tuple(token for one in matrices for token in one.tokens or ())
    stand_in: Any = RemoteRows((n, first.d), first.data.dtype)
    origin = replace(first.origin, path=path, stored_shape=stored, notes=notes)
    return replace(
        first,
        data=stand_in,
        name=path if len(paths) > 1 else first.name,
        tokens=tokens,
        frequency=frequency,
        masked={},
        special=(),
        vocabulary_size=None,
        origin=origin,
    )


def name_of(matrix: Matrix) -> str:
    return matrix.origin.path or matrix.name


def check_alike(matrix: Matrix, first: Matrix) -> None:
    """Refuse a part of another width, type or order of columns, or without tokens."""
    columns = zip(matrix.origin.columns, first.origin.columns, strict=False)
    labels = ["no tokens" if one.tokens is None else "tokens" for one in (matrix, first)]
    for what, here, there in (
        ("columns", f"{matrix.d:,}", f"{first.d:,}"),
        ("type of the entries", matrix.dtype, first.dtype),
        ("labels", *labels),
        *(("name of a column", *names) for names in columns),
    ):
        if here != there:
            cause = f"the parts differ in {what}: {here} here, {there} in {name_of(first)}"
            where = name_of(matrix)
            raise UnreadableFile(cause, where=where, way_out="measure parts of one kind")


def check_cover(pieces: Sequence[Piece]) -> int:
    """Check that consecutive parts cover all rows once; return the number of rows."""
    end = 0
    for start, matrix in pieces:
        if start != end:
            rows = f"rows {end:,} to {start - 1:,} are missing"
            cause = rows if start > end else f"row {start:,} is in two parts"
            way_out = "number the rows of all parts from 0, each once"
            raise UnreadableFile(cause, where=name_of(matrix), way_out=way_out)
        end += matrix.n
    return end

"""Measures a matrix whose rows lie elsewhere, by a function that runs passes over its parts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.errors import UnreadableFile
from embgeo.core.matrix import Matrix
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
    ) -> None:
        super().__init__(without_entries(matrix, self.fetch), resources, progress)
        self.run = run
        self.parts = {part.start: part for part in parts}

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
        """Fetch rows as they are stored."""
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
        task = PassTask(blanks, sifts, left_out, needed, self.matrix.rounded)
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

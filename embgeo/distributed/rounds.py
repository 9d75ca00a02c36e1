"""The first and the second pass over a part of a matrix, each of which gives a state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import EmbgeoError, UnreadableFile, argument
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.distributed import files
from embgeo.distributed.part import (
    MeasuringSetup,
    StatePart,
    cut,
    differ_as_wholes,
    fingerprint,
    sha256_of_rows,
    without_entries,
)
from embgeo.distributed.plans import MergePlan
from embgeo.distributed.rows import SeenNorms, StoredRows, read_norms
from embgeo.distributed.states import FirstState, SecondState
from embgeo.measure.passes import choose_families, distinct, open_rows
from embgeo.metrics import Facts
from embgeo.metrics.family import request_first
from embgeo.stats import Census, Norms
from embgeo.stats.block import Block
from embgeo.stats.resources import Resources, shared_fold
from embgeo.stats.statistic import Statistic, fold


def describe_part(
    matrix: Matrix,
    start: int = 0,
    stop: int | None = None,
    *,
    first_row: int = 0,
    total: int | None = None,
) -> StatePart:
    """Rows `start` to `stop` of a matrix as a part of a whole; equal for an empty part.

    `first_row` is the number of this matrix's row 0 in the whole, `total` the number of rows of the
    whole, if known.
    """
    stop = matrix.n if stop is None else stop
    is_cut = total == matrix.n and stop - start < matrix.n
    origin = matrix.origin
    return StatePart(
        file=origin.path or matrix.name,
        tensor=origin.tensor,
        transposed=origin.transposed,
        start=first_row + start,
        stop=first_row + stop,
        first_row=first_row,
        total=total,
        sha256=sha256_of_rows(matrix.data[start:stop]),
        whole=fingerprint(matrix.data) if is_cut else "",
    )


def first_round(
    matrix: Matrix,
    part: StatePart,
    *,
    sections: Sequence[str] | None = None,
    options: Options | None = None,
    reference: bool = True,
    progress: Progress | None = None,
    resources: Resources | None = None,
) -> FirstState:
    """The state of the first pass over a part.

    The matrix holds the rows of the part, and may hold others. Sections, options and reference, as
    for :func:`embgeo.analyze`, have to be the same for all parts.
    """
    setup = MeasuringSetup.of(matrix, sections, options or Options(), reference)
    statistics = first_statistics(setup)
    if part.start == part.stop:
        return FirstState(setup, [(part, None)], Census(), statistics)
    piece = cut(matrix, part.start - part.first_row, part.stop - part.first_row)
    reader = open_rows(piece, setup.options, resources, progress, part.start)
    # Squares that overflow are reported when the parts are merged.
    reader.sift(statistics)
    return FirstState(
        setup, [(part, without_entries(piece))], reader.census.renumber(part.start), statistics
    )


def first_statistics(setup: MeasuringSetup) -> list[Statistic]:
    """Blank statistics of the first pass, the same for all parts.

    Families that may turn out to be absent when tokens and counts are known are included.
    """
    facts = Facts(1, setup.d, setup.options)
    families = choose_families(setup.sections)
    return distinct([Norms(), *(s for f in families for s in request_first(f, facts))])


@dataclass(frozen=True, slots=True)
class SecondPassTask:
    """The content of a plan that a part needs, without the sums of the first pass."""

    #: Identity of the plan.
    plan: str
    setup: MeasuringSetup
    #: Parts of the first round.
    parts: Sequence[StatePart]
    #: Blank statistics.
    statistics: Sequence[Statistic]
    #: Rows of the whole to leave out of statistics, and rows to gather.
    left_out: IntArray
    needed: IntArray
    #: Columns of the output projection of an untied model.
    output_width: int | None
    #: The file of the plan, if there is one: it holds the norms of all rows.
    stored: files.Stored | None = None


def make_task(plan: MergePlan) -> SecondPassTask:
    """What the parts have to know of a plan that is not in a file."""
    names = ("setup", "parts", "statistics", "left_out", "needed")
    known = {name: getattr(plan, name) for name in names}
    return SecondPassTask("", output_width=find_output_width(plan.matrix), **known)


def read_task(stored: files.Stored) -> SecondPassTask:
    """The task in a plan's file."""
    found = stored.unpack(
        setup=MeasuringSetup,
        parts=[StatePart],
        statistics=[Statistic],
        left_out=np.ndarray,
        needed=np.ndarray,
        matrix=Matrix,
    )
    width = find_output_width(found.pop("matrix"))
    return SecondPassTask(stored.identity, output_width=width, stored=stored, **found)


def find_output_width(matrix: Matrix) -> int | None:
    return None if matrix.output is None else matrix.output.d


def check_same_rows(task: SecondPassTask, matrix: Matrix, part: StatePart) -> None:
    """Refuse a part whose type or rows differ from those of the first round."""
    if (matrix.d, matrix.dtype) != (task.setup.d, task.setup.dtype):
        cause = (
            f"{matrix.d:,} columns of {matrix.dtype}, the plan is about {task.setup.d:,} of "
            f"{task.setup.dtype}"
        )
        raise refuse_rows(part, cause)
    for known in task.parts:
        alike = (known.start, known.stop) == (part.start, part.stop)
        if alike and known.sha256 and part.sha256 and known.sha256 != part.sha256:
            raise refuse_rows(part, f"its {part.rows} are not those of the first round")
        if differ_as_wholes(known, part):
            cause = f"its rows are not those of the first round, which were cut out of {known.file}"
            raise refuse_rows(part, cause)


def check_norms(seen: SeenNorms | None, block: Block, part: StatePart) -> None:
    """Refuse rows whose norms differ from those of the first round."""
    row = None if seen is None else seen.other_row(block)
    if row is not None:
        cause = f"its rows are not those of the first round: row {row:,} has another norm"
        raise refuse_rows(part, cause)


def refuse_rows(part: StatePart, cause: str) -> UnreadableFile:
    way_out = "measure the parts that the plan was made of, or all of them again"
    return UnreadableFile(cause, where=part.file, way_out=way_out)


def second_round(
    task: SecondPassTask,
    matrix: Matrix,
    part: StatePart,
    *,
    progress: Progress | None = None,
    resources: Resources | None = None,
) -> SecondState:
    """The state of the second pass over a part, with the requested rows that it holds.

    The parts may be cut differently than in the first round.
    """
    check_same_rows(task, matrix, part)
    statistics = [statistic.blank() for statistic in task.statistics]
    if part.start == part.stop:
        return SecondState(task.plan, [part], statistics)
    piece = cut(matrix, part.start - part.first_row, part.stop - part.first_row)
    piece = replace(piece, masked={}, output=find_output_rows(task, piece, part), hidden=None)
    reader = open_rows(piece, task.setup.options, resources, progress, part.start)
    reader.takes_part[within(task.left_out, part)] = False
    seen = None if task.stored is None else read_norms(task.stored, part.start, part.stop)

    def blocks(start: int, stop: int) -> Iterator[Block]:
        for block in reader.blocks(None, start, stop):
            check_norms(seen, block, part)
            yield block

    if statistics:
        reader.announce("second pass", piece.n)
        shared_fold(reader.plan, piece.n, blocks, statistics, reader.progress.advance)
        fold(reader.read_left_out(), [s for s in statistics if s.of_left_out])
    own = within(task.needed, part)
    if not statistics:
        check_norms(seen, Block(own + part.start, piece.stored(own)), part)
    rows = (
        StoredRows(own + part.start, np.ascontiguousarray(piece.data[own]))
        if len(own)
        else StoredRows()
    )
    return SecondState(task.plan, [part], statistics, rows)


def within(rows: IntArray, part: StatePart) -> IntArray:
    """The rows that a part holds, counted from its first row."""
    low, high = np.searchsorted(rows, (part.start, part.stop))
    return np.asarray(rows[low:high] - part.start)


def find_output_rows(task: SecondPassTask, piece: Matrix, part: StatePart) -> Matrix | None:
    """The part's rows of the output projection, if the whole has one."""
    if task.output_width is None:
        return None
    # If both matrices are equal in these rows, the part looks tied.
    found = piece if piece.output is None else piece.output
    if found.d != task.output_width:
        raise EmbgeoError(
            f"no output projection of {task.output_width:,} columns, as the other parts have",
            where=part.file,
            way_out=f"name it with {argument('output')}",
        )
    return replace(found, masked={}, tokens=None, frequency=None)

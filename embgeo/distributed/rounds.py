"""Both passes over a part of a matrix: each gives a state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import SimpleNamespace

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
from embgeo.metrics.family import ask
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
    """Rows `start` to `stop` of a matrix as a part of a larger one.

    Parameters
    ----------
    start, stop : int
        Rows of this matrix; equal for an empty part.
    first_row : int
        Number of this matrix's row 0 in the whole.
    total : int, optional
        Rows of the whole, where they are known.
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
    """What the first pass sees in a part.

    Parameters
    ----------
    matrix : Matrix
        Holds the part's rows (and may hold others); `part.first_row` says where it begins.
    part : StatePart
        From :func:`describe_part`.
    sections, options, reference, progress, resources
        As for :func:`embgeo.analyze`; the first three have to be the same for all parts.
    """
    setup = MeasuringSetup.of(matrix, sections, options or Options(), reference)
    statistics = first_statistics(setup)
    if part.start == part.stop:
        return FirstState(setup, [(part, None)], Census(), statistics)
    piece = cut(matrix, part.start - part.first_row, part.stop - part.first_row)
    reader = open_rows(piece, setup.options, resources, progress)

    def blocks(start: int, stop: int) -> Iterator[Block]:
        for block in reader.sifted_blocks(start, stop):
            yield block.renumber(part.start)

    reader.announce("first pass", piece.n)
    # Squares that overflow are reported when the parts are merged.
    with np.errstate(over="ignore", invalid="ignore"):
        shared_fold(reader.plan, piece.n, blocks, statistics, reader.progress.advance)
    return FirstState(
        setup, [(part, without_entries(piece))], reader.census.renumber(part.start), statistics
    )


def first_statistics(setup: MeasuringSetup) -> list[Statistic]:
    """The statistics of the first pass, without rows: the same for all parts.

    Families that may turn out to be absent once tokens and counts are known have theirs taken.
    """
    source = SimpleNamespace(facts=Facts(1, setup.d), options=setup.options)
    wanted = (s for f in choose_families(setup.sections) for s in ask(f, "first", source))
    return distinct(chain([Norms()], wanted))


@dataclass(frozen=True, slots=True)
class SecondPassTask:
    """What a part has to know of a plan; the first pass's sums stay where they are.

    Attributes
    ----------
    plan : str
        Identity of the plan.
    setup : MeasuringSetup
    parts : tuple of StatePart
        Of the first round.
    statistics : tuple of Statistic
        To be taken, without rows.
    left_out, wanted : int array
        Rows of the whole that no statistic sees, and those to be gathered.
    output_width : int or None
        Columns of the output projection, where the model is untied.
    stored : Stored or None
        The plan's file, if it was read from one: it holds the norms of all rows.
    """

    plan: str
    setup: MeasuringSetup
    parts: tuple[StatePart, ...]
    statistics: tuple[Statistic, ...]
    left_out: IntArray
    wanted: IntArray
    output_width: int | None
    stored: files.Stored | None = None


def make_task(plan: MergePlan) -> SecondPassTask:
    """What the parts have to know of a plan that is not in a file."""
    output = plan.matrix.output
    return SecondPassTask(
        "",
        plan.setup,
        tuple(plan.parts),
        tuple(plan.statistics),
        plan.left_out,
        plan.wanted,
        None if output is None else output.d,
    )


def read_task(stored: files.Stored) -> SecondPassTask:
    """The task in a plan's file."""
    found = stored.unpack(
        setup=MeasuringSetup,
        parts=[StatePart],
        statistics=[Statistic],
        left_out=np.ndarray,
        wanted=np.ndarray,
        matrix=Matrix,
    )
    output = found["matrix"].output
    return SecondPassTask(
        stored.identity,
        found["setup"],
        tuple(found["parts"]),
        tuple(found["statistics"]),
        found["left_out"],
        found["wanted"],
        None if output is None else output.d,
        stored,
    )


def check_same_rows(task: SecondPassTask, matrix: Matrix, part: StatePart) -> None:
    """That a part is the kind of rows that the first round saw, of a file that it saw."""
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
    """That rows of a part have the lengths that the first round saw."""
    row = None if seen is None else seen.other_row(block)
    if row is not None:
        cause = f"its rows are not those of the first round: row {row:,} has another length"
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
    """What the second pass sees in a part, and the wanted rows that it holds.

    Parameters
    ----------
    matrix, part
        As for :func:`first_round`; the parts may be cut otherwise than in the first round.
    """
    check_same_rows(task, matrix, part)
    statistics = [statistic.blank() for statistic in task.statistics]
    if part.start == part.stop:
        return SecondState(task.plan, [part], statistics)
    piece = cut(matrix, part.start - part.first_row, part.stop - part.first_row)
    piece = replace(piece, masked={}, output=find_output_rows(task, piece, part), hidden=None)
    reader = open_rows(piece, task.setup.options, resources, progress)
    reader.takes_part[within(task.left_out, part)] = False
    seen = None if task.stored is None else read_norms(task.stored, part.start, part.stop)

    def blocks(start: int, stop: int) -> Iterator[Block]:
        for block in reader.blocks(None, start, stop):
            own = block.renumber(part.start)
            check_norms(seen, own, part)
            yield own

    if statistics:
        reader.announce("second pass", piece.n)
        shared_fold(reader.plan, piece.n, blocks, statistics, reader.progress.advance)
        left_out = (block.renumber(part.start) for block in reader.read_left_out())
        fold(left_out, [statistic for statistic in statistics if statistic.of_left_out])
    own = within(task.wanted, part)
    if not statistics:
        check_norms(seen, Block(own + part.start, piece.stored(own)), part)
    rows = (
        StoredRows(own + part.start, np.ascontiguousarray(piece.data[own]))
        if len(own)
        else StoredRows()
    )
    return SecondState(task.plan, [part], statistics, rows)


def within(rows: IntArray, part: StatePart) -> IntArray:
    """Those of the rows that a part holds, counted from its first one."""
    low, high = np.searchsorted(rows, (part.start, part.stop))
    return np.asarray(rows[low:high] - part.start)


def find_output_rows(task: SecondPassTask, piece: Matrix, part: StatePart) -> Matrix | None:
    """The part's rows of the output projection, where the whole has one."""
    if task.output_width is None:
        return None
    # Where both matrices are equal in these rows, the part was taken for a tied one.
    found = piece if piece.output is None else piece.output
    if found.d != task.output_width:
        raise EmbgeoError(
            f"no output projection of {task.output_width:,} columns, as the other parts have",
            where=part.file,
            way_out=f"name it with {argument('output')}",
        )
    return replace(found, masked={}, tokens=None, frequency=None)

"""The second pass over a part of a matrix, as a plan wants it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.core.matrix import Matrix
from embgeo.core.progress import Progress
from embgeo.distributed import files
from embgeo.distributed.gathered import Rows
from embgeo.distributed.part import Part, Setup, cut, differ_as_wholes
from embgeo.distributed.plans import Plan
from embgeo.distributed.seen_norms import SeenNorms, of_rows
from embgeo.distributed.states import SecondState, longest
from embgeo.io.bounded.guard import Damaged, reading
from embgeo.measure.passes import open_rows
from embgeo.stats.block import Block
from embgeo.stats.resources import Resources, shared_fold
from embgeo.stats.statistic import Statistic


@dataclass(frozen=True, slots=True)
class Task:
    """What a part has to know of a plan; the first pass's sums stay where they are.

    Attributes
    ----------
    plan : str
        Identity of the plan.
    setup : Setup
    parts : tuple of Part
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
    setup: Setup
    parts: tuple[Part, ...]
    statistics: tuple[Statistic, ...]
    left_out: IntArray
    wanted: IntArray
    output_width: int | None
    stored: files.Stored | None = None


def task_of(plan: Plan, identity: str = "") -> Task:
    output = plan.matrix.output
    return Task(
        identity,
        plan.setup,
        tuple(plan.parts),
        tuple(plan.statistics),
        plan.left_out,
        plan.wanted,
        None if output is None else output.d,
    )


def read_task(stored: files.Stored) -> Task:
    """The task in a plan's file.

    Raises
    ------
    UnreadableFile
    """
    names = ("setup", "parts", "statistics", "left_out", "wanted", "matrix")
    found = stored.unpack(*names, longest=longest(stored))
    with reading(stored.path, "plan"):
        matrix = found["matrix"]
        if not isinstance(found["setup"], Setup) or not isinstance(matrix, Matrix):
            raise Damaged("damaged, or not written by embgeo")
        if not all(isinstance(s, Statistic) for s in found["statistics"]):
            raise Damaged("damaged, or not written by embgeo")
        return Task(
            stored.identity,
            found["setup"],
            tuple(found["parts"]),
            tuple(found["statistics"]),
            found["left_out"],
            found["wanted"],
            None if matrix.output is None else matrix.output.d,
            stored,
        )


def check_same_rows(task: Task, matrix: Matrix, part: Part) -> None:
    """That a part is the kind of rows that the first round saw, of a file that it saw.

    Raises
    ------
    UnreadableFile
    """
    if (matrix.d, matrix.dtype) != (task.setup.d, task.setup.dtype):
        cause = (
            f"{matrix.d:,} columns of {matrix.dtype}, the plan is about {task.setup.d:,} of "
            f"{task.setup.dtype}"
        )
        raise other_rows(part, cause)
    for known in task.parts:
        alike = (known.start, known.stop) == (part.start, part.stop)
        if alike and known.sha256 and part.sha256 and known.sha256 != part.sha256:
            raise other_rows(part, f"its {part.rows} are not those of the first round")
        if differ_as_wholes(known, part):
            cause = f"its rows are not those of the first round, which were cut out of {known.file}"
            raise other_rows(part, cause)


def check_norms(seen: SeenNorms | None, block: Block, part: Part) -> None:
    """That rows of a part have the lengths that the first round saw.

    Raises
    ------
    UnreadableFile
    """
    row = None if seen is None else seen.other_row(block)
    if row is not None:
        cause = f"its rows are not those of the first round: row {row:,} has another length"
        raise other_rows(part, cause)


def other_rows(part: Part, cause: str) -> UnreadableFile:
    way_out = "measure the parts that the plan was made of, or all of them again"
    return UnreadableFile(cause, where=part.file, way_out=way_out)


def second_round(
    task: Task,
    matrix: Matrix,
    part: Part,
    *,
    progress: Progress | None = None,
    resources: Resources | None = None,
) -> SecondState:
    """What the second pass sees in a part, and the wanted rows that it holds.

    Parameters
    ----------
    task : Task
    matrix, part
        As for :func:`first_round`; the parts may be cut otherwise than in the first round.
    progress : Progress, optional
    resources : Resources, optional

    Raises
    ------
    UnreadableFile
        If these are other rows than those of the first round.
    """
    check_same_rows(task, matrix, part)
    statistics = [statistic.blank() for statistic in task.statistics]
    if part.start == part.stop:
        return SecondState(task.plan, [part], statistics)
    piece = cut(matrix, part.start - part.first_row, part.stop - part.first_row)
    piece = replace(piece, masked={}, output=output_rows(task, piece, part), hidden=None)
    reader = open_rows(piece, task.setup.options, resources, progress)
    reader.takes_part[within(task.left_out, part)] = False
    seen = None if task.stored is None else of_rows(task.stored, part.start, part.stop)

    def blocks(start: int, stop: int) -> Iterator[Block]:
        for block in reader.blocks(None, start, stop):
            own = Block(block.index + part.start, block.stored, block.paired)
            check_norms(seen, own, part)
            yield own

    if statistics:
        reader.announce("second pass", piece.n)
        shared_fold(reader.plan, piece.n, blocks, statistics, reader.progress.advance)
    own = within(task.wanted, part)
    if not statistics:
        check_norms(seen, Block(own + part.start, piece.stored(own)), part)
    rows = Rows(own + part.start, np.ascontiguousarray(piece.data[own])) if len(own) else Rows()
    return SecondState(task.plan, [part], statistics, rows)


def within(rows: IntArray, part: Part) -> IntArray:
    """Those of the rows that a part holds, counted from its first one."""
    low, high = np.searchsorted(rows, (part.start, part.stop))
    return np.asarray(rows[low:high] - part.start)


def output_rows(task: Task, piece: Matrix, part: Part) -> Matrix | None:
    """The part's rows of the output projection, where the whole has one."""
    if task.output_width is None:
        return None
    # Where both matrices are equal in these rows, the part was taken for a tied one.
    found = piece if piece.output is None else piece.output
    if found.d != task.output_width:
        raise EmbgeoError(
            f"no output projection of {task.output_width:,} columns, as the other parts have",
            where=part.file,
            way_out="name it with --output",
        )
    return replace(found, masked={}, tokens=None, frequency=None)

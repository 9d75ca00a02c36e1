"""The first pass over a part of a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.distributed.part import (
    Elsewhere,
    Part,
    Setup,
    cut,
    fingerprint,
    sha256_of_rows,
    without_entries,
)
from embgeo.distributed.states import FirstState
from embgeo.measure.analysis import REFERENCE_SECTIONS, chosen_families
from embgeo.measure.passes import Progress, Run, distinct
from embgeo.measure.resources import Resources, shared_fold
from embgeo.stats import Census, Norms
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic


def part_of(
    matrix: Matrix,
    start: int = 0,
    stop: int | None = None,
    *,
    first_row: int = 0,
    total: int | None = None,
    digest: bool = True,
) -> Part:
    """Rows `start` to `stop` of a matrix as a part of a larger one.

    Parameters
    ----------
    matrix : Matrix
    start, stop : int
        Rows of this matrix; equal for an empty part.
    first_row : int
        Number of this matrix's row 0 in the whole.
    total : int, optional
        Rows of the whole, where they are known.
    digest : bool
        Whether to compute the SHA-256 of the rows, and the fingerprint of the matrix where they
        are cut out of it.
    """
    stop = matrix.n if stop is None else stop
    is_cut = total == matrix.n and stop - start < matrix.n
    origin = matrix.origin
    return Part(
        file=origin.path or matrix.name,
        tensor=origin.tensor,
        transposed=origin.transposed,
        start=first_row + start,
        stop=first_row + stop,
        first_row=first_row,
        total=total,
        sha256=sha256_of_rows(matrix.data[start:stop]) if digest else "",
        whole=fingerprint(matrix.data) if digest and is_cut else "",
    )


def first_round(
    matrix: Matrix,
    part: Part,
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
    part : Part
        From :func:`part_of`.
    sections, options, reference, progress, resources
        As for :func:`embgeo.analyze`; the first three have to be the same for all parts.
    """
    setup = Setup.of(matrix, sections, options or Options(), reference)
    statistics = first_statistics(setup)
    if part.start == part.stop:
        return FirstState(setup, [(part, None)], Census(), statistics)
    piece = cut(matrix, part.start - part.first_row, part.stop - part.first_row)
    run = Run(piece, setup.options, progress or Progress(), resources)

    def blocks(start: int, stop: int) -> Iterator[Block]:
        for block in run.sifted_blocks(start, stop):
            yield Block(block.index + part.start, block.stored)

    run.progress.start("first pass", piece.n)
    # Squares that overflow are told when the parts are merged.
    with np.errstate(over="ignore", invalid="ignore"):
        shared_fold(run.plan, piece.n, blocks, statistics, run.progress.advance)
    return FirstState(
        setup, [(part, without_entries(piece))], run.census.moved(part.start), statistics
    )


def first_statistics(setup: Setup) -> list[Statistic]:
    """The statistics of the first pass, without rows: the same for all parts.

    Families that may turn out to be absent once tokens and counts are known have theirs taken.
    """
    stand_in: Any = Elsewhere((1, setup.d), setup.dtype)
    context = Run(Matrix(stand_in), setup.options, Progress()).context
    families = chosen_families(setup.sections)
    wanted = [s for family in families for s in family.first(context)]
    sections = REFERENCE_SECTIONS if setup.sections is None else setup.sections
    if setup.reference and set(sections) & set(REFERENCE_SECTIONS):
        wanted.append(Norms())
    return distinct(iter(wanted))

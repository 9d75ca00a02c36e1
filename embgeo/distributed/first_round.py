"""The first pass over a part of a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import numpy as np

from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.distributed.part import (
    Part,
    Setup,
    cut,
    fingerprint,
    sha256_of_rows,
    without_entries,
)
from embgeo.distributed.states import FirstState
from embgeo.measure.analyze import REFERENCE_SECTIONS
from embgeo.measure.passes import choose_families, distinct, open_rows
from embgeo.metrics import Facts
from embgeo.metrics.family import ask
from embgeo.stats import Census, Norms
from embgeo.stats.block import Block
from embgeo.stats.resources import Resources, shared_fold
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
    reader = open_rows(piece, setup.options, resources, progress)

    def blocks(start: int, stop: int) -> Iterator[Block]:
        for block in reader.sifted_blocks(start, stop):
            yield Block(block.index + part.start, block.stored)

    reader.announce("first pass", piece.n)
    # Squares that overflow are told when the parts are merged.
    with np.errstate(over="ignore", invalid="ignore"):
        shared_fold(reader.plan, piece.n, blocks, statistics, reader.progress.advance)
    return FirstState(
        setup, [(part, without_entries(piece))], reader.census.moved(part.start), statistics
    )


def first_statistics(setup: Setup) -> list[Statistic]:
    """The statistics of the first pass, without rows: the same for all parts.

    Families that may turn out to be absent once tokens and counts are known have theirs taken.
    """
    source = SimpleNamespace(facts=Facts(1, setup.d), options=setup.options)
    wanted = [s for f in choose_families(setup.sections) for s in ask(f, "first", source)]
    sections = REFERENCE_SECTIONS if setup.sections is None else setup.sections
    if setup.reference and set(sections) & set(REFERENCE_SECTIONS):
        wanted.append(Norms())
    return distinct(iter(wanted))

"""The whole matrix, without its entries, from what is known of its parts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.core.errors import UnreadableFile
from embgeo.core.matrix import Frequency, Matrix
from embgeo.distributed.reader import RemoteRows

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

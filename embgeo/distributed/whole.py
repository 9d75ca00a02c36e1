"""The whole matrix, without its entries, from what is known of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.core.matrix import Frequency, Matrix
from embgeo.distributed.reader import RemoteRows

#: At most this many notes of single parts are shown; there may be thousands of parts.
SHOWN_NOTES = 8

#: The first row of a part in the whole, and the part without its entries.
Piece = tuple[int, Matrix]


def join_parts(parts: Sequence[Piece]) -> Matrix:
    """The whole matrix without its entries and output projection.

    Raises
    ------
    EmbgeoError
        If parts are of different kinds, or rows are missing or in two of them.
    """
    pieces = sorted(parts, key=lambda piece: piece[0])
    check_alike(pieces)
    n = check_cover(pieces)
    first = pieces[0][1]
    paths = list(dict.fromkeys(name_of(matrix) for _, matrix in pieces))
    stored = first.origin.stored_shape
    path = paths[0]
    if len(paths) > 1:
        path = f"{path} and {len(paths) - 1:,} more"
        stored = (first.d, n) if first.origin.transposed else (n, first.d)
    masked: dict[str, list[Any]] = {}
    for start, matrix in pieces:
        for reason, own in matrix.masked.items():
            masked.setdefault(reason, []).append(own + start)
    stand_in: Any = RemoteRows((n, first.d), first.data.dtype)
    return replace(
        first,
        data=stand_in,
        name=path if len(paths) > 1 else first.name,
        tokens=join_tokens(pieces),
        frequency=join_counts([matrix.frequency for _, matrix in pieces]),
        masked={reason: np.concatenate(rows) for reason, rows in masked.items()},
        special=tuple(
            replace(one, row=one.row + start)
            for start, matrix in pieces
            for one in matrix.special
            if one.row is not None
        ),
        vocabulary_size=None,
        output=None,
        origin=replace(
            first.origin, path=path, stored_shape=stored, notes=tuple(join_notes(pieces))
        ),
    )


def name_of(matrix: Matrix) -> str:
    return matrix.origin.path or matrix.name


def check_alike(pieces: Sequence[Piece]) -> None:
    """Refuse parts of different width, type or columns."""
    _, first = pieces[0]
    for _, matrix in pieces:
        for what, here, there in (
            ("columns", f"{matrix.d:,}", f"{first.d:,}"),
            ("type of the entries", matrix.dtype, first.dtype),
            *(
                ("name of a column", *names)
                for names in zip(matrix.origin.columns, first.origin.columns, strict=False)
            ),
        ):
            if here != there:
                raise UnreadableFile(
                    f"the parts differ in {what}: {here} here, {there} in {name_of(first)}",
                    where=name_of(matrix),
                    way_out="measure parts of one kind",
                )


def check_cover(pieces: Sequence[Piece]) -> int:
    """Check that consecutive parts cover all rows once; return the number of rows."""
    end = 0
    for start, matrix in pieces:
        if start > end:
            way_out = "number the rows from 0, one after the other"
            raise EmbgeoError(f"rows {end:,} to {start - 1:,} are missing", way_out=way_out)
        if start < end:
            raise EmbgeoError(
                f"row {start:,} is in two parts",
                where=name_of(matrix),
                way_out="give each part once, with the numbers of its rows in the whole",
            )
        end += matrix.n
    return end


def join_tokens(pieces: Sequence[Piece]) -> tuple[str, ...] | None:
    """The tokens of all parts, None if they have none; an error if only some have."""
    with_tokens = [matrix.tokens is not None for _, matrix in pieces]
    if any(with_tokens) and not all(with_tokens):
        raise EmbgeoError(
            f"its rows have no tokens, those of {name_of(pieces[with_tokens.index(True)][1])} have",
            where=name_of(pieces[with_tokens.index(False)][1]),
            way_out="give tokens to all parts, or to none",
        )
    if not all(with_tokens):
        return None
    return tuple(token for _, matrix in pieces for token in matrix.tokens or ())


def join_counts(found: Sequence[Frequency | None]) -> Frequency | None:
    """The counts of all parts; None unless all have some."""
    known = [frequency for frequency in found if frequency is not None]
    if len(known) < len(found):
        return None
    counts = np.concatenate([frequency.counts for frequency in known])
    return Frequency("counts", counts, known[0].source)


def join_notes(pieces: Sequence[Piece]) -> Iterator[str]:
    """Notes that all parts share, then some of those of single parts."""
    said = [matrix.origin.notes for _, matrix in pieces]
    shared = [note for note in said[0] if all(note in notes for notes in said)]
    yield from shared
    own = [
        f"rows {start:,} to {start + matrix.n - 1:,}: {note}"
        for start, matrix in pieces
        for note in matrix.origin.notes
        if note not in shared
    ]
    yield from own[:SHOWN_NOTES]
    if len(own) > SHOWN_NOTES:
        yield f"{len(own) - SHOWN_NOTES:,} more notes of single parts"

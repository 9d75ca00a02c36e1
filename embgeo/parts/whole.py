"""The whole matrix from what its parts know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.errors import EmbgeoError
from embgeo.matrix import Frequency, Matrix
from embgeo.parts.part import Elsewhere, Part, Setup

#: Notes of single parts that are shown; there may be thousands of parts.
SHOWN_NOTES = 8

Piece = tuple[Part, Matrix | None]


def in_order(parts: Sequence[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: (part.start, part.stop))


def check_cover(parts: Sequence[Part], total: int | None = None) -> int:
    """That the parts are all rows of one matrix, each once; the number of rows.

    Parameters
    ----------
    parts : sequence of Part
    total : int, optional
        Rows that there are to be.

    Raises
    ------
    EmbgeoError
    """
    totals = {part.total for part in parts if part.total is not None}
    if total is not None:
        totals.add(total)
    if len(totals) > 1:
        counts = " and ".join(f"{n:,}" for n in sorted(totals)[:2])
        raise EmbgeoError(
            f"the parts come from matrices of {counts} rows",
            way_out="merge parts of one matrix only",
        )
    reached = 0
    before: Part | None = None
    for part in in_order(parts):
        if part.start == part.stop:
            continue
        if part.start < reached and before is not None:
            raise EmbgeoError(
                f"its {part.rows} are partly in another part too, {before.rows} of {before.file}",
                where=part.file,
                way_out="give each part once, and number rows of several files with --first-row",
            )
        if part.start > reached:
            raise missing(reached, part.start)
        reached, before = part.stop, part
    whole = totals.pop() if totals else reached
    if reached < whole:
        raise missing(reached, whole)
    if reached > whole:
        raise EmbgeoError(f"the parts hold {reached:,} rows, the matrix has {whole:,}")
    if not whole:
        raise EmbgeoError("all parts are empty", way_out="merge parts with rows")
    return whole


def missing(start: int, stop: int) -> EmbgeoError:
    return EmbgeoError(
        f"rows {start:,} to {stop - 1:,} are in no part",
        way_out="give the states of all parts; measure those that are missing",
    )


def joined(pieces: Sequence[Piece], setup: Setup) -> Matrix:
    """All that is known of the whole matrix but its entries.

    Parameters
    ----------
    pieces : sequence of (Part, Matrix or None)
        They cover all rows.
    setup : Setup

    Raises
    ------
    EmbgeoError
        If the parts contradict each other.
    """
    ordered = sorted(pieces, key=lambda piece: (piece[0].start, piece[0].stop))
    known = [(part, matrix) for part, matrix in ordered if matrix is not None]
    n = known[-1][0].stop
    part, first = known[0]
    files = list(dict.fromkeys(p.file for p, _ in known))
    stored = first.origin.stored_shape
    if len(files) > 1:
        stored = (setup.d, n) if part.transposed else (n, setup.d)
    path = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} more"
    output = output_of([matrix for _, matrix in known], n)
    # Where matrices differ, single parts of them may still be equal.
    untied = output is not None
    notes = [m.origin.notes for _, m in known]
    said = [[note for note in own if not (untied and note.startswith("tied"))] for own in notes]
    stand_in: Any = Elsewhere((n, setup.d), setup.dtype)
    return replace(
        first,
        data=stand_in,
        name=first.name if len(files) == 1 else path,
        tokens=joined_tokens(known),
        frequency=joined_frequency(known, n),
        masked=joined_masked(known),
        output=output,
        origin=replace(
            first.origin,
            path=path,
            stored_shape=stored,
            sha256="",
            rows=None,
            notes=tuple(joined_notes([part for part, _ in known], said)),
        ),
    )


def all_or_none(known: Sequence[tuple[Part, Matrix]], have: Sequence[bool], what: str) -> bool:
    """Whether all parts have something; an error if some have and some have not."""
    if any(have) and not all(have):
        with_it, without = known[have.index(True)][0], known[have.index(False)][0]
        raise EmbgeoError(
            f"{without.rows} have no {what}, {with_it.rows} have",
            where=without.file,
            way_out=f"give {what} to all parts, or to none",
        )
    return all(have)


def joined_tokens(known: Sequence[tuple[Part, Matrix]]) -> tuple[str, ...] | None:
    if not all_or_none(known, [m.tokens is not None for _, m in known], "tokens"):
        return None
    return tuple(token for _, matrix in known for token in matrix.tokens or ())


def joined_frequency(known: Sequence[tuple[Part, Matrix]], n: int) -> Frequency | None:
    if not all_or_none(known, [m.frequency is not None for _, m in known], "counts"):
        return None
    found = [matrix.frequency for _, matrix in known if matrix.frequency is not None]
    if len({f.kind for f in found}) > 1:
        raise EmbgeoError("some parts have counts, others say that rows are sorted by frequency")
    sources = list(dict.fromkeys(f.source for f in found))
    source = sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1:,} more"
    if found[0].kind == "rank":  # a part does not know how many rows follow it
        return Frequency("rank", np.arange(n, 0, -1, dtype=np.float64), source)
    return Frequency("counts", np.concatenate([f.counts for f in found]), source)


def joined_masked(known: Sequence[tuple[Part, Matrix]]) -> dict[str, npt.NDArray[np.int64]]:
    """Rows to leave out by reason, numbered as in the whole."""
    rows: dict[str, list[npt.NDArray[np.int64]]] = {}
    for part, matrix in known:
        for reason, own in matrix.masked.items():
            rows.setdefault(reason, []).append(own + part.start)
    return {reason: np.concatenate(parts) for reason, parts in rows.items()}


def output_of(matrices: Sequence[Matrix], n: int) -> Matrix | None:
    """The output projection, where a part has one."""
    outputs = [matrix.output for matrix in matrices if matrix.output is not None]
    widths = {output.d for output in outputs}
    if len(widths) > 1:
        raise EmbgeoError(f"output projections of {' and '.join(map(str, sorted(widths)))} columns")
    if not outputs:
        return None
    stand_in: Any = Elsewhere((n, outputs[0].d), outputs[0].dtype)
    return replace(outputs[0], data=stand_in)


def joined_notes(parts: Sequence[Part], said: Sequence[Sequence[str]]) -> Iterator[str]:
    """Notes that all parts share, then those of single parts, of which there may be many."""
    shared = [note for note in said[0] if all(note in notes for notes in said)]
    yield from shared
    own = [
        f"{part.rows}: {note}"
        for part, notes in zip(parts, said, strict=True)
        for note in notes
        if note not in shared
    ]
    yield from own[:SHOWN_NOTES]
    if len(own) > SHOWN_NOTES:
        yield f"{len(own) - SHOWN_NOTES:,} more notes of single parts"

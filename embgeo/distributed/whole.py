"""The whole matrix from its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import EmbgeoError, argument
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.special import SpecialToken
from embgeo.distributed.part import Elsewhere, MeasuringSetup, StatePart, span

#: At most this many notes of single parts are shown; there may be thousands of parts.
SHOWN_NOTES = 8
ONE_MATRIX = "merge parts of one matrix only"

Piece = tuple[StatePart, Matrix | None]


def sort_parts(parts: Sequence[StatePart]) -> list[StatePart]:
    return sorted(parts, key=lambda part: (part.start, part.stop))


def check_cover(parts: Sequence[StatePart], total: int | None = None) -> int:
    """Check that the parts cover the rows of one matrix once; return the number of rows.

    `total` is the number of rows of the whole, if known.
    """
    ordered = sort_parts(parts)
    check_one_whole(ordered, total)
    totals = [total, *(part.total for part in ordered)]
    reached = 0
    before: StatePart | None = None
    for part in ordered:
        if part.start == part.stop:
            continue
        if part.start < reached and before is not None:
            raise twice(part, before)
        if part.start > reached:
            raise missing(reached, part.start)
        reached, before = part.stop, part
    whole = next((n for n in totals if n is not None), reached)
    if reached < whole:
        raise missing(reached, whole)
    if before is None:
        raise EmbgeoError("all parts are empty", way_out="merge parts with rows")
    if reached > whole:
        raise EmbgeoError(
            f"its {before.rows} reach beyond the matrix, which has {whole:,} rows",
            where=before.named,
            way_out=ONE_MATRIX,
        )
    return whole


def check_one_whole(parts: Sequence[StatePart], total: int | None) -> None:
    """Refuse parts that were cut out of different matrices."""
    if pair := unlike(parts, lambda part: part.total):
        odd, usual = pair
        cause = f"cut out of {odd.total:,} rows, {usual.named} out of {usual.total:,}"
        raise EmbgeoError(cause, where=odd.named, way_out=ONE_MATRIX)
    sized = next((part for part in parts if part.total is not None), None)
    if total is not None and sized is not None and sized.total != total:
        cause = f"cut out of {sized.total:,} rows, the plan is about {total:,}"
        raise EmbgeoError(cause, where=sized.named, way_out=ONE_MATRIX)
    if pair := unlike(parts, lambda part: part.whole):
        odd, usual = pair
        cause = (
            f"cut out of another matrix ({odd.file}) than {usual.named} ({usual.file}), of the "
            "same shape"
        )
        raise EmbgeoError(cause, where=odd.named, way_out=ONE_MATRIX)


def unlike(
    parts: Sequence[StatePart], trait: Callable[[StatePart], Hashable]
) -> tuple[StatePart, StatePart] | None:
    """A part whose trait differs from the most common one, and a part with that; None if none."""
    known = [part for part in parts if trait(part)]
    most = Counter(map(trait, known)).most_common(1)
    odd = [part for part in known if trait(part) != most[0][0]]
    usual = [part for part in known if trait(part) == most[0][0]]
    return (odd[0], usual[0]) if odd else None


def twice(part: StatePart, before: StatePart) -> EmbgeoError:
    """The error for rows that are also in the part before, of the same state or another."""
    if part.state and part.state == before.state:
        return EmbgeoError("given twice", where=part.state, way_out="give each state once")
    rows = span(part.start, min(part.stop, before.stop))
    return EmbgeoError(
        f"its {rows} are also in {before.state or 'another part'}",
        where=part.named,
        way_out="give each part once, and number rows of several files with "
        f"{argument('first_row')}",
    )


def missing(start: int, stop: int) -> EmbgeoError:
    return EmbgeoError(
        f"{span(start, stop)} are missing", way_out="measure them, and give the states of all parts"
    )


def join_pieces(pieces: Sequence[Piece], setup: MeasuringSetup) -> Matrix:
    """The whole matrix without its entries, from parts that cover all rows."""
    ordered = sorted(pieces, key=lambda piece: (piece[0].start, piece[0].stop))
    known = [(part, matrix) for part, matrix in ordered if matrix is not None]
    n = known[-1][0].stop
    part, first = known[0]
    files = list(dict.fromkeys(p.file for p, _ in known))
    stored = first.origin.stored_shape
    if len(files) > 1:
        stored = (setup.d, n) if part.transposed else (n, setup.d)
    path = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} more"
    output = join_output(known, n)
    # Input and output matrix may be equal in single parts and still differ.
    tied_by = next((m.origin.tied_by for _, m in known if m.origin.tied), "")
    said = [m.origin.notes for _, m in known]
    stand_in: Any = Elsewhere((n, setup.d), setup.dtype)
    return replace(
        first,
        data=stand_in,
        name=first.name if len(files) == 1 else path,
        tokens=join_tokens(known),
        frequency=join_frequency(known, n),
        masked=join_masked(known),
        special=join_special(known),
        vocabulary_size=first.vocabulary_size if part.total is not None else None,
        output=output,
        origin=replace(
            first.origin,
            path=path,
            stored_shape=stored,
            sha256="",
            rows=None,
            tied_by="" if output is not None else tied_by,
            notes=tuple(join_notes([part for part, _ in known], said)),
        ),
    )


def all_or_none(known: Sequence[tuple[StatePart, Matrix]], have: Sequence[bool], what: str) -> bool:
    """Whether all parts have something; an error if only some have."""
    if any(have) and not all(have):
        with_it, without = known[have.index(True)][0], known[have.index(False)][0]
        raise EmbgeoError(
            f"its {without.rows} have no {what}, those of {with_it.named} have",
            where=without.named,
            way_out=f"give {what} to all parts, or to none",
        )
    return all(have)


def join_tokens(known: Sequence[tuple[StatePart, Matrix]]) -> tuple[str, ...] | None:
    if not all_or_none(known, [m.tokens is not None for _, m in known], "tokens"):
        return None
    return tuple(token for _, matrix in known for token in matrix.tokens or ())


def join_frequency(known: Sequence[tuple[StatePart, Matrix]], n: int) -> Frequency | None:
    if not all_or_none(known, [m.frequency is not None for _, m in known], "counts"):
        return None
    found = [matrix.frequency for _, matrix in known if matrix.frequency is not None]
    kinds = [f.kind for f in found]
    if len(set(kinds)) > 1:
        counted, ranked = (known[kinds.index(kind)][0] for kind in ("counts", "rank"))
        raise EmbgeoError(
            f"its {counted.rows} have counts, those of {ranked.named} are sorted by frequency",
            where=counted.named,
            way_out=f"give counts to all parts, or {argument('rank_order')} to all",
        )
    sources = list(dict.fromkeys(f.source for f in found))
    source = sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1:,} more"
    if found[0].kind == "rank":  # parts do not know the ranks in the whole
        return Frequency("rank", np.arange(n, 0, -1, dtype=np.float64), source)
    return Frequency("counts", np.concatenate([f.counts for f in found]), source)


def join_masked(known: Sequence[tuple[StatePart, Matrix]]) -> dict[str, IntArray]:
    """Masked rows by reason, with numbers of the whole."""
    rows: dict[str, list[IntArray]] = {}
    for part, matrix in known:
        for reason, own in matrix.masked.items():
            rows.setdefault(reason, []).append(own + part.start)
    return {reason: np.concatenate(parts) for reason, parts in rows.items()}


def join_special(known: Sequence[tuple[StatePart, Matrix]]) -> tuple[SpecialToken, ...]:
    """Special tokens of all parts, with row numbers of the whole."""
    return tuple(
        replace(one, row=one.row + part.start)
        for part, matrix in known
        for one in matrix.special
        if one.row is not None
    )


def join_output(known: Sequence[tuple[StatePart, Matrix]], n: int) -> Matrix | None:
    """The output projection, if any part has one."""
    having = [(part, matrix.output) for part, matrix in known if matrix.output is not None]
    for part, output in having:
        first, usual = having[0]
        if output.d != usual.d:
            raise EmbgeoError(
                f"an output projection of {output.d:,} columns, that of {first.named} has "
                f"{usual.d:,}",
                where=part.named,
                way_out=ONE_MATRIX,
            )
    outputs = [output for _, output in having]
    if not outputs:
        return None
    stand_in: Any = Elsewhere((n, outputs[0].d), outputs[0].dtype)
    return replace(outputs[0], data=stand_in)


def join_notes(parts: Sequence[StatePart], said: Sequence[Sequence[str]]) -> Iterator[str]:
    """Notes that all parts share, then some of those of single parts."""
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

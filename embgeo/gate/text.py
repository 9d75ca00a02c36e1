"""Names of files, tensors and tokens are anybody's text: how they are made harmless."""

from __future__ import annotations

from collections.abc import Sequence

from embgeo.gate.check import Measured

#: Digits of a number in the files for other programs: what two machines agree on.
DIGITS = 10


def visible(text: str) -> str:
    """Text in one line, without control characters, marks of direction and lone surrogates."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def round_digits(value: float, digits: int = DIGITS) -> float | int:
    """`value` with this many significant digits; whole numbers are written as such."""
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def labels(matrices: Sequence[Measured]) -> list[str]:
    """A name for each matrix: its tensor's, with the file's where that is not enough."""
    tensors = [matrix.tensor or "W" for matrix in matrices]
    if len(set(tensors)) == len(tensors):
        return tensors
    both = [f"{m.file} {tensor}" for m, tensor in zip(matrices, tensors, strict=True)]
    if len(set(both)) == len(both):
        return both
    return [f"{label} {number}" for number, label in enumerate(both, 1)]


def shape(matrix: Measured) -> str:
    p = matrix.provenance
    return f"{p['n']:,} × {p['d']:,}" if {"n", "d"} <= set(p) else ""

"""Numbers and labels in the outputs of a gate."""

from __future__ import annotations

from collections.abc import Sequence

from embgeo.rules.check import Measured

#: Digits that two machines agree on.
DIGITS = 10


def round_digits(value: float, digits: int = DIGITS) -> float | int:
    """`value` with this many significant digits; an int if it is whole."""
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def labels(matrices: Sequence[Measured]) -> list[str]:
    """A distinct name for each matrix: its tensor, with the file and a number if need be."""
    tensors = [matrix.tensor or "W" for matrix in matrices]
    if len(set(tensors)) == len(tensors):
        return tensors
    both = [f"{m.file} {tensor}" for m, tensor in zip(matrices, tensors, strict=True)]
    if len(set(both)) == len(both):
        return both
    return [f"{label} {number}" for number, label in enumerate(both, 1)]

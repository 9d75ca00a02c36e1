"""Members with the same matrix, byte by byte."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embgeo.comparison.pairs import ComparisonInput

#: Rows that are compared at once, and rows whose bytes distinguish most matrices.
BLOCK_ROWS = 4096
FIRST_ROWS = 16


def find_same(inputs: Sequence[ComparisonInput]) -> tuple[int | None, ...]:
    """For each input, the place of the first one with the same matrix; None if that is itself."""
    first_places: dict[object, list[int]] = {}
    found: list[int | None] = []
    for place, one in enumerate(inputs):
        alike = first_places.setdefault(describe(one), [])
        same = next((i for i in alike if is_same(inputs[i], one)), None)
        if same is None:
            alike.append(place)
        found.append(same)
    return tuple(found)


def describe(one: ComparisonInput) -> object:
    """A cheap key that two inputs share if they hold the same matrix."""
    if one.matrix is None:
        p = one.member.analysis.provenance
        return tuple(str(p.get(key)) for key in ("sha256", "tensor", "row_range", "n", "d"))
    data = one.matrix.data
    return data.shape, str(data.dtype), np.ascontiguousarray(data[:FIRST_ROWS]).tobytes()


def is_same(one: ComparisonInput, other: ComparisonInput) -> bool:
    """Whether two inputs of one description hold the same bytes."""
    if one.matrix is None or other.matrix is None:
        return bool(one.member.analysis.provenance.get("sha256"))
    first, second = one.matrix.data, other.matrix.data
    return first is second or all(
        np.ascontiguousarray(first[at : at + BLOCK_ROWS]).tobytes()
        == np.ascontiguousarray(second[at : at + BLOCK_ROWS]).tobytes()
        for at in range(0, len(first), BLOCK_ROWS)
    )

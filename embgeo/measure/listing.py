"""Reduce the influences of rows to the rows that a result lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from embgeo.core.values import Influence, Value
from embgeo.metrics import Facts


def cut_influences(values: Iterable[Value], facts: Facts) -> Iterator[Value]:
    """Yield the values; influences keep the listed rows only, a sample that suffices for errors."""
    for value in values:
        if not isinstance(value, Influence) or facts.listed is None:
            yield value
            continue
        rows = np.arange(facts.m) if value.rows is None else value.rows
        _, at, places = np.intersect1d(rows, facts.listed, assume_unique=True, return_indices=True)
        noise = None if value.noise is None else value.noise[at]
        yield Influence(value.quantity, value.values[at], places, noise)

"""What stays of the influences of rows where a result lists only some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from embgeo.core.values import Influence, Value
from embgeo.metrics import Facts


def cut_influences(values: Iterable[Value], facts: Facts) -> Iterator[Value]:
    """The values, each influence with the listed rows alone: a sample is enough for differences."""
    for value in values:
        if not isinstance(value, Influence) or facts.listed is None:
            yield value
            continue
        rows = np.arange(facts.m) if value.rows is None else value.rows
        _, at, places = np.intersect1d(rows, facts.listed, assume_unique=True, return_indices=True)
        noise = None if value.noise is None else value.noise[at]
        yield Influence(value.quantity, value.values[at], places, noise)

"""Two matrices compared as ``embgeo diff`` does it, for the tests of its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.comparison.compare import Input, compare
from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.pair import Pair
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options as Measured
from embgeo.core.values import Scalar
from embgeo.measure.analyze import analyze


def enter_pair(
    data, name="W", tokens=None, sections=("tokens",), seed=0, step=None, **more
) -> Input:
    """A matrix as a member of a comparison."""
    matrix = data if isinstance(data, Matrix) else Matrix(np.asarray(data), tokens=tokens)
    analysis = analyze(
        matrix, sections=sections, options=Measured(seed=seed, **more), reference=False
    )
    return Member(name, f"{name}.npy", analysis, step=step), matrix


def comparison(*inputs, track="", **options) -> Comparison:
    named = [
        one if isinstance(one, tuple) else enter_pair(one, f"W{place}")
        for place, one in enumerate(inputs)
    ]
    return compare(named, steps_source=track, **options)


def pair_of(X, Y, **options) -> Pair:
    return comparison(X, Y, **options).pairs[0]


def number(pair: Pair, name: str) -> float:
    scalar = pair[f"compare.{name}"]
    assert isinstance(scalar, Scalar)
    assert scalar.value is not None, scalar.undefined
    return scalar.value


def numbers(pair: Pair) -> dict[str, float | None]:
    return {s.name.removeprefix("compare."): s.value for s in pair.scalars}


def in_small_blocks(patch: pytest.MonkeyPatch, rows: int) -> None:
    """From now on a block has so many rows."""
    patch.setattr("embgeo.stats.resources.MOST_ROWS", rows)
    patch.setattr("embgeo.stats.resources.LEAST_ROWS", 1)

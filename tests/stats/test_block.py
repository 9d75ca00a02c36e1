"""Blocks end with the pass: what a block computes once is never kept by the block itself."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from embgeo.measure.analyze import analyze
from embgeo.stats.block import Block
from embgeo.stats.resources import Resources


def test_a_split_is_kept_and_its_block_is_not() -> None:
    rows = np.array([[1.0, 0.0], [3.0, 0.0]])
    for norm, sizes in ((4.0, (2, None)), (3.0, (2, None)), (2.0, (1, 1)), (0.5, (None, 2))):
        block = Block(np.arange(2), rows)
        parts = block.split(norm)
        assert tuple(part and len(part.index) for part in parts) == sizes
        assert all(one is other for one, other in zip(parts, block.split(norm), strict=True))
        watched = weakref.ref(block)
        gc.disable()
        try:
            del block, parts
            assert watched() is None
        finally:
            gc.enable()


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("length", [1.0, 7.0])  # norms below and above 16
def test_few_blocks_live_at_one_time(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, length: float
) -> None:
    """Of 40 blocks, one is worked on at a time."""
    living: weakref.WeakSet[Block] = weakref.WeakSet()
    counts, made = [], Block.__init__

    def count(self: Block, *given: Any, **named: Any) -> None:
        made(self, *given, **named)
        living.add(self)
        counts.append(len(living))

    monkeypatch.setattr(Block, "__init__", count)
    monkeypatch.setattr("embgeo.stats.resources.MOST_ROWS", 50)
    monkeypatch.setattr("embgeo.stats.resources.LEAST_ROWS", 50)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, 16)) * length
    gc.disable()
    try:
        analyze(
            Matrix(rows.astype(dtype)),
            sections=["cosine", "isotropy", "spectrum"],
            resources=Resources(threads=1),
        )
    finally:
        gc.enable()
    assert len(counts) > 80
    assert max(counts) <= 6

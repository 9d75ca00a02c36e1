"""The bootstrap over blocks of the text, next to its closed form and a slow twin."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embgeo.training.study.samples import (
    MOST_BLOCKS,
    TextLosses,
    bootstrap_samples,
    merge_blocks,
)


def bootstrap(
    before: dict[int, TextLosses], after: dict[int, TextLosses]
) -> tuple[float, float] | None:
    return bootstrap_samples(before, after, "test.perplexity")


def losses(seed: int, blocks: int = 60, shift: float = 0.0) -> TextLosses:
    generator = np.random.default_rng(seed)
    tokens = np.random.default_rng(99).integers(50, 90, blocks)
    sums = tokens * (4.0 + shift + 0.3 * generator.standard_normal(blocks))
    return TextLosses("test", tuple(sums.tolist()), tuple(tokens.tolist()))


def test_blocks_hold_every_window_once_in_the_order_of_the_text() -> None:
    windows = [(float(i), 1 + i % 3) for i in range(1_000)] + [(0.0, 0)]
    found = merge_blocks("valid", windows)
    assert len(found.losses) == MOST_BLOCKS
    assert found.losses[:2] == (0.0 + 1 + 2 + 3 + 4, 5.0 + 6 + 7 + 8 + 9)
    assert sum(found.losses) == sum(loss for loss, _ in windows)
    assert sum(found.tokens) == sum(n for _, n in windows)
    few = merge_blocks("test", [(2.0, 1), (0.0, 0), (3.0, 4)])
    assert (few.losses, few.tokens) == ((2.0, 3.0), (1, 4))


def test_the_interval_is_that_of_a_slow_bootstrap() -> None:
    before, after = {0: losses(1), 1: losses(2)}, {0: losses(3), 1: losses(4)}
    found = bootstrap(before, after)
    assert found is not None
    generator, tokens = np.random.default_rng(5), np.array(before[0].tokens)
    slow = []
    for _ in range(2_000):
        chosen = generator.integers(0, len(tokens), len(tokens))
        ratios = [
            (np.array(after[s].losses)[chosen].sum() - np.array(before[s].losses)[chosen].sum())
            / tokens[chosen].sum()
            for s in (0, 1)
        ]
        slow.append(np.mean(ratios))
    np.testing.assert_allclose(found, np.quantile(slow, [0.025, 0.975]), atol=0.01)


def test_a_shift_of_every_block_has_an_interval_of_no_width() -> None:
    before = {0: losses(1), 3: losses(2)}
    after = {
        0: TextLosses(
            "test",
            tuple(x + 0.1 * n for x, n in zip(losses(1).losses, losses(1).tokens, strict=True)),
            losses(1).tokens,
        ),
        7: losses(9),
    }
    found = bootstrap(before, after)
    assert found == pytest.approx((0.1, 0.1))


def test_what_cannot_be_paired_has_no_interval() -> None:
    assert bootstrap({}, {0: losses(1)}) is None
    assert bootstrap({0: losses(1)}, {1: losses(1)}) is None
    assert bootstrap({0: losses(1, 59)}, {0: losses(1)}) is None
    few = losses(1, TextLosses.LEAST_UNITS - 1)
    assert bootstrap({0: few}, {0: few}) is None
    enough = bootstrap({0: losses(1)}, {0: losses(1, shift=1.0)})
    assert enough is not None
    assert all(math.isfinite(end) for end in enough)

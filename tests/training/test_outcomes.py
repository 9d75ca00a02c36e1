"""Bootstraps over units of an evaluation, next to slow twins, and scores next to libraries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from embgeo.core.errors import UnreadableFile
from embgeo.training.study.outcomes import (
    LEAST_PAIRS,
    LEAST_UNITS,
    MOST_BLOCKS,
    OUTCOMES,
    Outcomes,
    bootstrap,
    merge_blocks,
    score_classes,
)


def losses(seed: int, blocks: int = 60, shift: float = 0.0) -> Outcomes:
    generator = np.random.default_rng(seed)
    tokens = np.random.default_rng(99).integers(50, 90, blocks)
    sums = tokens * (4.0 + shift + 0.3 * generator.standard_normal(blocks))
    return Outcomes("text", "test", tuple(zip(sums.tolist(), tokens.tolist(), strict=True)))


def documents(share: float, seed: int = 0, n: int = 300) -> Outcomes:
    truth = np.random.default_rng(9).integers(0, 3, n)
    wrong = np.random.default_rng(seed).random(n) > share
    given = (truth + wrong) % 3
    return Outcomes("documents", "test", tuple(zip(truth.tolist(), given.tolist(), strict=True)))


def pairs(n: int, noise: float, seed: int = 0) -> Outcomes:
    generator = np.random.default_rng(seed)
    gold = np.random.default_rng(9).integers(0, 8, n).astype(float)
    cosines = gold / 8.0 + noise * generator.standard_normal(n)
    units = tuple((0, a, b) for a, b in zip(gold.tolist(), cosines.tolist(), strict=True))
    return Outcomes("pairs", "test", units, names=("ws353",))


#: Of each kind: outcomes, better ones, and fewer of them; and the number that they are about.
CASES = {
    "text": (losses(1), losses(3, shift=-1.0), losses(1, 59), "test.perplexity"),
    "documents": (documents(0.6), documents(0.9, 5), documents(0.9, n=299), "test.macro_f1"),
    "pairs": (pairs(200, 0.6), pairs(200, 0.2), pairs(199, 0.2), "test.ws353"),
}


def test_only_the_same_units_and_numbers_are_compared() -> None:
    for kind in CASES:
        before, after, other, number = CASES[kind]
        found = bootstrap({0: before}, {0: after}, number, draws=100)
        assert found is not None
        assert (found[0] < found[1] < 0.0) if kind == "text" else (0.0 < found[0] < found[1])
        assert bootstrap({0: before}, {0: before}, number, draws=20) == (0.0, 0.0)
        assert bootstrap({0: before}, {7: after}, number) is None
        assert bootstrap({0: before}, {0: other}, number) is None
        assert bootstrap({0: before}, {0: after}, number.replace("test", "valid")) is None
        assert bootstrap({0: before}, {0: after}, "cosine.mean") is None
        least = LEAST_PAIRS if kind == "pairs" else LEAST_UNITS
        few = replace(before, units=before.units[: least - 1])
        assert bootstrap({0: few}, {0: few}, number) is None
        mixed = CASES["documents" if kind == "text" else "text"][0]
        assert bootstrap({0: mixed}, {0: after}, number) is None


@pytest.mark.parametrize("kind", CASES)
def test_a_file_brings_them_back_and_a_damaged_one_is_refused(kind: str, tmp_path: Path) -> None:
    given = CASES[kind][0]
    OUTCOMES.save(given, tmp_path)
    assert OUTCOMES.load(tmp_path) == given
    OUTCOMES.save(replace(given, units=(*given.units, (1.0,))), tmp_path)
    with pytest.raises(UnreadableFile):
        OUTCOMES.load(tmp_path)


def test_blocks_hold_every_window_once_in_the_order_of_the_text() -> None:
    windows = [(float(i), 1 + i % 3) for i in range(1_000)] + [(0.0, 0)]
    found = merge_blocks("valid", windows).table()
    assert len(found) == MOST_BLOCKS
    assert found[:2, 0].tolist() == [0.0 + 1 + 2 + 3 + 4, 5.0 + 6 + 7 + 8 + 9]
    assert found.sum(axis=0).tolist() == [sum(each) for each in zip(*windows, strict=True)]
    few = merge_blocks("test", [(2.0, 1), (0.0, 0), (3.0, 4)])
    assert few.units == ((2.0, 1), (3.0, 4))


def test_the_interval_over_blocks_is_that_of_a_slow_bootstrap() -> None:
    before, after = {0: losses(1), 1: losses(2)}, {0: losses(3), 1: losses(4)}
    found = bootstrap(before, after, "test.perplexity")
    assert found is not None
    generator, tokens = np.random.default_rng(5), before[0].table()[:, 1]
    slow = []
    for _ in range(2_000):
        chosen = generator.integers(0, len(tokens), len(tokens))
        ratios = [
            (after[s].table()[chosen, 0].sum() - before[s].table()[chosen, 0].sum())
            / tokens[chosen].sum()
            for s in (0, 1)
        ]
        slow.append(np.mean(ratios))
    np.testing.assert_allclose(found, np.quantile(slow, [0.025, 0.975]), atol=0.01)


def test_a_shift_of_every_block_has_an_interval_of_no_width() -> None:
    shifted = replace(losses(1), units=tuple((x + 0.1 * n, n) for x, n in losses(1).units))
    found = bootstrap({0: losses(1), 3: losses(2)}, {0: shifted, 7: losses(9)}, "test.perplexity")
    assert found == pytest.approx((0.1, 0.1))


def test_the_interval_over_documents_is_that_of_documents_drawn_one_by_one() -> None:
    before, after = documents(0.6), documents(0.75, 1)
    found = bootstrap({0: before}, {0: after}, "test.accuracy")
    (truth, old), (_, new) = before.table().T, after.table().T
    generator = np.random.default_rng(5)
    steps = (new == truth).astype(float) - (old == truth)
    means = [steps[generator.integers(0, 300, 300)].mean() for _ in range(2000)]
    assert found is not None
    np.testing.assert_allclose(found, np.quantile(means, [0.025, 0.975]), atol=0.012)


@pytest.mark.parametrize("classes", [2, 5])
def test_scores_are_those_of_scikit_learn(classes: int) -> None:
    generator = np.random.default_rng(0)
    truth, given = generator.integers(0, classes, (2, 60))
    given[given == 1] = 0
    weights = generator.integers(0, 3, 60)
    for one in (None, weights):
        found = score_classes(truth, given, one)
        assert found["accuracy"] == pytest.approx(accuracy_score(truth, given, sample_weight=one))
        expected = f1_score(truth, given, average="macro", sample_weight=one, zero_division=0.0)
        assert found["macro_f1"] == pytest.approx(expected)

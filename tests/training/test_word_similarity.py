"""Word similarity: correlations against scipy, coverage, bootstraps."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

pytest.importorskip("torch")

from embgeo.training.data.documents import KNOWN, WordPairs
from embgeo.training.data.vocabulary import Vocabulary
from embgeo.training.evaluation.word_similarity import (
    correlate,
    describe_intervals,
    measure_similarity,
)
from embgeo.training.study.samples import bootstrap_samples
from embgeo.training.study.word_similarity import (
    QUANTITIES,
    SETS,
    SetCosines,
    WordSimilarity,
    bootstrap_correlation,
    spearman,
)
from tests.support.documents import ROOT, blocks


def draw(n: int, noise: float, seed: int = 0) -> SetCosines:
    generator = np.random.default_rng(seed)
    gold = np.random.default_rng(9).integers(0, 8, n).astype(float)
    cosines = gold / 8.0 + noise * generator.standard_normal(n)
    return SetCosines("ws353", tuple(gold.tolist()), tuple(cosines.tolist()))


@pytest.mark.parametrize("ties", [False, True])
def test_the_correlation_is_that_of_scipy(ties: bool) -> None:
    generator = np.random.default_rng(3)
    a, b = generator.standard_normal((2, 50))
    if ties:
        a, b = np.round(a), np.round(b)
    assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic, rel=1e-12)


def test_the_program_of_the_page_reads_vectors_and_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = blocks(ROOT / "docs" / "skipgram.md", "python")
    U = np.random.default_rng(4).standard_normal((12, 20))
    rows = {f"{kind}{i}": row for kind, W in (("a", U), ("b", U + 2.0)) for i, row in enumerate(W)}
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in rows.items()]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n")
    sets = tmp_path / "word-sim"
    sets.mkdir()
    cosines = [float(rows["a0"] @ v / np.linalg.norm(v)) for v in rows.values()]
    scored = [f"A0\t{word}\t{cosine}" for word, cosine in zip(rows, cosines, strict=True)]
    (sets / "EN-WS-353-ALL.txt").write_text("\n".join([*scored, "a0\t?\t1"]))
    with contextlib.chdir(tmp_path):
        exec(program, {})
    (line,) = capsys.readouterr().out.splitlines()
    assert "WordSim-353 1 (1 to 1; 24 pairs)" in line


def test_few_pairs_and_constants_have_no_correlation() -> None:
    assert spearman(np.arange(9.0), np.arange(9.0)) is None
    assert spearman(np.ones(20), np.arange(20.0)) is None


def test_cosines_and_coverage_are_those_of_a_loop() -> None:
    generator = np.random.default_rng(1)
    tokens = tuple("abcdefghijklmnop")
    W = generator.standard_normal((16, 5)).astype(np.float32)
    W[3] = 0.0
    pairs = tuple((str(a), str(b)) for a, b in generator.choice([*tokens, "?", "!"], (40, 2)))
    gold = tuple(np.round(generator.random(40), 1).tolist())
    given = WordPairs("ws353", pairs, gold)
    vocabulary = Vocabulary(tokens, np.ones(16, np.int64))
    found = measure_similarity(W, vocabulary, [given])
    cosines, kept, everything = [], [], []
    for (a, b), score in zip(pairs, gold, strict=True):
        known = a in tokens and b in tokens and "d" not in (a, b)
        value = 0.0
        if known:
            u, v = (W[tokens.index(word)].astype(np.float64) for word in (a, b))
            value = float(u @ v / (np.linalg.norm(u) * np.linalg.norm(v)))
            cosines.append(value)
            kept.append(score)
        everything.append(value)
    (one,) = found.sets
    assert len(one.cosines) == 40
    np.testing.assert_allclose(one.known[0], cosines, rtol=1e-12)
    assert one.known[1].tolist() == kept
    scores = correlate(found)
    assert scores["ws353"] == pytest.approx(spearmanr(cosines, kept).statistic)
    assert scores["ws353_all"] == pytest.approx(spearmanr(everything, gold).statistic)
    line = describe_intervals(found)
    assert line.startswith("ρ (95% over other pairs, a bootstrap): WordSim-353 ")
    assert line.endswith(f"; {len(kept)} pairs)")


def test_the_interval_over_pairs_holds_the_correlation_and_narrows() -> None:
    few, many = draw(30, 0.2), draw(300, 0.2)
    widths = []
    for one in (few, many):
        interval = bootstrap_correlation(*one.known, draws=200)
        rho = spearman(*one.known)
        assert interval is not None
        assert rho is not None
        assert interval[0] < rho < interval[1]
        widths.append(interval[1] - interval[0])
    assert widths[1] < 0.5 * widths[0]
    assert bootstrap_correlation(*draw(5, 0.2).known) is None


def test_a_difference_is_taken_over_the_same_pairs_of_every_seed() -> None:
    before = {seed: WordSimilarity((draw(200, 0.6, seed),)) for seed in range(3)}
    after = {seed: WordSimilarity((draw(200, 0.2, seed),)) for seed in range(3)}
    interval = bootstrap_samples(before, after, "test.ws353", draws=200)
    assert interval is not None
    assert 0.0 < interval[0] < interval[1]
    assert bootstrap_samples(before, before, "test.ws353", draws=20) == (0.0, 0.0)
    assert bootstrap_samples(before, {7: after[0]}, "test.ws353") is None
    assert bootstrap_samples(before, after, "test.rg65") is None
    other = {0: WordSimilarity((draw(199, 0.2),))}
    assert bootstrap_samples(before, other, "test.ws353") is None


def test_every_set_has_its_facts() -> None:
    assert set(KNOWN.values()) == set(SETS)
    names = {q.name for q in QUANTITIES if q.name != "valid.loss"}
    assert names == {f"test.{name}{end}" for name in SETS for end in ("", "_all")}
    assert all(q.better == "higher" for q in QUANTITIES if q.name in names)

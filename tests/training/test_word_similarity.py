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
    correlate_pairs,
    describe_intervals,
    measure_similarity,
)
from embgeo.training.study.numbers import OF_SIMILARITY, SETS
from tests.support.documents import ROOT, blocks


def test_the_program_of_the_page_reads_vectors_and_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = blocks(ROOT / "docs" / "models.md", "python")
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
    few, one = np.arange(9.0), np.arange(20.0)
    assert correlate_pairs(np.column_stack([few, few])) is None
    assert correlate_pairs(np.column_stack([np.ones(20), one])) is None
    assert correlate_pairs(np.column_stack([one, one])) == 1.0


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
    assert len(found.units) == 40
    known = found.select("ws353")
    assert known is not None
    np.testing.assert_allclose(known[:, 0], cosines, rtol=1e-12)
    assert known[:, 1].tolist() == kept
    scores = correlate(found)
    assert scores["ws353"] == pytest.approx(spearmanr(cosines, kept).statistic)
    assert scores["ws353_all"] == pytest.approx(spearmanr(everything, gold).statistic)
    line = describe_intervals(found)
    assert line.startswith("ρ (95% over other pairs, a bootstrap): WordSim-353 ")
    assert line.endswith(f"; {len(kept)} pairs)")


def test_every_set_has_its_facts() -> None:
    assert set(KNOWN.values()) == set(SETS)
    names = {q.name for q in OF_SIMILARITY if q.name != "valid.loss"}
    assert names == {f"test.{name}{end}" for name in SETS for end in ("", "_all")}
    assert all(q.better == "higher" for q in OF_SIMILARITY if q.name in names)

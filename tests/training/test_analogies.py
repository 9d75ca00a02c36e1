"""Word analogies against a loop over questions and words, and against gensim."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from embgeo.core.errors import UnreadableFile
from embgeo.training.data.analogies import Analogy, read_analogies
from embgeo.training.data.vocabulary import Vocabulary
from embgeo.training.evaluation import analogies
from embgeo.training.evaluation.analogies import (
    answer_analogies,
    describe_analogies,
    score_analogies,
)

WORDS = tuple(f"w{i}" for i in range(60))


def draw(d: int = 3) -> tuple[np.ndarray, list[Analogy]]:
    """Rows near a grid, in which some analogies hold; w7 has no direction, and "?" no row."""
    generator = np.random.default_rng(2)
    W = generator.integers(-1, 2, (60, d)) + 0.2 * generator.standard_normal((60, d))
    W[7] = 0.0
    drawn = generator.choice([*WORDS, "?"], (300, 4))
    held = [f"w{i}" for i in range(8, 40)]
    W[8:40] = (W[8:16, None] + 0.5 * W[40:44]).reshape(32, d)
    even = [
        tuple(held[4 * i + j] for i, j in ((p, 0), (p, 1), (q, 0), (q, 1)))
        for p in range(8)
        for q in range(8)
        if p != q
    ]
    return W.astype(np.float32), [
        *(Analogy("semantic", tuple(map(str, four))) for four in drawn),
        *(Analogy("syntactic", four) for four in even),
    ]


def test_answers_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    W, questions = draw()
    monkeypatch.setattr(analogies, "BLOCK", 1_000)
    found = answer_analogies(W, Vocabulary(WORDS, np.ones(60, np.int64)), questions)
    expected: dict[str, list[bool]] = {"semantic": [], "syntactic": []}
    unit = {
        w: r / np.linalg.norm(r) for w, r in zip(WORDS, W.astype(float), strict=True) if r.any()
    }
    for one in questions:
        if unit.keys() >= set(one.words):
            a, b, c, answer = one.words
            target = unit[b] - unit[a] + unit[c]
            others = [w for w in unit if w not in (a, b, c)]
            best = max(others, key=lambda w: float(unit[w] @ target))
            expected[one.kind].append(best == answer)
    for kind, right in expected.items():
        assert found[kind].tolist() == right
        assert 0 < sum(right) < len(right)
    scores = score_analogies(found)
    assert scores["analogies_syntactic"] == np.mean(expected["syntactic"])
    assert scores["analogies"] == np.mean(expected["semantic"] + expected["syntactic"])


@pytest.mark.slow
def test_answers_are_those_of_gensim() -> None:
    gensim = pytest.importorskip("gensim.models")
    W, questions = draw()
    vectors = gensim.KeyedVectors(3)
    known = [place for place in range(60) if place != 7]
    vectors.add_vectors([WORDS[place] for place in known], W[known])
    found = answer_analogies(W, Vocabulary(WORDS, np.ones(60, np.int64)), questions)
    asked = [one for one in questions if vectors.key_to_index.keys() >= set(one.words)]
    for kind, right in found.items():
        theirs = [
            vectors.most_similar(positive=[b, c], negative=[a], topn=1)[0][0] == answer
            for a, b, c, answer in (one.words for one in asked if one.kind == kind)
            if len({a, b, c}) == 3
        ]
        ours = right[[len({*one.words[:3]}) == 3 for one in asked if one.kind == kind]]
        assert ours.tolist() == theirs


def test_coverage_and_intervals_are_said() -> None:
    right = {"semantic": np.arange(400) % 4 == 0, "syntactic": np.zeros(9, bool)}
    scores = score_analogies(right)
    assert scores["analogies_semantic"] == 0.25
    assert scores["analogies_syntactic"] is None
    line = describe_analogies(right, 1000)
    assert line.startswith("409 of 1,000 analogies have all words; accuracy (95 %")
    # 1.96 standard errors of 400 questions are 0.042.
    assert "analogies, semantic 0.25 (0.21 to 0.29; 400 questions)" in line
    assert "syntactic" not in line
    none = {kind: np.zeros(0, bool) for kind in right}
    assert describe_analogies(none, 5) == "0 of 5 analogies have all words"


def test_files_are_read_by_sections(tmp_path: Path) -> None:
    path = tmp_path / "questions-words.txt"
    path.write_text(": family\nBoy girl King queen\n\n: gram3-comparative\nbad worse big bigger\n")
    assert read_analogies(path) == (
        Analogy("semantic", ("boy", "girl", "king", "queen")),
        Analogy("syntactic", ("bad", "worse", "big", "bigger")),
    )
    path.write_text(": family\nboy girl king\n")
    with pytest.raises(UnreadableFile, match="line 2 is not four words"):
        read_analogies(path)

"""Rows that lie together are named in the headline, the findings and the blame."""

from __future__ import annotations

import numpy as np

import embgeo
from embgeo.core.matrix import Matrix
from embgeo.diagnosis.verdict import Verdict

N, CLUMP, D = 3000, 150, 24
SECTIONS = ("cosine", "spectrum", "isotropy", "tokens")


def judged(unused: int, change: object = None) -> Verdict:
    W = np.random.default_rng(0).standard_normal((N, D))
    W[:CLUMP] = 0.4 * (1.0 + 0.25 * W[:CLUMP])
    if change is not None:
        change(W)
    names = [f"[unused{i}]" if i < unused else f"word{i}" for i in range(N)]
    matrix = Matrix(W, tokens=tuple(names))
    return embgeo.analyze(matrix, sections=SECTIONS, random=False, pairs=500).verdict


def test_a_clump_alone_is_mild_and_named():
    verdict = judged(unused=100)
    assert verdict.state == "mild"
    assert verdict.headline.startswith("Healthy but for 150 under-trained tokens: no cone (")
    finding = verdict.finding("clump")
    assert finding.sentence.startswith("150 rows (5\u00a0%) lie together within ")
    assert ": 100 unused, 50 Latin. 100" in finding.sentence
    assert finding.quoted[:2] == ("tokens.clump_rows", "tokens.clump_angle")
    assert verdict.blame_lead == "Lie together"
    assert len(verdict.blame) == 5
    assert {name.startswith("[unused") for name in verdict.blame} == {True, False}


def test_without_unused_tokens_nothing_is_said_of_training():
    verdict = judged(unused=0)
    assert verdict.headline.startswith("Healthy but for a clump of 150 rows: no cone")
    assert "training" not in verdict.finding("clump").sentence


def kill(W: np.ndarray) -> None:
    W[-3:] *= 1e-17


def test_next_to_dead_rows():
    verdict = judged(unused=100, change=kill)
    assert verdict.state == "degenerate"
    assert verdict.headline.startswith(
        "3 rows are damaged. The other rows are healthy but for 150 under-trained tokens: no cone"
    )


def test_most_matrices_have_no_line_about_it():
    W = np.random.default_rng(1).standard_normal((500, 8))
    assert embgeo.analyze(Matrix(W), sections=SECTIONS).verdict.finding("clump") is None


def test_a_cone_is_also_given_without_scattered_rows_where_the_answer_is_the_same() -> None:
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((2000, 32))
    rows = noise / np.linalg.norm(noise, axis=1)[:, None] + np.full(32, 32**-0.5)
    rows[:300] = noise[:300] * 0.05
    found = embgeo.analyze(rows, sections=["cosine", "spectrum", "tokens"], reference=False)
    cone = found.verdict.finding("cone")
    assert cone is not None
    assert cone.state == "degenerate"
    assert " Without 300 rows that lie scattered with norms of their own" in cone.sentence
    assert found.verdict.headline.startswith("Degenerate: a narrow cone (mean cosine 0.354)")

"""Rows of a clump are named in the headline and the findings."""

from __future__ import annotations

import numpy as np
import pytest

import embgeo
from embgeo.core.matrix import Matrix
from embgeo.core.quantities import clump
from embgeo.diagnosis.findings import clump as clump_question
from embgeo.diagnosis.verdict import Verdict, judge
from embgeo.result.analysis import Analysis

N, CLUMP, D = 3000, 150, 24
SECTIONS = ("cosine", "spectrum", "isotropy", "tokens")


def judged(unused: int, change: object = None) -> Verdict:
    W = np.random.default_rng(0).standard_normal((N, D))
    W[:CLUMP] = 0.4 * (1.0 + 0.25 * W[:CLUMP])
    if change is not None:
        change(W)
    names = [f"[unused{i}]" if i < unused else f"word{i}" for i in range(N)]
    matrix = Matrix(W, tokens=tuple(names))
    return embgeo.analyze(matrix, sections=SECTIONS, pairs=500).verdict


def test_a_clump_alone_is_mild_and_named():
    verdict = judged(unused=100)
    assert verdict.state == "mild"
    assert verdict.headline.startswith("Healthy except for 150 under-trained tokens: no cone (")
    finding = verdict.finding("clump")
    assert finding.sentence.startswith(
        "150 tokens (5%) form a clump near the mean direction (within "
    )
    assert finding.sentence.endswith("By kind: 100 unused, 50 Latin.")
    assert "(100% of" in finding.sentence
    assert finding.quoted[:2] == ("tokens.clump_rows", "tokens.clump_angle")


def test_without_unused_tokens_it_is_a_group_of_similar_tokens():
    verdict = judged(unused=0)
    assert verdict.state == "healthy"
    finding = verdict.finding("clump")
    assert finding.state == "healthy"
    assert finding.sentence.startswith(
        "150 tokens (5%) form a clump near the mean direction (within "
    )
    assert "nothing says that training missed them" in finding.sentence


@pytest.mark.parametrize(("rarity", "state"), [(0.899, "healthy"), (0.9, "mild")])
def test_counts_say_whether_training_missed_them(rarity, state):
    assert judge_clump(clump.CLUMP_RARITY.measured(rarity)) == state


@pytest.mark.parametrize(("share", "state"), [(0.499, "healthy"), (0.5, "mild")])
def test_unused_tokens_say_whether_training_missed_them(share, state):
    assert judge_clump(clump.CLUMP_UNUSED_SHARE.measured(share)) == state


def judge_clump(scalar):
    """The state of a hand-made clump with one more number."""
    known = (
        clump.CLUMP_ROWS.measured(50),
        clump.CLUMP_ANGLE.measured(20.0),
        clump.ANGLE_EXCESS.measured(0.2, reference=0.01),
        clump.NORM_EXCESS.measured(0.2, reference=0.01),
        scalar,
    )
    provenance = {"kept": 1000, "d": 32}
    return judge(Analysis(provenance=provenance, scalars=known)).finding("clump").state


def test_a_clump_that_one_sample_shows_is_undecided():
    """With states that no seed changes."""
    undecided = clump.CLUMP_ROWS.undefined("1 of 3 samples of the rows show it")
    verdict = judge(Analysis(provenance={"kept": 1000, "d": 32}, scalars=(undecided,)))
    assert verdict.finding("clump") is None
    assert clump_question.QUESTION.decide(
        Analysis(provenance={"kept": 1000, "d": 32}, scalars=(undecided,))
    ).state == ("undecided")


def kill(W: np.ndarray) -> None:
    W[-3:] *= 1e-17


def test_next_to_dead_rows():
    verdict = judged(unused=100, change=kill)
    assert verdict.state == "degenerate"
    assert verdict.headline.startswith(
        "3 rows are damaged. The other rows are healthy except for 150 under-trained tokens: "
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
    assert " Without 300 rows that are scattered with norms of their own" in cone.sentence
    assert found.verdict.headline.startswith("Degenerate: a narrow cone (mean cosine 0.354)")

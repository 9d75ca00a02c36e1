"""Which tokens stand out? By the list of suspects; nothing claimed of healthy matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.comparison.shifts import shifts
from embgeo.core.matrix import Matrix
from embgeo.core.special import SpecialToken
from embgeo.diagnosis.verdict import Verdict
from tests.support.chat_model import write_chat_model
from tests.support.documents import ROOT
from tests.support.matrices import gaussian

REAL = ROOT.parent / "shared" / "data" / "real_embeddings"
FEW = ("spectrum", "cosine", "isotropy")


def judged(matrix: object) -> Verdict:
    return embgeo.analyze(matrix, sections=(*FEW, "tokens", "suspects"), reference=False).verdict


@pytest.mark.slow
def test_dead_rows_are_named(tmp_path: Path) -> None:
    verdict = judged(write_chat_model(tmp_path / "model"))
    assert verdict.state == "degenerate"
    assert verdict.headline == (
        "Untrained, with 79 faulty tokens: the rows look like an initialization."
    )
    first = verdict.findings[0]
    assert "79 damaged rows: " in first.sentence
    assert (first.key, first.state) == ("suspects", "degenerate")
    assert first.quoted == ("suspects.damaged",)


@pytest.mark.slow
def test_a_healthy_model_says_so(tmp_path: Path) -> None:
    verdict = judged(write_chat_model(tmp_path / "model", dead=False))
    assert verdict.findings[0].state == "healthy"
    assert verdict.headline == "Untrained: the rows look like an initialization."


def test_damaged_rows_that_were_not_looked_for_are_in_the_notes() -> None:
    W = gaussian(400, 300, 8)
    W[7] *= 1e-12
    found = embgeo.analyze(W, sections=FEW, reference=False)
    assert found.verdict.finding("suspects") is None
    assert [note.code for note in found.notes] == ["damaged"]


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_one_row(value: float) -> None:
    W = gaussian(401, 300, 8)
    W[3] = value
    verdict = judged(W)
    assert verdict.findings[0].state == verdict.state == "degenerate"
    W[3] = 1.0
    assert judged(W).state == "mild"


def test_both_sides_count() -> None:
    W, U = gaussian(404, 300, 8), gaussian(405, 300, 8)
    U[5:10] = 0.0
    verdict = judged(Matrix(W, output=Matrix(U)))
    assert verdict.findings[0].sentence.startswith("5 zero rows of the output matrix")
    assert verdict.state == "degenerate"


def test_the_others_are_judged_too() -> None:
    W = gaussian(406, 300, 8) + 3.0
    W[5] = 0.0
    assert judged(W).headline == "Narrow cone, collapsed spectrum and 1 faulty token."


HEALTHY = (
    "rnnlm_oreilly.pkl",
    "cbow_oreilly.pkl",
    "crystal_5000.npy",
    "crystal_40000.npy",
    "glove.500.50d.txt",
    "lee_fasttext.vec",
    "fairy_tales_lstm_full_module.pt",
    "opennmt_legacy_b.pt",
)


def load_real(name: str) -> Matrix:
    if not (REAL / name).exists():
        pytest.skip(f"{name} is missing")
    tensor = "model.encoder.embeddings.emb_luts.0.weight" if "opennmt" in name else None
    return embgeo.load(REAL / name, tensor=tensor)


@pytest.mark.slow
def test_nothing_is_claimed_of_real_matrices() -> None:
    for name in HEALTHY:
        found = embgeo.analyze(load_real(name), sections=["suspects"], reference=False)
        assert not {own.reason for own in found.suspects} & {"nonfinite", "zero", "damaged"}


@pytest.mark.slow
def test_rows_that_word2vec_never_trained() -> None:
    """They lie within the range of its initialization, ±1/(2d), as no other row does."""
    matrix = load_real("w2v_papers_24118x40.bin")
    found = embgeo.analyze(matrix, sections=["suspects"], reference=False)
    untrained = np.flatnonzero(np.abs(matrix.data).max(axis=1) <= 0.5 / matrix.d)
    (own,) = (one for one in found.suspects if one.reason == "untrained")
    np.testing.assert_array_equal(own.rows, untrained)
    assert len(untrained) == 9
    assert found.verdict.findings[0].state == "mild"


@pytest.mark.slow
def test_hostile_tokens_are_escaped() -> None:
    W = gaussian(408, 300, 8)
    W[7] = 0.0
    hostile = SpecialToken("<img src=x>\u202e", 7, ("template",))
    tokens = (*map(str, range(7)), hostile.token, *map(str, range(8, 300)))
    matrix = Matrix(W, tokens=tokens, special=(hostile,))
    found = embgeo.analyze(matrix, sections=[*FEW, "suspects"], reference=False)
    assert "‹U+202E›" in found.verdict.findings[0].sentence
    page = embgeo.render(found)
    assert "&lt;img src=x&gt;" in page
    assert "<img src=x" not in page


def test_a_comparison_says_which_side_has_dead_rows() -> None:
    W = gaussian(407, 200, 8)
    V = W.copy()
    V[3] = 0.0
    tokens = tuple(f"t{row}" for row in range(200))
    pair = Matrix(W, tokens=tokens), Matrix(V, tokens=tokens)
    found = embgeo.diff(*pair, sections=(*FEW, "suspects"), reference=False)
    rows = shifts(found, 1)[0]
    assert (rows.key, rows.sentence) == ("suspects", "Zero rows 0 → 1.")
    assert (rows.before.state, rows.after.state) == ("healthy", "degenerate")


def test_duplicates_are_said_with_the_number_of_their_tokens() -> None:
    W = np.random.default_rng(0).standard_normal((600, 16))
    W[10:30], W[40:45] = W[5], W[35]
    assert "25 duplicates of 2 tokens" in embgeo.analyze(W).verdict.findings[0].sentence

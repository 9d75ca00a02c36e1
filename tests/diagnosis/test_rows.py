"""Are rows damaged? By name where one is not; nothing claimed of matrices that are healthy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.comparison.shifts import shifts
from embgeo.core.matrix import Matrix, Origin
from embgeo.core.special import SpecialToken
from embgeo.diagnosis.verdict import Verdict
from tests.support.chat_model import write_chat_model
from tests.support.documents import ROOT
from tests.support.matrices import gaussian

REAL = ROOT.parent / "shared" / "data" / "real_embeddings"
FEW = ("spectrum", "cosine", "isotropy")


def judged(matrix: object, sections: tuple[str, ...] = FEW) -> Verdict:
    return embgeo.analyze(matrix, sections=sections, reference=False).verdict


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> embgeo.Analysis:
    folder = write_chat_model(tmp_path_factory.mktemp("chat") / "model")
    return embgeo.analyze(folder, sections=[*FEW, "tokens"], reference=False)


def test_dead_rows_are_named(chat: embgeo.Analysis) -> None:
    verdict = chat.verdict
    assert verdict.state == "degenerate"
    assert verdict.headline.startswith(
        "79 rows are damaged, among them <|im_start|> (row 2,950), which the chat template uses. "
        "The other rows look like an initialization"
    )
    first = verdict.findings[0]
    assert (first.key, first.title, first.state) == ("rows", "Are rows damaged?", "degenerate")
    assert "79 norms are 16" in first.sentence
    assert first.quoted == ("tokens.damaged_gap", "tokens.norm_median")
    assert verdict.to_dict()["findings"][0]["key"] == "rows"


def test_its_special_tokens(chat: embgeo.Analysis) -> None:
    states = {row[0]: (row[2], row[4]) for row in chat["tokens.special"].rows}
    assert states == {
        "<|im_start|>": ("special, template", "damaged"),
        "<s>": ("bos, special", "healthy"),
        "<pad>": ("pad, special", "healthy"),
        "<|im_end|>": ("special, template", "healthy"),
    }
    numbers = {"special_damaged_rows": 1, "missing_rows": 0}
    assert {name: chat[f"tokens.{name}"].value for name in numbers} == numbers


@pytest.mark.slow
def test_a_healthy_model_says_so(tmp_path: Path) -> None:
    verdict = judged(write_chat_model(tmp_path / "model", dead=False), (*FEW, "tokens"))
    first = verdict.findings[0]
    assert (first.key, first.state, first.clause) == ("rows", "healthy", "no damaged rows")
    assert first.sentence == "No damaged rows."
    assert verdict.headline.startswith("The rows look like an initialization")


def test_without_the_section_of_tokens() -> None:
    """Dead rows are known from the first pass: no choice of sections hides them."""
    W = gaussian(400, 300, 8)
    W[7] *= 1e-12
    verdict = judged(Matrix(W, special=(SpecialToken("<s>", 7, ("bos",)),)))
    assert verdict.state == "degenerate"
    assert verdict.headline.startswith(
        "1 row is damaged, among them <s> (row 7). The other rows show no sign"
    )


@pytest.mark.parametrize(
    ("value", "clause"), [(0.0, "1 row is damaged"), (np.nan, "1 row is not finite")]
)
def test_one_row(value: float, clause: str) -> None:
    W = gaussian(401, 300, 8)
    W[3] = value
    verdict = judged(W)
    assert verdict.findings[0].clause == clause
    assert verdict.state == "degenerate"


@pytest.mark.parametrize("token", ["<pad>", "[PAD]", "<blank>"])
def test_a_zero_row_of_padding_is_intended(token: str) -> None:
    W = gaussian(402, 300, 8)
    W[3] = 0.0
    labels = [token if row == 3 else f"t{row}" for row in range(300)]
    assert embgeo.analyze(W, tokens=labels, sections=FEW, reference=False).verdict.findings[
        0
    ].state == ("healthy")


def test_rows_as_they_were_initialized_are_mild() -> None:
    W = gaussian(403, 300, 8)
    W[3], W[4] = 0.5, np.delete(W, [3, 4], axis=0).mean(axis=0)
    W[4] += (0.5 - W[4]) / 299  # the constant row is part of the mean, too
    verdict = judged(W, (*FEW, "tokens"))
    assert verdict.findings[0].state == "mild"
    assert verdict.headline.startswith(
        "1 row is constant and 1 row equals the mean row. The other rows look like an "
        "initialization"
    )


def test_dead_rows_of_the_output_matrix() -> None:
    U = gaussian(404, 300, 8)
    U[:5] = 0.0
    verdict = judged(Matrix(gaussian(405, 300, 8), output=Matrix(U)), (*FEW, "tokens"))
    assert verdict.findings[0].clause == "5 rows of the output matrix are damaged"


def test_clauses_of_both_sides_stay_apart() -> None:
    W, U = gaussian(407, 300, 8), gaussian(408, 300, 8)
    W[7], U[:5] = 0.0, 0.0
    special = (SpecialToken("<s>", 7, ("template",)),)
    matrix = Matrix(W, special=special, output=Matrix(U, origin=Origin(tensor="head")))
    found = embgeo.analyze(matrix, sections=[*FEW, "tokens"], reference=False)
    assert found.verdict.findings[0].clause == (
        "1 row is damaged, among them <s> (row 7), which the chat template uses, and "
        "5 rows of the output matrix are damaged"
    )
    assert [note.text for note in found.notes if note.code == "output"] == [
        "the verdict is about the input embedding; --tensor head judges the output matrix"
    ]


def test_the_others_are_judged_too() -> None:
    W = gaussian(406, 300, 8) + 3.0
    W[5] = 0.0
    headline = judged(W).headline
    assert headline.startswith("1 row is damaged. The other rows are degenerate: a narrow cone")


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
@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_claimed_of_real_matrices(name: str) -> None:
    found = embgeo.analyze(load_real(name), sections=["spectrum"], reference=False)
    damage = found.provenance["damaged"]
    assert (damage["small"], damage["nonfinite"], damage["zero"] - damage["padding"]) == (0, 0, 0)


@pytest.mark.slow
def test_rows_that_word2vec_never_trained() -> None:
    """They lie within the range of its initialization, ±1/(2d), as no other row does."""
    matrix = load_real("w2v_papers_24118x40.bin")
    found = embgeo.analyze(matrix, sections=["spectrum"], reference=False)
    untrained = np.flatnonzero(np.abs(matrix.data).max(axis=1) <= 0.5 / matrix.d)
    np.testing.assert_array_equal(np.setdiff1d(np.arange(matrix.n), found.rows), untrained)
    assert len(untrained) == 9
    assert found.verdict.findings[0].state == "mild"
    assert found.verdict.findings[0].clause == "9 rows were never trained"


@pytest.mark.slow
def test_rows_as_long_as_an_initialization_and_dead_ones() -> None:
    W, rng = gaussian(409, 400, 40), np.random.default_rng(0)
    W[:6] = rng.uniform(-1, 1, (6, 40)) * 0.5 / 40
    never = judged(W, (*FEW, "tokens"))
    assert never.headline.startswith("6 rows were never trained. The other rows ")
    assert never.findings[0].clause == "6 rows were never trained"
    assert never.findings[0].sentence.startswith(
        "6 rows still have their initial norm: never trained, "
    )
    assert never.state == "mild"
    W[5] *= 0.3
    both = judged(W, (*FEW, "tokens"))
    assert both.headline.startswith("1 row is damaged. The other rows ")
    assert both.findings[0].sentence.endswith("). 5 rows were never trained.")
    assert ", 5 of them as word2vec" in both.findings[0].sentence


def test_few_short_rows_of_few_dimensions_are_dead_or_never_trained() -> None:
    W = gaussian(410, 200, 16)
    W[:2] = np.random.default_rng(0).uniform(-1, 1, (2, 16)) * 0.5 / 16
    found = judged(W, (*FEW, "tokens"))
    assert found.headline.startswith("2 rows are damaged or were never trained. The other rows ")
    assert "can be chance for so few rows of so few dimensions" in found.findings[0].sentence
    assert found.state == "degenerate"


@pytest.mark.parametrize("name", ["baseline.pt", "cosreg.safetensors"])
def test_nothing_is_claimed_of_the_fixtures(name: str) -> None:
    found = embgeo.analyze(ROOT / "fixtures" / name, sections=["spectrum"], reference=False)
    assert found.verdict.findings[0].state == "healthy"


@pytest.mark.slow
def test_hostile_tokens_are_escaped() -> None:
    W = gaussian(408, 300, 8)
    W[7] = 0.0
    hostile = SpecialToken("<img src=x>\u202e", 7, ("template",))
    found = embgeo.analyze(Matrix(W, special=(hostile,)), sections=FEW, reference=False)
    assert "‹U+202E›" in found.verdict.headline
    page = embgeo.render(found)
    assert "&lt;img src=x&gt;" in page
    assert "<img src=x" not in page


def test_a_comparison_says_which_side_has_dead_rows() -> None:
    W = gaussian(407, 200, 8)
    V = W.copy()
    V[3] = 0.0
    tokens = tuple(f"t{row}" for row in range(200))
    pair = Matrix(W, tokens=tokens), Matrix(V, tokens=tokens)
    found = embgeo.diff(*pair, sections=(*FEW, "tokens"), reference=False)
    rows = shifts(found, 1)[0]
    assert (rows.key, rows.sentence) == ("rows", "Damaged rows 0 → 1.")
    assert (rows.before.state, rows.after.state) == ("healthy", "degenerate")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([0.0, 0.0], "2 rows are damaged: exactly zero (median norm "),
        ([0.0, np.nan], "2 rows are damaged: 1 exactly zero, 1 not finite (median norm "),
        ([np.inf, np.nan], "2 rows are not finite (median norm "),
    ],
)
def test_rows_that_no_gap_makes_damaged_are_named_by_kind(entries: list[float], said: str) -> None:
    W = gaussian(5, 200, 8)
    W[3], W[4] = entries
    sentence = judged(Matrix(W), (*FEW, "tokens")).findings[0].sentence
    assert sentence.startswith(said)


def test_short_rows_that_are_too_many_are_named_and_kept() -> None:
    """More than 5%, and not two decades below the others."""
    W = gaussian(5, 200, 64)
    W[100:130] *= 0.03
    found = embgeo.analyze(W, sections=[*FEW, "tokens"], reference=False)
    assert found["tokens.damaged_rows"].value == 0
    assert found.verdict.state == "mild"
    assert found.verdict.headline.startswith("30 rows are shorter than all others by 1.")
    limit = found.verdict.findings[0].sentence.split("--min-norm ")[1].split()[0]
    assert "widest gap" not in found.verdict.findings[0].sentence
    again = embgeo.analyze(W, sections=FEW, reference=False, min_norm=float(limit))
    assert again.verdict.headline.startswith("30 rows are damaged. ")

"""From a path and options to a matrix: dispatch by bytes, labels, counts, provenance, refusals."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import BadOption, EmbgeoError, LabelMismatch, UnreadableFile
from embgeo.core.matrix import Matrix
from tests.support import mutants
from tests.support.refusals import refusal
from tests.support.sampling import each_value

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data" / "real_embeddings"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the shared data are not next to the checkout"
)

N, D = 6, 3
W = np.arange(N * D, dtype=np.float32).reshape(N, D) + 1
TOKENS = ("the", "of", "new\nline", "tab\tbed", "</script>", "")


def saved(tmp_path: Path, array: np.ndarray = W, name: str = "w.npy") -> Path:
    path = tmp_path / name
    with path.open("wb") as file:
        np.save(file, array)
    return path


def side(tmp_path: Path, content: Any, name: str) -> Path:
    path = tmp_path / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def refused(kind: type[EmbgeoError], path: Path, **options: Any) -> None:
    with refusal(kind):
        embgeo.load(path, **options)


@each_value
@pytest.mark.parametrize("suffix", [".npy", ".bin", ".json", ""])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("npy", "npy"),
        ("npz", "npz"),
        ("safetensors", "safetensors"),
        ("torch", "torch checkpoint"),
        ("text vectors", "GloVe text"),
        ("word2vec text", "word2vec text"),
    ],
)
def test_bytes_decide_and_suffixes_do_not(
    tmp_path: Path, name: str, kind: str, suffix: str
) -> None:
    (sample,) = (one for one in mutants.SAMPLES if one.name == name)
    path = tmp_path / f"matrix{suffix}"
    path.write_bytes(sample.wrap(sample.make(tmp_path)))
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, mutants.W[: matrix.n])
    assert matrix.origin.format == kind
    assert matrix.origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert matrix.origin.path == str(path)


def test_missing_files_and_strange_paths(tmp_path: Path) -> None:
    refused(UnreadableFile, tmp_path / "missing.npy")
    refused(UnreadableFile, saved(tmp_path), tokens=tmp_path / "no.txt")
    refused(UnreadableFile, saved(tmp_path), counts="nowhere.tsv")
    with pytest.raises(UnreadableFile):
        embgeo.load("x" * 5000)
    with pytest.raises(UnreadableFile):
        embgeo.load("x\0y")
    refused(UnreadableFile, saved(tmp_path), tokens=tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such device file")
def test_devices_are_refused() -> None:
    refused(UnreadableFile, Path("/dev/null"))


def test_labels_and_counts_by_token(tmp_path: Path) -> None:
    path = saved(tmp_path)
    tokens = side(tmp_path, list(TOKENS), "tokens.json")
    counts = side(tmp_path, {"the": 50, "new\nline": 3, "": 1, "unknown": 9}, "counts.json")
    matrix = embgeo.load(path, tokens=tokens, counts=counts)
    assert matrix.tokens == TOKENS
    assert matrix.frequency is not None
    np.testing.assert_array_equal(matrix.frequency.counts, [50, 0, 3, 0, 0, 1])
    assert any("3 of 6 tokens are not in counts.json" in note for note in matrix.origin.notes)
    assert any("1 of 4 tokens in counts.json are not" in note for note in matrix.origin.notes)
    assert not any(str(tmp_path) in note for note in matrix.origin.notes)


def test_counts_in_row_order_label_an_unlabeled_matrix(tmp_path: Path) -> None:
    path = saved(tmp_path)
    counts = side(tmp_path, "".join(f"t{k}\t{9 - k}\n" for k in range(N)), "counts.tsv")
    matrix = embgeo.load(path, counts=counts)
    assert matrix.tokens == tuple(f"t{k}" for k in range(N))
    assert matrix.frequency is not None
    np.testing.assert_array_equal(matrix.frequency.counts, [9, 8, 7, 6, 5, 4])
    assert any("in row order" in note for note in matrix.origin.notes)
    cut = embgeo.load(path, counts=counts, rows="2:5")
    assert cut.tokens == ("t2", "t3", "t4")
    assert cut.frequency is not None
    np.testing.assert_array_equal(cut.frequency.counts, [7, 6, 5])
    np.testing.assert_array_equal(cut.data, W[2:5])
    assert cut.origin.rows == (2, 5)


@pytest.mark.parametrize("length", [N - 1, N + 1])
def test_off_by_one_is_refused_before_a_tensor_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("a tensor was opened before the labels were checked")

    monkeypatch.setattr("embgeo.io.load.read_rows", opened)
    path = saved(tmp_path)
    tokens = side(tmp_path, [f"t{k}" for k in range(length)], "tokens.json")
    refused(LabelMismatch, path, tokens=tokens)
    counts = side(tmp_path, "".join(f"t{k} 1\n" for k in range(length)), "counts.tsv")
    refused(LabelMismatch, path, counts=counts)


def test_padding_rows_have_no_count(tmp_path: Path) -> None:
    tokens = side(tmp_path, "the\nof\n", "t.txt")
    counts = side(tmp_path, "the 5\nof 4\n", "c.tsv")
    matrix = embgeo.load(saved(tmp_path), tokens=tokens, counts=counts, padding="mask")
    assert matrix.masked["padding beyond the vocabulary"].tolist() == [2, 3, 4, 5]
    assert matrix.frequency is not None
    np.testing.assert_array_equal(matrix.frequency.counts, [5, 4, 0, 0, 0, 0])
    assert not any("not in c.tsv" in note for note in matrix.origin.notes)


def test_corpus_and_rank_order(tmp_path: Path) -> None:
    path = saved(tmp_path)
    corpus = side(tmp_path, "the of the", "corpus.txt")
    refused(LabelMismatch, path, corpus=corpus)
    tokens = side(tmp_path, list(TOKENS), "tokens.json")
    counted = embgeo.load(path, tokens=tokens, corpus=corpus)
    assert counted.frequency is not None
    np.testing.assert_array_equal(counted.frequency.counts, [2, 1, 0, 0, 0, 0])
    ranked = embgeo.load(path, rank_order=True)
    assert ranked.frequency is not None
    assert ranked.frequency.kind == "rank"
    np.testing.assert_array_equal(ranked.frequency.counts, [6, 5, 4, 3, 2, 1])


def test_options_that_contradict_each_other(tmp_path: Path) -> None:
    path = saved(tmp_path)
    refused(BadOption, path, counts="c", rank_order=True)
    refused(BadOption, path, counts="c", corpus="d")
    refused(BadOption, path, padding="drop")
    refused(BadOption, path, rows="0:7")


def test_transposed(tmp_path: Path) -> None:
    path = saved(tmp_path, np.ascontiguousarray(W.T))
    as_stored = embgeo.load(path)
    assert any("--transpose" in note for note in as_stored.origin.notes)
    turned = embgeo.load(path, transpose=True, rows="1:4")
    np.testing.assert_array_equal(turned.data, W[1:4])
    assert (turned.origin.transposed, turned.origin.stored_shape) == (True, (D, N))
    tokens = side(tmp_path, list(TOKENS), "t.json")
    refused(LabelMismatch, path, tokens=tokens)


def test_tokens_of_the_columns_are_not_taken_for_rows(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("a 1.5 2 3 4\nb 1 2 3 4\n")
    assert embgeo.load(path).tokens == ("a", "b")
    assert embgeo.load(path, transpose=True).tokens is None


def untied(tmp_path: Path, **tensors: np.ndarray) -> Path:
    path = tmp_path / "model.safetensors"
    save_file({"wte.weight": W, **tensors}, path)
    return path


def test_output_projection_comes_along(tmp_path: Path) -> None:
    path = untied(tmp_path, **{"lm_head.weight": np.ascontiguousarray(2 * W.T)})
    tokens = side(tmp_path, list(TOKENS), "t.json")
    matrix = embgeo.load(path, rows="1:5", tokens=tokens)
    assert isinstance(matrix.output, Matrix)
    np.testing.assert_array_equal(matrix.output.data, 2 * W[1:5])
    assert matrix.output.tokens == matrix.tokens == TOKENS[1:5]
    assert matrix.output.origin.tensor == "lm_head.weight"
    assert matrix.output.origin.transposed
    assert embgeo.load(path, output="none").output is None


def test_an_output_that_is_a_copy_is_tied(tmp_path: Path) -> None:
    path = untied(tmp_path, **{"lm_head.weight": W.copy()})
    matrix = embgeo.load(path)
    assert matrix.output is None
    assert "holds the same numbers" in matrix.origin.tied_by


def test_tokens_of_another_matrix_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "two.pkl"
    words = {word: k for k, word in enumerate("abcdef")}
    path.write_bytes(pickle.dumps({"src": W, "tgt": np.ones((9, D)), "word_to_id": words}))
    assert embgeo.load(path, tensor="src").tokens == tuple("abcdef")
    assert embgeo.load(path, tensor="tgt").tokens is None


@pytest.mark.parametrize(
    "array",
    [
        np.ones(5),
        np.ones((5, 2), dtype=np.int64),
        np.ones((5, 2, 2)),
    ],
)
def test_arrays_that_are_no_matrix(tmp_path: Path, array: np.ndarray) -> None:
    refused(EmbgeoError, saved(tmp_path, array))


@needs_shared
def test_rnnlm_untied_by_shape_and_by_option() -> None:
    path, counts = SHARED / "rnnlm_oreilly.pkl", SHARED / "ptb_vocab_counts.tsv"
    for options in ({}, {"tensor": "0"}, {"tensor": "0", "output": "4"}):
        matrix = embgeo.load(path, counts=counts, **options)
        assert matrix.data.shape == (10_000, 100)
        assert matrix.output is not None
        assert matrix.output.data.shape == (10_000, 100)
        assert (matrix.output.origin.tensor, matrix.output.origin.transposed) == ("4", True)
        assert matrix.tokens is not None
        assert matrix.tokens[:2] == ("aer", "banknote")


@needs_shared
def test_crystal_rows() -> None:
    path, counts = SHARED / "crystal_40000.npy", SHARED / "sst_vocab_counts.tsv"
    matrix = embgeo.load(path, rows="0:19539", counts=counts)
    assert matrix.data.shape == (19_539, 10)
    assert matrix.tokens is not None
    assert matrix.tokens[0] == "the"
    assert matrix.frequency is not None
    assert matrix.frequency.counts[0] == 10_128
    refused(LabelMismatch, path, counts=counts)


@needs_shared
def test_fairy_tales_is_tied_and_cbow_carries_its_words() -> None:
    counts = SHARED / "fairy_tales_vocab_counts.tsv"
    tied = embgeo.load(SHARED / "fairy_tales_lstm_full_module.pt", counts=counts)
    assert tied.data.shape == (4934, 100)
    assert tied.output is None
    assert "decoder.weight shares the storage" in tied.origin.tied_by
    cbow = embgeo.load(SHARED / "cbow_oreilly.pkl", counts=SHARED / "ptb_vocab_counts.tsv")
    assert cbow.tokens is not None
    assert cbow.frequency is not None
    assert cbow.frequency.counts.min() > 0


def test_a_pattern_names_the_engine_that_reads_it(tmp_path: Path) -> None:
    for part in range(2):
        np.save(tmp_path / f"part-{part}.npy", np.eye(3))
    for pattern in ("part-*.npy", "part-[01].npy", "other-*.npy"):
        with refusal(UnreadableFile):
            embgeo.load(tmp_path / pattern)

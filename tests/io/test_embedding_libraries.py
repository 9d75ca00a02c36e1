"""Files of embedding libraries: what is read equals what the library itself reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.io.formats.subwords import Subwords, mean_vectors, ngram_rows
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import arrays, is_mapped
from tests.support.embedding_files import fasttext_bytes, matrix_bytes

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "real_embeddings"
SENTENCES = [
    *["the quick brown fox jumps over the lazy dög"] * 9,
    *["naïve 日本語 cats and the dogs"] * 5,
    *["a b c fox"] * 2,
]
WORDS = ("alpha", "beta", "gamma", "delta")


def names(path: Path) -> list[str]:
    return [tensor.name for tensor in open_checkpoint(path).tensors]


# fastText


@pytest.fixture
def fasttext() -> Any:
    return pytest.importorskip("fasttext", reason="fastText is not installed")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return path


def vectors_of(fasttext: Any, model: Any, words: Any, d: int) -> np.ndarray:
    """``get_word_vector`` of the C++ core; the Python one cannot be called under numpy 2."""
    rows = []
    for word in words:
        vector = fasttext.FastText.fasttext.Vector(d)
        model.f.getWordVector(vector, word)
        rows.append(np.array(vector))
    return np.array(rows)


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "skipgram", "bucket": 300, "minn": 1, "maxn": 4},
        {"model": "cbow", "bucket": 50, "loss": "hs"},
        {"model": "skipgram", "bucket": 0, "maxn": 0},
    ],
    ids=lambda settings: f"{settings['model']} {settings['bucket']}",
)
def test_fasttext_unsupervised(
    fasttext: Any, corpus: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    path = tmp_path / "a.bin"
    model = fasttext.train_unsupervised(
        str(corpus), dim=7, minCount=1, thread=1, epoch=1, verbose=0, **settings
    )
    model.save_model(str(path))
    words, counts = model.get_words(include_freq=True)
    matrix = embgeo.load(path)
    assert matrix.tokens == tuple(words)
    assert matrix.frequency is not None
    assert matrix.frequency.kind == "counts"
    assert "fastText" in matrix.frequency.source
    np.testing.assert_array_equal(matrix.frequency.counts, counts)
    np.testing.assert_array_equal(matrix.data, vectors_of(fasttext, model, words, 7))
    found = arrays(open_checkpoint(path))
    stored = np.asarray(model.f.getInputMatrix())
    np.testing.assert_array_equal(found["words"], stored[: len(words)])
    assert is_mapped(found["words"])
    if settings["bucket"]:
        np.testing.assert_array_equal(found["ngrams"], stored[len(words) :])
    # The inner nodes of a Huffman tree are not output matrix.
    last = "tree" if settings.get("loss") == "hs" else "output"
    np.testing.assert_array_equal(found[last], np.asarray(model.f.getOutputMatrix()))
    assert (matrix.output is None) == (last == "tree")


@pytest.mark.parametrize("subwords", [{}, {"minn": 2, "maxn": 4, "bucket": 500}], ids=["", "n"])
def test_fasttext_supervised(fasttext: Any, tmp_path: Path, subwords: dict[str, int]) -> None:
    text, path = tmp_path / "labeled.txt", tmp_path / "a.bin"
    text.write_text(
        "".join(f"__label__l{i % 280} word{i % 320} naïve thing{i % 13}\n" for i in range(640)),
        encoding="utf-8",
    )
    model = fasttext.train_supervised(
        str(text), dim=5, thread=1, epoch=1, verbose=0, minCount=1, **subwords
    )
    model.save_model(str(path))
    checkpoint = open_checkpoint(path)
    matrix = embgeo.load(path)
    assert matrix.tokens == tuple(model.get_words())
    assert not any(token.startswith("__label__") for token in matrix.tokens)
    assert matrix.output is None
    assert "280 labels are not among the rows" in " ".join(checkpoint.notes)
    np.testing.assert_array_equal(matrix.data, vectors_of(fasttext, model, matrix.tokens, 5))
    assert arrays(checkpoint)["labels"].shape == (280, 5)


def plain_hash(ngram: bytes) -> int:
    state = 2166136261
    for byte in ngram:
        state = (state ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619 % 2**32
    return state


def plain_ngrams(word: str, subwords: Subwords) -> list[int]:
    """A slow twin over characters."""
    marked = f"<{word}>"
    found = []
    for start in range(len(marked)):
        for n in range(1, subwords.longest + 1):
            edge = n == 1 and (start == 0 or start + n == len(marked))
            if start + n <= len(marked) and n >= subwords.shortest and not edge:
                found.append(plain_hash(marked[start : start + n].encode()) % subwords.buckets)
    return found


def test_ngrams_against_a_slow_twin() -> None:
    for lengths in ((1, 1), (1, 4), (3, 6), (0, 2), (5, 3)):
        words = ["a", "", "the", "naïve", "日本語", "🙂🙂", "</s>", "x" * 40]
        subwords = Subwords(*lengths, buckets=97)
        counts, rows = ngram_rows([word.encode() for word in words], subwords)
        wanted = [plain_ngrams(word, subwords) for word in words]
        assert counts.tolist() == [len(found) for found in wanted]
        assert rows.tolist() == [row for found in wanted for row in found]


def test_mean_vectors_over_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    words = [b"w%d" % number for number in range(50)]
    own, ngrams = (rng.normal(size=(n, 4)).astype("f4") for n in (50, 11))
    subwords = Subwords(2, 3, 11)
    arguments = (words, subwords, lambda rows: own[rows], lambda rows: ngrams[rows], 4)
    whole = mean_vectors(*arguments)
    monkeypatch.setattr("embgeo.io.formats.subwords._BLOCK_BYTES", 3000)
    np.testing.assert_array_equal(mean_vectors(*arguments), whole)
    first = plain_ngrams("w0", subwords)
    np.testing.assert_allclose(
        whole[0], (own[0] + ngrams[first].sum(0)) / (1 + len(first)), rtol=1e-5
    )


def test_early_classifiers_have_no_ngrams(tmp_path: Path) -> None:
    path = tmp_path / "a"
    entries = ((b"cat", 5, 0), (b"dog", 3, 0), (b"__label__x", 4, 1))
    outputs = matrix_bytes(np.array([[1.0, 2.0, 3.0]]))
    path.write_bytes(fasttext_bytes(entries, version=11, model=3, outputs=outputs))
    early = open_checkpoint(path).tensors
    assert [t.alias_of for t in early if t.name == "words"] == ["word_vectors"]
    path.write_bytes(fasttext_bytes(entries, model=3, outputs=outputs))
    tensors = open_checkpoint(path).tensors
    assert [t.alias_of for t in tensors] == ["", "", "", ""]
    assert [len(t.open()) for t in tensors] == [t.shape[0] for t in tensors] == [2, 2, 4, 1]
    assert np.asarray(tensors[-1].open()).tolist() == [[1.0, 2.0, 3.0]]


def test_counts_of_the_file_yield_to_those_that_are_given(tmp_path: Path) -> None:
    path, given = tmp_path / "a", tmp_path / "counts.tsv"
    path.write_bytes(fasttext_bytes())
    given.write_text("cat\t1\ndog\t2\n")
    own = embgeo.load(path, rows="1:2").frequency
    assert own is not None
    assert own.counts.tolist() == [3]
    ranked = embgeo.load(path, rank_order=True).frequency
    assert ranked is not None
    assert ranked.kind == "rank"
    other = embgeo.load(path, counts=given).frequency
    assert other is not None
    assert other.counts.tolist() == [1, 2]


# word2vec


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_word2vec_format_with_a_vocabulary_file(tmp_path: Path, binary: bool) -> None:
    models = pytest.importorskip("gensim.models", reason="gensim is not installed")
    path, vocabulary = tmp_path / "a.vec", tmp_path / "vocab.txt"
    model = models.Word2Vec(
        [s.split() for s in SENTENCES], vector_size=6, min_count=1, workers=1, epochs=1
    )
    model.wv.save_word2vec_format(str(path), fvocab=str(vocabulary), binary=binary)
    matrix = embgeo.load(path, counts=vocabulary)
    assert matrix.tokens == tuple(model.wv.index_to_key)
    np.testing.assert_allclose(matrix.data, model.wv.vectors, rtol=1e-6)
    assert matrix.frequency is not None
    np.testing.assert_array_equal(matrix.frequency.counts, model.wv.expandos["count"])


# Numbers between tabs, as TensorBoard's projector takes them

TSV = "0.5\t-1\t2e-3\n1\t0.25\t3\n0\t0\t-7.5\n4\t5\t6\n"
NUMBERS = np.array([[0.5, -1, 2e-3], [1, 0.25, 3], [0, 0, -7.5], [4, 5, 6]], dtype="f4")


@pytest.mark.parametrize(
    "metadata",
    [
        "alpha\nbeta\ngamma\ndelta\n",
        "id\tWord\tCount\n" + "".join(f"{r}\t{w}\t{9 - r}\n" for r, w in enumerate(WORDS)),
        "count\tlemma\n" + "".join(f"{9 - r}\t{w}\n" for r, w in enumerate(WORDS)),
    ],
)
def test_numbers_between_tabs_and_labels_in_another_table(tmp_path: Path, metadata: str) -> None:
    (tmp_path / "tensors.tsv").write_text(TSV)
    (tmp_path / "metadata.tsv").write_text(metadata)
    alone = embgeo.load(tmp_path / "tensors.tsv")
    np.testing.assert_array_equal(alone.data, NUMBERS)
    assert alone.tokens is None
    matrix = embgeo.load(tmp_path / "tensors.tsv", tokens=tmp_path / "metadata.tsv")
    np.testing.assert_array_equal(matrix.data, NUMBERS)
    assert matrix.tokens == WORDS
    counts = None if matrix.frequency is None else matrix.frequency.counts.tolist()
    assert counts == ([9, 8, 7, 6] if "ount" in metadata else None)


def test_whole_numbers_before_measured_ones_are_words(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("1990\t0.5\t1.5\n1991\t0.25\t2.5\n")
    assert embgeo.load(path).tokens == ("1990", "1991")

"""gensim's saves: against gensim where it is installed, and older layouts made by hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import AmbiguousTensor
from embgeo.io.formats import gensim as saves
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import arrays, check_refused, head, is_mapped, quick
from tests.support.embedding_files import instance, save_pickle, stand_in
from tests.support.refusals import refusal
from tests.support.sampling import each_value

SENTENCES = [["the", "cat", "naïve", "dög"]] * 6 + [["a", "dog", "日本語"]] * 4 + [["the"]] * 5
WORDS = ("the", "cat", "dog")
COUNTS = [30, 20, 7]


@pytest.fixture
def models() -> Any:
    return pytest.importorskip("gensim.models", reason="gensim is not installed")


def trained(models: Any, kind: str) -> Any:
    settings: dict[str, Any] = {"vector_size": 6, "min_count": 1, "workers": 1, "epochs": 1}
    if kind == "FastText":
        settings |= {"bucket": 60, "min_n": 2, "max_n": 4}
    return getattr(models, kind)(SENTENCES, **settings)


@each_value
@pytest.mark.parametrize("limit", [10**7, 0], ids=["one file", "sidecars"])
@pytest.mark.parametrize("what", ["model", "vectors"])
@pytest.mark.parametrize("kind", ["Word2Vec", "FastText"])
def test_what_gensim_saves(models: Any, tmp_path: Path, kind: str, what: str, limit: int) -> None:
    model = trained(models, kind)
    saved = model if what == "model" else model.wv
    path = tmp_path / "a.model"
    saved.save(str(path), sep_limit=limit)
    assert saves.sniff(head(path))
    checkpoint = open_checkpoint(path)
    matrix = embgeo.load(path)
    loaded = type(saved).load(str(path))
    vectors = loaded.wv if what == "model" else loaded
    assert matrix.tokens == tuple(vectors.index_to_key)
    np.testing.assert_allclose(matrix.data, vectors.vectors, rtol=1e-6, atol=1e-8)
    assert matrix.frequency is not None
    np.testing.assert_array_equal(matrix.frequency.counts, vectors.expandos["count"])
    assert (len(checkpoint.files) > 1) == (limit == 0)
    found = arrays(checkpoint)
    if limit == 0:
        parts = [a for name, a in found.items() if name.endswith(("vectors", "vocab", "syn1neg"))]
        assert any(is_mapped(array) for array in parts)
    if what == "model":
        assert matrix.output is not None
        np.testing.assert_array_equal(matrix.output.data, loaded.syn1neg)


def test_documents_beside_words_are_a_choice(models: Any, tmp_path: Path) -> None:
    tagged = [models.doc2vec.TaggedDocument(words, [row]) for row, words in enumerate(SENTENCES)]
    model = models.Doc2Vec(tagged, vector_size=5, min_count=1, workers=1, epochs=1)
    path = tmp_path / "a"
    model.save(str(path))
    with refusal(AmbiguousTensor):
        embgeo.load(path)
    words = embgeo.load(path, tensor="wv.vectors")
    assert words.tokens == tuple(model.wv.index_to_key)
    np.testing.assert_array_equal(words.data, model.wv.vectors)
    documents = embgeo.load(path, tensor="dv.vectors")
    np.testing.assert_array_equal(documents.data, model.dv.vectors)
    assert documents.tokens is None
    assert documents.frequency is None


def test_placeholders_for_counts_are_no_counts(models: Any, tmp_path: Path) -> None:
    text, path = tmp_path / "a.txt", tmp_path / "a.kv"
    text.write_text("3 2\nthe 1 2\ncat 3 4\ndog 5 6\n")
    models.KeyedVectors.load_word2vec_format(str(text)).save(str(path))
    matrix = embgeo.load(path)
    assert matrix.tokens == WORDS
    assert matrix.frequency is None
    assert any("where it knows none" in note for note in matrix.origin.notes)


def test_a_model_without_vectors_of_words_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kind = stand_in(monkeypatch, "gensim.models.ldamodel", "LdaModel")
    path = save_pickle(tmp_path / "a", instance(kind, alpha=np.ones((4, 4))))
    check_refused(saves, path)


# Older layouts

VECTORS = np.arange(12, dtype="f4").reshape(3, 4) / 7


def vocab_of(monkeypatch: pytest.MonkeyPatch, module: str) -> dict[str, Any]:
    entry = stand_in(monkeypatch, module, "Vocab")
    table = {
        word: instance(entry, count=count, index=row, sample_int=2**32)
        for row, (word, count) in enumerate(zip(WORDS, COUNTS, strict=True))
    }
    return dict(sorted(table.items()))


def specials(**named: list[str]) -> dict[str, list[str]]:
    empty: dict[str, list[str]] = {
        f"__{name}": [] for name in ("numpys", "scipys", "ignoreds", "recursive_saveloads")
    }
    return empty | {f"__{name}": listed for name, listed in named.items()}


def layout_0(monkeypatch: pytest.MonkeyPatch, path: Path) -> Any:
    """0.12: everything in the model, large arrays next to it."""
    module = "gensim.models.word2vec"
    np.save(f"{path}.syn0.npy", VECTORS)
    np.save(f"{path}.syn1neg.npy", -VECTORS)
    vocab = vocab_of(monkeypatch, module)
    kind = stand_in(monkeypatch, module, "Word2Vec")
    noted = specials(numpys=["syn0", "syn1neg"], ignoreds=["syn0norm"])
    return instance(kind, vocab=vocab, index2word=list(WORDS), syn0norm=None, **noted)


def layout_1(monkeypatch: pytest.MonkeyPatch, path: Path) -> Any:
    """1.0 to 3.2: the vectors in an object of their own."""
    inner = "gensim.models.keyedvectors"
    np.save(f"{path}.wv.syn0.npy", VECTORS)
    vocab = vocab_of(monkeypatch, inner)
    keyed = stand_in(monkeypatch, inner, "KeyedVectors")
    wv = instance(
        keyed, vocab=vocab, index2word=list(WORDS), syn0norm=None, **specials(numpys=["syn0"])
    )
    kind = stand_in(monkeypatch, "gensim.models.word2vec", "Word2Vec")
    monkeypatch.setattr(keyed, "__module__", inner)
    return instance(kind, wv=wv, syn1neg=-VECTORS, **specials(recursive_saveloads=["wv"]))


def layout_3(monkeypatch: pytest.MonkeyPatch, path: Path) -> Any:
    """3.3 to 3.8: what is trained in an object of its own, too."""
    inner, outer = "gensim.models.keyedvectors", "gensim.models.word2vec"
    np.save(f"{path}.trainables.syn1neg.npy", -VECTORS)
    vocab = vocab_of(monkeypatch, inner)
    keyed = stand_in(monkeypatch, inner, "Word2VecKeyedVectors")
    wv = instance(keyed, vocab=vocab, index2word=list(WORDS), vectors=VECTORS, **specials())
    trainables = stand_in(monkeypatch, outer, "Word2VecTrainables")
    kind = stand_in(monkeypatch, outer, "Word2Vec")
    return instance(
        kind,
        wv=wv,
        trainables=instance(trainables, layer1_size=4, **specials(numpys=["syn1neg"])),
        **specials(recursive_saveloads=["wv", "trainables"]),
    )


def layout_entities(monkeypatch: pytest.MonkeyPatch, _path: Path) -> Any:
    """3.x KeyedVectors of entities; words only in the table."""
    inner = "gensim.models.keyedvectors"
    vocab = vocab_of(monkeypatch, inner)
    kind = stand_in(monkeypatch, inner, "WordEmbeddingsKeyedVectors")
    return instance(kind, vocab=vocab, index2entity=[], vectors=VECTORS, **specials())


@each_value
@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("layout", [layout_0, layout_1, layout_3, layout_entities])
def test_older_layouts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, layout: Any, protocol: int
) -> None:
    path = tmp_path / "old.model"
    save_pickle(path, layout(monkeypatch, path), protocol)
    assert saves.sniff(head(path))
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, VECTORS)
    assert matrix.tokens == WORDS
    assert matrix.frequency is not None
    assert matrix.frequency.counts.tolist() == COUNTS
    if layout is not layout_entities:
        assert matrix.output is not None
        np.testing.assert_array_equal(matrix.output.data, -VECTORS)


# Hostile


def with_sidecar(monkeypatch: pytest.MonkeyPatch, path: Path, numpys: Any) -> Path:
    kind = stand_in(monkeypatch, "gensim.models.keyedvectors", "KeyedVectors")
    noted = specials() | {"__numpys": numpys}
    return save_pickle(path, instance(kind, index_to_key=list(WORDS), **noted))


@pytest.mark.parametrize("name", ["../../x", "", 3])
def test_sidecars_with_other_than_plain_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: Any
) -> None:
    path = with_sidecar(monkeypatch, tmp_path / "a", [name])
    check_refused(saves, path)


def test_sidecars_that_are_no_list_or_implausibly_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for listed in ("vectors", {"vectors": 1}, ["vectors"] * 1000):
        path = with_sidecar(monkeypatch, tmp_path / "a", listed)
        check_refused(saves, path)


def test_missing_foreign_and_damaged_sidecars(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder, outside = tmp_path / "in", tmp_path / "secret.npy"
    folder.mkdir()
    np.save(outside, VECTORS)
    path = with_sidecar(monkeypatch, folder / "a", ["vectors"])
    check_refused(saves, path)
    sidecar = folder / "a.vectors.npy"
    os.symlink(outside, sidecar)
    check_refused(saves, path)
    sidecar.unlink()
    content = outside.read_bytes()
    sidecar.write_bytes(content[:-1])
    check_refused(saves, path)
    np.save(sidecar, np.array([{}], dtype=object), allow_pickle=True)
    check_refused(saves, path)


def test_fasttext_parts_that_do_not_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kind = stand_in(monkeypatch, "gensim.models.fasttext", "FastTextKeyedVectors")
    sound = {
        "index_to_key": list(WORDS), "vectors_vocab": VECTORS, "vectors_ngrams": VECTORS,
        "min_n": 2, "max_n": 3, "bucket": 3, "compatible_hash": True,
    }  # fmt: skip
    path = tmp_path / "a"
    for changes in [
        {"bucket": 2**70},
        {"bucket": 4},
        {"index_to_key": ["one"]},
        {"vectors_vocab": np.zeros(3)},
    ]:
        save_pickle(path, instance(kind, **(sound | changes)))
        check_refused(saves, path)
    for changes in ({"max_n": 10**9}, {"compatible_hash": False}, {"vectors_ngrams": None}):
        save_pickle(path, instance(kind, **(sound | changes)))
        with refusal():
            embgeo.load(path)
    save_pickle(path, instance(kind, **sound))
    assert embgeo.load(path).data.shape == (3, 4)


def keyed_vectors(monkeypatch: pytest.MonkeyPatch, path: Path, **attributes: Any) -> embgeo.Matrix:
    kind = stand_in(monkeypatch, "gensim.models.keyedvectors", "KeyedVectors")
    save_pickle(path, instance(kind, **({"vectors": VECTORS} | attributes)))
    return embgeo.load(path)


def test_fasttext_without_subwords_has_the_vectors_of_its_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kind = stand_in(monkeypatch, "gensim.models.fasttext", "FastTextKeyedVectors")
    parts = {"vectors_vocab": VECTORS, "min_n": 3, "max_n": 0, "bucket": 0}
    path = save_pickle(tmp_path / "a", instance(kind, index_to_key=list(WORDS), **parts))
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, VECTORS)
    assert matrix.tokens == WORDS


def test_other_arrays_that_are_not_there_are_noted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted = specials() | {"__numpys": ["vectors", "norms"], "__scipys": ["sims"]}
    # An array in the pickle goes before a file of its name.
    np.save(tmp_path / "a.vectors.npy", -VECTORS)
    matrix = keyed_vectors(monkeypatch, tmp_path / "a", **noted)
    np.testing.assert_array_equal(matrix.data, VECTORS)
    notes = " ".join(matrix.origin.notes)
    assert "norms (is in a.norms.npy, which is missing)" in notes
    assert "sims (is a sparse matrix)" in notes


@each_value
@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint16, int])
@pytest.mark.parametrize("protocol", [2, 4])
def test_rows_and_counts_as_integers_of_numpy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, integer: Any, protocol: int
) -> None:
    entry = stand_in(monkeypatch, "gensim.models.keyedvectors", "Vocab")
    kind = stand_in(monkeypatch, "gensim.models.keyedvectors", "KeyedVectors")
    table = {
        word: instance(entry, index=integer(row), count=integer(count))
        for row, (word, count) in enumerate(zip(WORDS, COUNTS, strict=True))
    }
    held = instance(kind, vocab=dict(sorted(table.items())), vectors=VECTORS)
    matrix = embgeo.load(save_pickle(tmp_path / "a", held, protocol))
    assert matrix.tokens == WORDS
    assert matrix.frequency is not None
    assert matrix.frequency.counts.tolist() == COUNTS


def test_words_that_share_one_large_entry_cost_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entry = stand_in(monkeypatch, "gensim.models.keyedvectors", "Vocab")
    shared = instance(entry, index=0, count=1, **{f"a{place}": place for place in range(20_000)})
    table = {f"w{row}": shared for row in range(20_000)}
    with quick(2):
        matrix = keyed_vectors(monkeypatch, tmp_path / "a", vocab=table)
    assert matrix.tokens is None


def test_rows_without_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = {word: row for row, word in enumerate(WORDS)}
    matrix = keyed_vectors(monkeypatch, tmp_path / "a", key_to_index=rows, vocab=rows)
    assert matrix.tokens == WORDS
    assert matrix.frequency is None


@pytest.mark.parametrize(
    "counts",
    [np.array([1, 2, -1]), np.array(["a"])],
)
def test_counts_that_do_not_fit_the_words_are_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, counts: Any
) -> None:
    held = {"index_to_key": list(WORDS), "expandos": {"count": counts}}
    assert keyed_vectors(monkeypatch, tmp_path / "a", **held).frequency is None


@pytest.mark.parametrize(
    ("index", "count"),
    [(0, 1.5), (0, 2**80), (np.float32(0), 5)],
)
def test_entries_of_a_vocabulary_that_lie_give_no_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, index: Any, count: Any
) -> None:
    entry = stand_in(monkeypatch, "gensim.models.keyedvectors", "Vocab")
    vocab = {w: instance(entry, index=row, count=9) for row, w in enumerate(WORDS)}
    vocab["the"] = instance(entry, index=index, count=count)
    held = {"index_to_key": list(WORDS), "vocab": vocab}
    matrix = keyed_vectors(monkeypatch, tmp_path / "a", **held)
    assert matrix.tokens == WORDS
    assert matrix.frequency is None

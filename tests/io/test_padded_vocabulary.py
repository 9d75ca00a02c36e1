"""Rows beyond the vocabulary change no number: a padded model reads like the unpadded one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.values import Column, Histogram, Points, Series, Table

N, D, PADDED = 250, 12, 256


def model(folder: Path, rows: npt.NDArray[np.float32], output: npt.NDArray[np.float32]) -> Path:
    """A model folder whose tokenizer has N tokens, however many rows there are."""
    folder.mkdir()
    config = {"vocab_size": len(rows), "hidden_size": D, "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config))
    words = ["<s>", "</s>", "[unused1]", "[unused2]", *(f"word{i}" for i in range(4, N))]
    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = {"model": {"type": "WordLevel", "vocab": vocabulary}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    tensors = {"model.embed_tokens.weight": rows, "lm_head.weight": output}
    save_file(tensors, folder / "model.safetensors")
    counts = "".join(f"{word}\t{1000 // (i + 1)}\n" for i, word in enumerate(words))
    (folder.parent / "counts.tsv").write_text(counts)
    return folder


def analyze(path: Path) -> embgeo.Analysis:
    matrix = embgeo.load(path, counts=path.parent / "counts.tsv")
    return embgeo.analyze(matrix, options=embgeo.Options(isotropy_rows=100))


g = np.random.default_rng(0)
ROWS = g.standard_normal((N, D), dtype=np.float32) + 0.5
OUTPUT = g.standard_normal((N, D), dtype=np.float32)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> embgeo.Analysis:
    return analyze(model(tmp_path_factory.mktemp("unpadded") / "model", ROWS, OUTPUT))


@pytest.fixture(scope="module", params=["zero", "random", "huge", "not a number"])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, plain: embgeo.Analysis
) -> tuple[embgeo.Analysis, embgeo.Analysis]:
    """The same model unpadded and padded with rows of that kind."""
    padding = {
        "zero": np.zeros((PADDED - N, D)),
        "random": np.random.default_rng(1).standard_normal((PADDED - N, D)),
        "huge": np.full((PADDED - N, D), 1e30),
        "not a number": np.full((PADDED - N, D), np.nan),
    }[request.param].astype(np.float32)
    rows, output = (np.vstack([whole, padding]) for whole in (ROWS, OUTPUT))
    return plain, analyze(model(tmp_path_factory.mktemp("padded") / "model", rows, output))


Pair = tuple[embgeo.Analysis, embgeo.Analysis]


@pytest.mark.slow
def test_the_padding_is_seen(pair: Pair) -> None:
    plain, padded = pair
    assert (plain.provenance["n"], padded.provenance["n"]) == (N, PADDED)
    assert plain.provenance["kept"] == padded.provenance["kept"] == N
    assert sum(padded.provenance["masked"].values()) == PADDED - N


def test_every_scalar_is_the_same(pair: Pair) -> None:
    plain, padded = pair
    assert [s.name for s in plain.scalars] == [s.name for s in padded.scalars]
    assert len(plain.scalars) > 50
    different = {
        a.name
        for a, b in zip(plain.scalars, padded.scalars, strict=True)
        if (a.value, a.standard_error, a.reference, a.undefined)
        != (b.value, b.standard_error, b.reference, b.undefined)
    }
    assert not different


def test_everything_else_is_the_same(pair: Pair) -> None:
    plain, padded = pair
    assert plain.tokens == padded.tokens
    for one in plain.values():
        other = padded[one.name]
        match one, other:
            case Table(), Table():
                extra = set(other.rows) - set(one.rows)
                assert set(one.rows) <= set(other.rows)
                assert not extra
            case Series(), Series():
                assert {k: v.tolist() for k, v in one.y.items()} == {
                    k: v.tolist() for k, v in other.y.items()
                }
            case Histogram(), Histogram():
                np.testing.assert_array_equal(one.counts, other.counts)
            case Points(), Points():
                np.testing.assert_array_equal(one.xy, other.xy)
            case Column(), Column():
                np.testing.assert_array_equal(one.values, other.values)


def test_the_padding_has_rows_of_no_token(pair: Pair) -> None:
    names = {"no_token.input", "no_token.output"}
    assert {one.name for one in pair[1].suspects} == names
    assert all(one.rows.tolist() == [*range(N, PADDED)] for one in pair[1].suspects)

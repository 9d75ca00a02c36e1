"""Vectors that a pickle holds one by one: dicts of words, lists, and tuples with words beside."""

from __future__ import annotations

import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io.load import open_checkpoint
from embgeo.io.model.checkpoint import FEWEST_VECTORS
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value

N, D = 30, 4
W = np.random.default_rng(0).standard_normal((N, D)).astype("f4")
WORDS = (*(f"w{i}" for i in range(N - 2)), "naïve", "日本")


def pickled(tmp_path: Path, value: object, protocol: int = 4) -> Path:
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(value, protocol))
    return path


def table(rows: Any, kind: Callable[..., Any] = dict) -> Any:
    return kind(zip(WORDS, rows, strict=True))


@each_value
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda pairs: defaultdict(list, pairs)])
def test_a_dict_of_words_and_arrays(tmp_path: Path, kind: Any, protocol: int) -> None:
    matrix = embgeo.load(pickled(tmp_path, table(W, kind), protocol))
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.data.dtype == W.dtype
    assert matrix.tokens == WORDS
    assert any("30 vectors that the file holds one by one" in n for n in matrix.origin.notes)


def test_other_tables(tmp_path: Path) -> None:
    for folder, (value, tokens) in each_folder(
        tmp_path,
        (
            (table(W[:, None, :].astype(float)), WORDS),
            (W.astype(float).tolist(), None),
            (dict(enumerate(W.astype(float))), None),
            ({w.encode(): row for w, row in table(W.astype(float)).items()}, WORDS),
        ),
    ):
        matrix = embgeo.load(pickled(folder, value))
        np.testing.assert_array_equal(matrix.data, W.astype(float))
        assert matrix.tokens == tokens


@pytest.mark.parametrize("legacy", [False, True])
def test_what_torch_saves(tmp_path: Path, legacy: bool) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    path = tmp_path / "a.pt"
    for value in (table(map(torch.tensor, W)), table(torch.tensor(W))):  # copies, then views
        torch.save(value, path, _use_new_zipfile_serialization=not legacy)
        matrix = embgeo.load(path)
        np.testing.assert_array_equal(matrix.data, W)
        assert matrix.tokens == WORDS


@pytest.mark.parametrize("with_index", [False, True])
def test_words_beside_a_matrix_in_a_tuple(tmp_path: Path, with_index: bool) -> None:
    """What torchtext keeps in its cache."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    index = {word: k for k, word in enumerate(WORDS)} if with_index else None
    torch.save((list(WORDS), index, torch.tensor(W), D), tmp_path / "a.pt")
    matrix = embgeo.load(tmp_path / "a.pt")
    assert matrix.tokens == WORDS
    assert embgeo.load(pickled(tmp_path, (WORDS, W))).tokens == WORDS
    assert embgeo.load(pickled(tmp_path, [W, WORDS[:-1]])).tokens is None


def test_what_is_no_table_of_vectors(tmp_path: Path) -> None:
    for folder, value in each_folder(
        tmp_path,
        (
            table(W[:, :1]),
            {**table(W), "odd": W[0, :2]},
            {**table(W), "odd": "text"},
            table([[1, 2, 3]] * N),
            [[1.5, 2.5]] * 20 + [[1.5]],
            [[1.5, 2.5]] * 20 + [[1.5, "a"]],
            [[1.5, 2.5]] * 20 + [[1.5, 10**400]],
        ),
    ):
        with refusal():
            embgeo.load(pickled(folder, value))


def write_hdf5(path: Path, arrays: dict[str, np.ndarray]) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


WRITERS: dict[str, Callable[[Path, dict[str, np.ndarray]], None]] = {
    "npz": lambda path, arrays: np.savez(path, **arrays),
    "safetensors": lambda path, arrays: save_file(arrays, path),
    "h5": write_hdf5,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_one_array_for_each_word(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    WRITERS[kind](path, table(W[:, None] if kind == "h5" else W))
    matrix = embgeo.load(path)
    assert matrix.tokens is not None
    assert set(matrix.tokens) == set(WORDS)
    for token, row in zip(matrix.tokens, matrix.data, strict=True):
        np.testing.assert_array_equal(row, W[WORDS.index(token)])
    assert any("30 vectors that the file holds one by one" in n for n in matrix.origin.notes)


@pytest.mark.parametrize("kind", WRITERS)
def test_one_array_for_each_row_number(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    WRITERS[kind](path, {str(k): W[k] for k in reversed(range(N))})
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens is None


def test_arrays_that_savez_numbers(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", *W)
    np.testing.assert_array_equal(embgeo.load(tmp_path / "a.npz").data, W)


@each_value
@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    "arrays",
    [
        {f"w{k}": W[k] for k in range(7)},
        {f"layers.{k}.norm.weight": W[k] for k in range(20)},
        {**{f"w{k}": W[k] for k in range(20)}, "odd": W[0, :2]},
        {f"w{k}": W[k, :1] for k in range(20)},
    ],
)
def test_what_is_no_table_of_arrays(
    tmp_path: Path, kind: str, arrays: dict[str, np.ndarray]
) -> None:
    path = tmp_path / f"a.{kind}"
    WRITERS[kind](path, arrays)
    with refusal():
        embgeo.load(path)


def test_matrices_among_vectors_are_left_as_they_are(tmp_path: Path) -> None:
    state = {f"layer{k}.bias": W[0] for k in range(20)}
    checkpoint = open_checkpoint(pickled(tmp_path, {"embed.weight": W, **state}))
    assert len(checkpoint.tensors) == 21


@pytest.mark.parametrize("row", [np.zeros(100_000), [0.5] * 100_000])
@pytest.mark.slow
def test_one_row_that_stands_for_very_many(tmp_path: Path, row: Any) -> None:
    path = pickled(tmp_path, {str(k): row for k in range(50_000)})
    with refusal(UnreadableFile):
        embgeo.load(path)


def test_joblib_is_of_no_known_format(tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    joblib.dump(W, tmp_path / "a.joblib")
    joblib.dump(W, tmp_path / "b.joblib", compress=3)
    for name in ("a.joblib", "b.joblib"):
        with refusal(UnreadableFile):
            embgeo.load(tmp_path / name)


def test_vectors_of_a_large_share_of_the_file_are_no_repetition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit follows the size of the file, wherever it is above the free bytes."""
    monkeypatch.setattr("embgeo.io.formats.pickle.contents.RATIO_FREE_BYTES", 1)
    np.testing.assert_array_equal(embgeo.load(pickled(tmp_path, table(W))).data, W)
    row = np.arange(400.0)
    with refusal(UnreadableFile):
        embgeo.load(pickled(tmp_path, [row] * 2000))


@pytest.mark.parametrize("protocol", [2, 4])
def test_tensors_that_pickle_dumps(tmp_path: Path, protocol: int) -> None:
    """Each storage is a checkpoint in bytes, unlike what torch.save writes."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    weight = torch.tensor(W)
    state = {"embed.weight": weight, "tied": weight, "other": weight[::2] + 1}
    path = pickled(tmp_path, state, protocol)
    tensors = {t.name: t.open() for t in open_checkpoint(path).tensors}
    np.testing.assert_array_equal(tensors["embed.weight"], W)
    np.testing.assert_array_equal(tensors["tied"], W)
    np.testing.assert_array_equal(tensors["other"], W[::2] + 1)
    layer = torch.nn.Embedding.from_pretrained(weight)
    np.testing.assert_array_equal(embgeo.load(pickled(tmp_path, layer, protocol)).data, W)
    matrix = embgeo.load(pickled(tmp_path, table(map(torch.tensor, W)), protocol))
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens == WORDS


@pytest.mark.parametrize("content", [b"x" * 40, pickle.dumps(5)])
def test_storages_in_bytes_that_lie(tmp_path: Path, content: bytes) -> None:
    program = b"\x80\x02ctorch.storage\n_load_from_bytes\nU" + bytes([len(content)]) + content
    path = tmp_path / "a.pkl"
    path.write_bytes(program.replace(b"\nU", b"\nC") + b"\x85R.")
    with pytest.raises(UnreadableFile):
        embgeo.load(path)


def test_how_many_vectors_are_a_table(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    for n, d in ((FEWEST_VECTORS, 2), (FEWEST_VECTORS, D), (N, 2)):
        np.savez(path, **dict(zip(WORDS, W[:n, :d], strict=False)))
        matrix = embgeo.load(path)
        np.testing.assert_array_equal(matrix.data, W[:n, :d])
        assert matrix.tokens == WORDS[:n]
    for name, rows in (
        ("w{}", list(W[: FEWEST_VECTORS - 1])),
        ("w{}", list(W[:, :1])),
        ("w{}", [*W[:-1], W[-1].astype("f8")]),
        ("layers.{}.weight", list(W)),
        ("{}/bias:0", list(W)),
        ("w{}", list(np.tile(W[:, None], (1, 2, 1)))),
    ):
        np.savez(path, **{name.format(k): row for k, row in enumerate(rows)})
        assert len(open_checkpoint(path).tensors) == len(rows)
    np.savez(path, **{str(k + 1): row for k, row in enumerate(W)})  # not from 0 on: names
    assert embgeo.load(path).tokens == tuple(str(k + 1) for k in range(N))

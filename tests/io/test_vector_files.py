"""Files of vectors of benchmarks for nearest neighbors, and arrays saved one after the other."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import embgeo
from embgeo.core.errors import AmbiguousTensor, UnreadableFile
from embgeo.io.mapped import vector_files
from tests.support.binary_files import check_refused, is_mapped

W = np.random.default_rng(0).standard_normal((30, 5)).astype("f4")


def fvecs(matrix: np.ndarray) -> bytes:
    return b"".join(struct.pack("<i", len(row)) + row.tobytes() for row in matrix)


def fbin(matrix: np.ndarray) -> bytes:
    return struct.pack("<II", *matrix.shape) + matrix.tobytes()


@pytest.mark.parametrize("pack", [fvecs, fbin])
@pytest.mark.parametrize("columns", [2, 5, 1022, 1023, 1024, 3000])
def test_vectors_are_mapped(
    tmp_path: Path, pack: Callable[[np.ndarray], bytes], columns: int
) -> None:
    matrix = np.random.default_rng(1).standard_normal((7, columns)).astype("f4")
    (tmp_path / "a").write_bytes(pack(matrix))
    found = embgeo.load(tmp_path / "a")
    np.testing.assert_array_equal(found.data, matrix)
    assert is_mapped(found.data)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (fvecs(W)[:-1], "no whole number of vectors"),
        (fvecs(W)[:-24] + struct.pack("<i", 9) + W[0].tobytes(), "vector 30 has 9 numbers where 5"),
        (fbin(W)[:-1], "and 599 follow"),
        (fbin(W) + b"more", "it promises 30×5 numbers in 600 bytes"),
        (struct.pack("<II", 2**32 - 1, 60_000) + W.tobytes(), "it promises 4,294,967,295×60,000"),
    ],
)
def test_counts_that_lie(tmp_path: Path, content: bytes, match: str) -> None:
    (tmp_path / "a").write_bytes(content)
    check_refused(vector_files, tmp_path / "a", match)


def test_bare_numbers_are_no_vectors_with_counts() -> None:
    for content in (W.tobytes(), W.astype("f8").tobytes(), bytes(4096), b"text" * 99):
        assert not vector_files.sniff(content)


def saved(path: Path, *arrays: np.ndarray) -> Path:
    with path.open("wb") as file:
        for array in arrays:
            np.save(file, array)
    return path


def test_vectors_saved_one_after_the_other_are_rows(tmp_path: Path) -> None:
    matrix = embgeo.load(saved(tmp_path / "a.npy", *W))
    np.testing.assert_array_equal(matrix.data, W)
    assert "30 arrays were saved into the file one after the other" in matrix.origin.notes


def test_matrices_saved_one_after_the_other_are_listed(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npy", W, 2 * W)
    with pytest.raises(AmbiguousTensor, match=r"0 \(30×5 float32\), 1 \(30×5 float32\)"):
        embgeo.load(path)
    np.testing.assert_array_equal(embgeo.load(path, tensor="1").data, 2 * W)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UnreadableFile, match="promises 600 bytes"):
        embgeo.load(path)


def test_bfloat16_of_paddle(tmp_path: Path) -> None:
    """paddle.save writes a dict of numpy arrays, bfloat16 as uint16."""
    small = W.astype(ml_dtypes.bfloat16)
    state = {
        "embed.weight": small.view("u2"),
        "StructuredToParameterName@@": {"embed.weight": "w_0"},
    }
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps(state, 4))
    matrix = embgeo.load(tmp_path / "a.pdparams")
    np.testing.assert_array_equal(matrix.data, small)
    assert any("read as bfloat16" in note for note in matrix.origin.notes)


@pytest.mark.parametrize("name", ["char_to_ix", "lookup", "mapping"])
def test_numbered_words_label_the_rows_under_any_name(tmp_path: Path, name: str) -> None:
    order = np.random.default_rng(2).permutation(30).tolist()
    numbers = {f"w{k}": k for k in order}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"weights": W, name: numbers}, 4))
    assert embgeo.load(tmp_path / "a.pkl").tokens == tuple(f"w{k}" for k in range(30))
    numbers["w0"] = 1
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"weights": W, name: numbers}, 4))
    assert embgeo.load(tmp_path / "a.pkl").tokens is None

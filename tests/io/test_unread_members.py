"""What may be the embedding and cannot be read stops the choice: the map beside it is not taken."""

from __future__ import annotations

import json
import pickle
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import AmbiguousTensor, UnreadableFile
from tests.support.refusals import refusal
from tests.support.sampling import each_folder

N, D = 60, 16
W = np.random.default_rng(0).standard_normal((N, D)).astype(np.float32)
MAP = np.random.default_rng(1).standard_normal((N, 2)).astype(np.float32)
WORDS = [f"w{row}" for row in range(N)]
TEXTS = [json.dumps(np.round(row.astype(float), 5).tolist()) for row in W]
CODES = (1000 * W).astype(np.int16)
RECORDS = [{"word": word, "v": row.tolist()} for word, row in zip(WORDS, W, strict=True)]


def write_npz(path: Path, member: Any) -> None:
    np.savez(path, data=np.array(member), map=MAP)


def write_pickle(path: Path, member: Any) -> None:
    path.write_bytes(pickle.dumps({"data": member, "map": MAP}))


def write_hdf5(path: Path, member: Any) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(path, "w") as file:
        file["x"], file["map"] = member, MAP


def write_torch(path: Path, member: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.save({"x": member, "map": torch.tensor(MAP)}, path)


Write = Callable[[Path, Any], None]
CASES: tuple[tuple[Write, Any], ...] = (
    (write_npz, TEXTS),
    (write_npz, WORDS),  # called data, and no words of a vocabulary
    (write_npz, [row.tobytes() for row in W]),
    (write_npz, [[word, *map(str, row)] for word, row in zip(WORDS, W, strict=True)]),
    (write_npz, CODES),
    (write_pickle, W.tolist()),
    (write_pickle, [tuple(row) for row in W.tolist()]),
    (write_pickle, W.tobytes()),
    (write_pickle, TEXTS),
    (write_pickle, np.array(TEXTS)),
    (write_pickle, [row[:2].tobytes() for row in W]),
    (write_pickle, {word: row.tobytes() for word, row in zip(WORDS, W, strict=True)}),
    (write_pickle, [array("f", row.tolist()) for row in W]),
    (write_pickle, array("d", W.ravel().tolist())),
    (write_pickle, RECORDS),
    (write_pickle, list(zip(WORDS, W.tolist(), strict=True))),
    (write_hdf5, [text.encode() for text in TEXTS]),
    (write_hdf5, CODES),
    (write_torch, TEXTS),
    (write_torch, array("f", W.ravel().tolist())),
)


def test_a_member_that_cannot_be_read_stops_the_choice(tmp_path: Path) -> None:
    for folder, (write, member) in each_folder(tmp_path, CASES):
        path = folder / "a.npz"
        write(path, member)
        with refusal(AmbiguousTensor):
            embgeo.load(path)
        assert embgeo.load(path, tensor="map").data.shape == (N, 2)


def test_what_is_beside_a_matrix_and_holds_no_vectors(tmp_path: Path) -> None:
    groups = [{"params": [0, 1, 2, 3], "betas": (0.9, 0.999), "lr": 0.1} for _ in range(9)]
    for folder, member in each_folder(
        tmp_path,
        (
            {"texts": WORDS},
            {"labels": np.array(WORDS)},
            {"groups": groups},
            {"losses": {f"run {k}": [0.5] * 20 for k in range(9)}},
            {"raw": [b"w\xf6rter"] * N, "old": ["wort"] * N},
            {"numbers": [1.5, 2.5, 3.5]},
        ),
    ):
        path = folder / "a.pkl"
        path.write_bytes(pickle.dumps({**member, "matrix": W}))
        np.testing.assert_array_equal(embgeo.load(path).data, W)


def test_arrays_of_python_alone_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    for protocol in (2, 5):
        vectors = {word: array("f", row.tolist()) for word, row in zip(WORDS, W, strict=True)}
        path.write_bytes(pickle.dumps(vectors, protocol))
        with refusal(UnreadableFile):
            embgeo.load(path)


def test_codes_of_two_bytes_in_safetensors(tmp_path: Path) -> None:
    save_file({"x": CODES, "map": MAP}, tmp_path / "a.safetensors")
    with refusal(AmbiguousTensor):
        embgeo.load(tmp_path / "a.safetensors")


def lines_of(*columns: Any, first: str = "", separator: str = " ") -> str:
    rows = zip(*columns, np.round(W.astype(float), 5).tolist(), strict=True)
    lines = [separator.join(map(str, (*row[:-1], *row[-1]))) for row in rows]
    return "\n".join([*([first] if first else []), *lines, ""])


COUNTS = [37 * row + 5 for row in range(N)]


def test_a_column_of_whole_numbers_among_decimals(tmp_path: Path) -> None:
    for folder, text in each_folder(
        tmp_path,
        (
            lines_of(WORDS, COUNTS),
            lines_of(WORDS, COUNTS, first=f"{N} {D}"),
            lines_of(WORDS, COUNTS, separator=","),
            lines_of([row % 3 for row in range(N)], separator=","),
            lines_of([f"{row}.0" for row in range(N)], separator=","),
        ),
    ):
        (folder / "a.txt").write_text(text)
        with refusal(UnreadableFile):
            embgeo.load(folder / "a.txt")


def test_zeros_ones_and_rounded_numbers_are_numbers(tmp_path: Path) -> None:
    """A column of zeros is a column; so are whole numbers of a matrix of whole numbers."""
    path = tmp_path / "a.txt"
    path.write_text(lines_of(WORDS, [f"{row % 2}.0" for row in range(N)]))
    assert embgeo.load(path).data.shape == (N, D + 1)
    path.write_text("\n".join(f"w{row} {row} {row + 2} {row + 3}" for row in range(N)))
    assert embgeo.load(path).data.shape == (N, 3)
    path.write_text("w0 5 0.5 1.5\nw1 7 2.5 1.5\nw2 9 2.5 1.5\n")  # too few lines to say so
    assert embgeo.load(path).data.shape == (3, 3)


def test_a_text_column_of_classes_labels_no_rows(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / "a.arrow"
    vectors = pa.array(W.tolist(), pa.list_(pa.float32()))
    for name, texts, labels in (
        ("lang", ["en", "de", "fr"] * 20, None),
        ("word", ["en", "de", "fr"] * 20, "en"),
        ("lang", [*WORDS[:30], *["x"] * 30], "w0"),  # half of them are different
    ):
        table = pa.table({name: texts, "vector": vectors})
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        matrix = embgeo.load(path)
        assert (matrix.tokens and matrix.tokens[0]) == labels
        assert any("repeats its texts" in note for note in matrix.origin.notes) == (labels is None)
    path.write_text("cluster,d0,d1\n" + "".join(f"c{row % 4},0.5,{row}.5\n" for row in range(N)))
    matrix = embgeo.load(path)
    assert matrix.tokens is None
    assert any("column cluster repeats its texts" in note for note in matrix.origin.notes)

"""Frames of pandas, pickled: their rows are the rows, and their words are found."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.guard import Damaged
from embgeo.io.pickle.frames import _list_columns, read_frame
from embgeo.io.pickle.loading import load
from embgeo.io.pickle.objects import Stub

pd = pytest.importorskip("pandas")

WORDS = [f"w{i}ä" for i in range(9)]
W = np.random.default_rng(0).standard_normal((9, 4)).astype("f4")


def numbers_and_words() -> Any:
    frame = pd.DataFrame(W)
    frame.insert(0, "word", WORDS)
    return frame


def table_of_objects() -> Any:
    """Its block lies in the order of Fortran, which numpy does not list objects in."""
    table = np.empty((9, 2), dtype=object)
    for row, word in enumerate(WORDS):
        table[row] = word, W[row].tolist()
    return pd.DataFrame(table, dtype=object, copy=False)


CASES = {
    "table of objects": table_of_objects,
    "index": lambda: pd.DataFrame(W, index=WORDS),
    "object index": lambda: pd.DataFrame(W, index=pd.Index(WORDS, dtype=object)),
    "column": numbers_and_words,
    "column of vectors": lambda: pd.DataFrame({"word": WORDS, "vector": list(W)}),
    "column of lists": lambda: pd.DataFrame({"word": WORDS, "vector": W.astype(float).tolist()}),
    "objects": lambda: pd.DataFrame({"word": pd.Series(WORDS, dtype=object), "vector": list(W)}),
    "series": lambda: pd.Series(dict(zip(WORDS, W, strict=True))),
    "slice": lambda: pd.DataFrame(np.vstack([W, W]), index=[*WORDS, *WORDS]).iloc[:9],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("protocol", [2, 5])
def test_rows_and_words_are_those_of_the_frame(case: str, protocol: int, tmp_path: Path) -> None:
    CASES[case]().to_pickle(tmp_path / "frame.pkl", protocol=protocol)
    found = embgeo.load(tmp_path / "frame.pkl")
    np.testing.assert_array_equal(found.data, W)
    assert list(found.tokens or ()) == WORDS


def test_numbers_of_a_frame_without_words_are_read(tmp_path: Path) -> None:
    pd.DataFrame(W).to_pickle(tmp_path / "frame.pkl")
    found = embgeo.load(tmp_path / "frame.pkl")
    np.testing.assert_array_equal(found.data, W)
    assert found.tokens is None


def test_what_is_not_one_matrix_is_refused_with_a_way_out(tmp_path: Path) -> None:
    mixed = pd.DataFrame({"a": W[:, 0], "b": W[:, 1].astype("f8")})
    words = pd.DataFrame({"a": WORDS})
    ragged = pd.DataFrame({"word": WORDS, "vector": [W[0, : 1 + i % 3] for i in range(9)]})
    for frame, cause in ((mixed, "several types"), (words, "no vectors"), (ragged, "no vectors")):
        frame.to_pickle(tmp_path / "frame.pkl")
        with pytest.raises(UnreadableFile, match=rf"{cause}.*; save the matrix with numpy\.save"):
            embgeo.load(tmp_path / "frame.pkl")


def stub(name: str, *args: object, state: object = None) -> Stub:
    made = Stub(name, args)
    made.build(state)
    return made


def frame_of(manager: object) -> Stub:
    return stub("pandas.DataFrame", state={"_mgr": manager})


@pytest.mark.parametrize(
    "root",
    [
        stub("pandas.DataFrame"),
        frame_of({"blocks": []}),
        frame_of(stub("BlockManager")),
        frame_of(stub("BlockManager", [stub("new_block", 1)], "axes")),
        frame_of(stub("BlockManager", state=((), {"0.14.1": {"axes": [1, 2]}}))),
        frame_of(stub("BlockManager", state=((), {"0.14.1": {"blocks": [{}], "axes": 3}}))),
    ],
)
def test_frames_of_other_versions_are_refused(root: object) -> None:
    with pytest.raises(Damaged, match="a pandas frame of an unknown version") as caught:
        read_frame(root)
    assert "frame.to_numpy()" in caught.value.way_out


def arrow_texts(
    *, kind: object = "string", length: object = 2, offset: object = 0, valid: object = None,
    ends: tuple[int, ...] = (0, 1, 3), text: object = "a\u00e9".encode(),
) -> Stub:  # fmt: skip
    """An array of texts as pandas 3 keeps it: type, length, nulls, offset, buffers."""
    buffers = [valid, stub("py_buffer", np.array(ends, "<i4").tobytes()), stub("py_buffer", text)]
    stored = stub("type_for_alias", kind), length, 0, offset, buffers, [], None
    chunks = stub("chunked_array", [stub("_restore_array", stored)])
    return stub("ArrowStringArray", state={"_pa_array": chunks})


def holding_itself() -> Stub:
    held: list[object] = []
    held.append(stub("chunked_array", held))
    return stub("ArrowStringArray", state={"_pa_array": held[0]})


@pytest.mark.parametrize("array", [arrow_texts(), np.array([b"a", b"b"])])
def test_blocks_that_repeat_an_array_are_refused(array: object) -> None:
    """Two hundred kilobytes could name three hundred times the same fifty thousand words."""
    if isinstance(array, np.ndarray):
        array = load(memoryview(pickle.dumps(array)))
    with pytest.raises(Damaged, match="implausibly many entries"):
        list(_list_columns([arrow_texts(length=-(10**12)), *[array] * 20_000]))


def test_words_of_arrow_are_those_between_the_ends() -> None:
    assert list(_list_columns([arrow_texts()])) == [["a", "\u00e9"]]
    assert list(_list_columns([arrow_texts(length=1, offset=1)])) == [["\u00e9"]]


@pytest.mark.parametrize(
    "array",
    [
        arrow_texts(kind="int32"),
        arrow_texts(kind=7),
        arrow_texts(length="2"),
        arrow_texts(length=3),
        arrow_texts(length=-1),
        holding_itself(),
        arrow_texts(offset=-1),
        arrow_texts(valid=stub("py_buffer", b"\x01")),
        arrow_texts(text=3),
        arrow_texts(ends=(0, 3, 1)),
        arrow_texts(ends=(-1, 1, 3)),
        arrow_texts(ends=(0, 1, 4)),
        arrow_texts(ends=(0, 2, 3)),
        stub("ArrowStringArray", state={"_pa_array": (1, 2)}),
        stub("ArrowStringArray", state=3),
        None,
    ],
)
def test_texts_of_arrow_that_contradict_themselves_are_left_out(array: object) -> None:
    assert list(_list_columns([array])) == []

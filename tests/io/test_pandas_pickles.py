"""Frames of pandas, pickled: their rows are the rows, and their words are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile

pd = pytest.importorskip("pandas")

WORDS = [f"w{i}ä" for i in range(9)]
W = np.random.default_rng(0).standard_normal((9, 4)).astype("f4")


def numbers_and_words() -> Any:
    frame = pd.DataFrame(W)
    frame.insert(0, "word", WORDS)
    return frame


CASES = {
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

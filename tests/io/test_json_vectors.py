"""Vectors in JSON of every shape that tools write, and what is wrong with others."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import AmbiguousTensor, UnreadableFile
from embgeo.io.convert import json_stream, json_vectors
from embgeo.io.formats.format import open_with

W = np.random.default_rng(0).standard_normal((7, 5)).astype("f4")
ROWS: list[list[float]] = [[float(x) for x in row] for row in W]
WORDS = ['é "1"', "two", "3", "a b", "\n", "embedding2", "最"]
PAIRS = list(zip(WORDS, ROWS, strict=True))


def lines(values: list[Any]) -> str:
    return "\n".join(json.dumps(value, ensure_ascii=False) for value in values)


CASES: dict[str, tuple[str, list[str] | None]] = {
    "lists": (json.dumps(ROWS), None),
    "words": (json.dumps(dict(PAIRS), indent=1), WORDS),
    "words and their number": (json.dumps({**dict(PAIRS), "dim": 5}), WORDS),
    "records": (json.dumps([{"id": w, "n": 1, "vector": r} for w, r in PAIRS]), WORDS),
    "answer": (
        json.dumps(
            {
                "object": "list",
                "data": [
                    {"object": "embedding", "index": i, "embedding": r} for i, r in enumerate(ROWS)
                ],
                "usage": {"tokens": 3},
            }
        ),
        None,
    ),
    "answer by types": (json.dumps({"id": "1", "embeddings": {"float": ROWS}}), None),
    "answer of values": (json.dumps({"embeddings": [{"values": r} for r in ROWS]}), None),
    "lines of lists": (lines(ROWS), None),
    "lines of records": (
        lines([{"word": w, "embedding": r, "tags": ["x"]} for w, r in PAIRS]),
        WORDS,
    ),
    "lines of two vectors": (
        lines([{"sparse": [1.0, 2.0], "embedding": r, "token": w} for w, r in PAIRS]),
        WORDS,
    ),
    "lines of a word": (lines([{w: r} for w, r in PAIRS]), WORDS),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("chunk", [1, 50, 2**20])
def test_rows_and_labels(
    case: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    text, words = CASES[case]
    (tmp_path / "vectors.json").write_text(text, encoding="utf-8")
    found = embgeo.load(tmp_path / "vectors.json")
    np.testing.assert_array_equal(found.data, W)
    assert (None if found.tokens is None else list(found.tokens)) == words


def test_vectors_of_several_kinds_are_matrices_of_their_own(tmp_path: Path) -> None:
    """As Cohere answers when several types are asked for."""
    whole = [[round(x * 50) for x in row] for row in ROWS]
    answer = {"id": "1", "embeddings": {"float": ROWS, "int8": whole}}
    path = tmp_path / "vectors.json"
    path.write_text(json.dumps(answer))
    with pytest.raises(AmbiguousTensor, match=r"embeddings\.float \(7×5.*embeddings\.int8 \(7×5"):
        embgeo.load(path)
    np.testing.assert_array_equal(embgeo.load(path, tensor="embeddings.float").data, W)
    np.testing.assert_array_equal(embgeo.load(path, tensor="embeddings.int8").data, whole)


def test_vectors_with_names_in_each_record_are_apart(tmp_path: Path) -> None:
    """As Qdrant writes the points of a collection with named vectors of two lengths."""
    points = [
        {"id": k, "payload": {}, "vector": {"text": row, "image": row[:3]}}
        for k, row in enumerate(ROWS)
    ]
    path = tmp_path / "points.json"
    path.write_text(json.dumps({"points": points}))
    with pytest.raises(AmbiguousTensor):
        embgeo.load(path)
    np.testing.assert_array_equal(embgeo.load(path, tensor="text").data, W)
    np.testing.assert_array_equal(embgeo.load(path, tensor="image").data, W[:, :3])


@pytest.mark.parametrize("packed", [False, True])
def test_the_index_of_records_orders_them(tmp_path: Path, packed: bool) -> None:
    order = [3, 0, 6, 1, 5, 2, 4]
    data = [
        {"index": k, "embedding": base64.b64encode(W[k]).decode() if packed else ROWS[k]}
        for k in order
    ]
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"object": "list", "data": data}))
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert "the rows are in the order of the records' index" in matrix.origin.notes
    for record in data:
        record["index"] = 0
    path.write_text(json.dumps({"object": "list", "data": data}))
    np.testing.assert_array_equal(embgeo.load(path).data, W[order])


def test_lists_of_vectors_in_base64(tmp_path: Path) -> None:
    texts = [base64.b64encode(row).decode() for row in W]
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"embeddings": {"base64": texts}}))
    np.testing.assert_array_equal(embgeo.load(path).data, W)
    path.write_text(json.dumps({"embeddings": {"base64": [*texts, "x"]}}))
    with pytest.raises(UnreadableFile, match="not a vector of float32 in base64"):
        embgeo.load(path)


def test_a_list_of_one_vector_under_each_word(tmp_path: Path) -> None:
    path = tmp_path / "vectors.json"
    path.write_text(json.dumps({word: [row] for word, row in PAIRS}))
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens == tuple(WORDS)


GOOD = json.dumps(ROWS[0])


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"[{GOOD}, [1.5, 2.5, 3.5]]", "vector 2 has 3 numbers where 5 are expected"),
        (f"[{GOOD}, [1.5, null, 3.5, 1.0, 2.0]]", "entry 2 of a list holds no vector"),
        (f'[{GOOD}, {{"error": "none"}}]', "entry 2 of a list holds no vector"),
        (f'{GOOD}\n{{"n": 1, "tags": {{}}}}', "value 2 of the file holds no vector"),
        (f"[{GOOD}]x", "it is not JSON at"),
        ('{"n": 1}', "value 1 of the file holds no vector"),
        ("", "no list of numbers where vectors are expected"),
        (f"{GOOD}\n[]", "value 2 of the file holds no vector"),
        (f"[{GOOD}, {GOOD[:20]}", "it is not JSON at"),
        (f"[{GOOD} {GOOD}]", "it is not JSON at"),
        (f'{{"a": {GOOD}, 1: {GOOD}}}', "a key is not a text"),
        (f'{{"a": {GOOD}, "b": {GOOD}, "c": }}', "it is not JSON at"),
        (f'{{"n": 1, "a": {GOOD}, "b": {GOOD}}}', "a record has several vectors"),
        (f"[{GOOD}, " + "[" * 100_000, "nest too deeply"),
    ],
)
def test_what_is_wrong_is_said(text: str, cause: str, tmp_path: Path) -> None:
    (tmp_path / "vectors.json").write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableFile, match=cause):
        open_with(json_vectors, tmp_path / "vectors.json")


def test_values_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_LONGEST", 1000)
    monkeypatch.setattr(json_stream, "_CHUNK", 100)
    path = tmp_path / "vectors.json"
    path.write_text(f'[{GOOD}, "{"x" * 5000}"]')
    with pytest.raises(UnreadableFile, match="a value of more than"):
        embgeo.load(path)
    path.write_text(f"[{GOOD}, [{'1' * 400}, 1, 2, 3, 4]]")
    assert embgeo.load(path).data[1].tolist() == [np.inf, 1, 2, 3, 4]
    path.write_bytes(f"[{GOOD}]".encode() + b"\xff")
    with pytest.raises(UnreadableFile, match="not UTF-8"):
        embgeo.load(path)


@pytest.mark.parametrize(
    "text",
    ['{"vocab": {"a": 0}}', '{"mean": [0.5, 0.5, 0.5]}', '{"ids": [1, 2, 3, 4, 5]}', "[1.5, 2.5"],
)
def test_other_json_is_not_taken_for_vectors(text: str) -> None:
    assert not json_vectors.sniff(text.encode())


def test_vectors_of_a_million_numbers_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_vectors, "MAX_COLUMNS", 4)
    (tmp_path / "vectors.json").write_text(f"[{GOOD}]")
    with pytest.raises(UnreadableFile, match="lines of more than"):
        embgeo.load(tmp_path / "vectors.json")


@pytest.mark.parametrize(
    "content",
    [
        {"words": WORDS, "vectors": ROWS},
        {"model": "x", "vectors": ROWS, "tokens": WORDS},
        {"vocab": {word: k for k, word in reversed(list(enumerate(WORDS)))}, "vectors": ROWS},
        {"columns": [0, 1, 2, 3, 4], "index": WORDS, "data": ROWS},
        {"ids": WORDS, "documents": ["x"] * len(WORDS), "embeddings": ROWS, "metadatas": [None]},
        {"words": WORDS * 600, "vectors": ROWS * 600},
    ],
)
def test_words_beside_vectors_label_them(content: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    matrix = embgeo.load(path)
    times = len(matrix.data) // len(W)
    np.testing.assert_array_equal(matrix.data, np.tile(W, (times, 1)))
    assert matrix.tokens == tuple(WORDS) * times


@pytest.mark.parametrize("words", [WORDS[:-1], {"a": 0, "b": 2}, dict.fromkeys(WORDS, 0)])
def test_other_lists_label_nothing(words: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"vectors": ROWS, "words": words, "x": 1}))
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens is None

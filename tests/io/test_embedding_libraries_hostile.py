"""fastText files and tables whose numbers lie: refused in one line, at once."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest

from embgeo.io import open_checkpoint
from embgeo.io.convert import fasttext as model
from embgeo.io.convert import text_table
from embgeo.io.formats.format import open_with
from tests.support.binary_files import check_refused, head, open_all, quick
from tests.support.embedding_files import fasttext_bytes, matrix_bytes

TABLE = np.arange(18, dtype="f4").reshape(6, 3)
ENTRIES = ((b"cat", 5, 0), (b"dog", 3, 0))


def quantized_bytes(
    *,
    rows: int = 6,
    columns: int = 3,
    size: int = 12,
    codes: int = 12,
    pq: tuple[int, int, int, int] = (3, 2, 2, 1),
    lengths: bool = True,
) -> bytes:
    data = struct.pack("<?qqi", lengths, rows, columns, size) + bytes(range(codes))
    data += struct.pack("<4i", *pq) + np.arange(3 * 256, dtype="<f4").tobytes()
    if lengths:
        data += bytes(6) + struct.pack("<4i", 1, 1, 1, 1) + np.ones(256, dtype="<f4").tobytes()
    return data


SOUND: dict[str, bytes] = {
    "current": fasttext_bytes(),
    "old": fasttext_bytes(version=None),
    "labels": fasttext_bytes(
        (*ENTRIES, (b"__label__x", 2, 1)), model=3, outputs=matrix_bytes(TABLE[:1])
    ),
    "quantized": fasttext_bytes(quantized=1, inputs=quantized_bytes()),
    "quantized without lengths": fasttext_bytes(quantized=1, inputs=quantized_bytes(lengths=False)),
    "both quantized": fasttext_bytes(
        quantized=1,
        inputs=quantized_bytes(),
        quantized_output=1,
        outputs=quantized_bytes(rows=2, size=4, codes=4, lengths=False),
    ),
    "without n-grams or labels": fasttext_bytes(
        model=3, bucket=0, inputs=matrix_bytes(TABLE[:2]), outputs=matrix_bytes(TABLE[:0])
    ),
    "pruned": fasttext_bytes(
        quantized=1, pruned=4, pairs=[(3, 1), (0, 0), (1, 3), (2, 2)], inputs=quantized_bytes()
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_the_sound_files_open(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(SOUND[name])
    assert model.sniff(head(path))
    open_all(model, path)
    assert open_checkpoint(path).tokens == ("cat", "dog")


HOSTILE: dict[str, tuple[bytes, str]] = {
    "version": (fasttext_bytes(version=13), "version 13"),
    "dim 0": (fasttext_bytes(dim=0), "settings"),
    "dim negative": (fasttext_bytes(dim=-3), "settings"),
    "dim huge": (fasttext_bytes(dim=2**31 - 1), "settings"),
    "loss": (fasttext_bytes(loss=9), "settings"),
    "threshold": (fasttext_bytes(t=float("nan")), "settings"),
    "bucket negative": (fasttext_bytes(bucket=-1), "settings"),
    "bucket huge": (fasttext_bytes(bucket=2**31 - 1), "dictionary asks for 2,147,483,649×3"),
    "n-grams without end": (fasttext_bytes(maxn=2**31 - 1), "n-grams of 2,147,483,647"),
    "words 2^31": (fasttext_bytes(sizes=(-(2**31), -(2**31), 0)), "contradict"),
    "words 2^31-1": (fasttext_bytes(sizes=(2**31 - 1, 2**31 - 1, 0)), "more than the file"),
    "no words": (fasttext_bytes(sizes=(0, 0, 0)), "no words"),
    "words and labels": (fasttext_bytes(sizes=(2, 1, 0)), "contradict"),
    "labels before words": (fasttext_bytes(((b"a", 1, 1), (b"b", 1, 0))), "count or kind"),
    "negative count": (fasttext_bytes(((b"a", -1, 0), (b"b", 1, 0))), "count or kind"),
    "count beyond floats": (fasttext_bytes(((b"a", 2**60, 0), (b"b", 1, 0))), "count or kind"),
    "empty words": (fasttext_bytes(((b"", 1, 0), (b"", 1, 0))), "empty word"),
    "endless word": (fasttext_bytes(((b"a" * 70000, 1, 0), (b"b", 1, 0))), "does not end"),
    "pruned without quantizing": (
        fasttext_bytes(pruned=1, pairs=[(0, 0)]),
        "only early test versions",
    ),
    "pruned huge": (fasttext_bytes(pruned=2**62), "more than the file"),
    "pruned outside": (
        fasttext_bytes(pruned=4, pairs=[(0, 9)] * 4, quantized=1, inputs=quantized_bytes()),
        "outside of its matrix",
    ),
    "pruned negative": (
        fasttext_bytes(pruned=4, pairs=[(-1, 0)] * 4, quantized=1, inputs=quantized_bytes()),
        "outside of its matrix",
    ),
    "flag": (fasttext_bytes(quantized=7), "flag"),
    "rows negative": (fasttext_bytes(inputs=matrix_bytes(TABLE, rows=-6)), "negative shape"),
    "rows huge": (fasttext_bytes(inputs=matrix_bytes(TABLE, rows=2**62)), "longer than the file"),
    "columns 0": (fasttext_bytes(inputs=matrix_bytes(TABLE, columns=0)), "no columns"),
    "one row fewer": (fasttext_bytes(inputs=matrix_bytes(TABLE[:5])), "asks for 6×3"),
    "output": (fasttext_bytes(outputs=matrix_bytes(TABLE)), "output matrix has 6×3"),
    "old, bytes behind": (fasttext_bytes(version=None, end=b"\0"), "1 bytes follow"),
    "old, output": (fasttext_bytes(version=None, outputs=matrix_bytes(TABLE)), "output matrix"),
    **{
        f"quantized {name}": (
            fasttext_bytes(quantized=1, inputs=quantized_bytes(**changes)),
            "quantize",
        )
        for name, changes in {
            "rows": {"rows": 2**40},
            "rows negative": {"rows": -1},
            "codes": {"size": 2**31 - 1},
            "codes negative": {"size": -5},
            "fewer codes": {"size": 11, "codes": 11},
            "pieces": {"pq": (3, 3, 2, 1)},
            "width 0": {"pq": (3, 2, 0, 3)},
            "last piece": {"pq": (3, 2, 1, 2)},
            "columns": {"columns": 2**40},
        }.items()
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_fasttext(tmp_path: Path, name: str) -> None:
    content, match = HOSTILE[name]
    path = tmp_path / "a"
    path.write_bytes(content)
    check_refused(model, path, match)


def test_dictionaries_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(SOUND["current"])
    for name, value, match in (
        ("MOST_ENTRIES", 1, "more than 1 entries"),
        ("room_for_words", lambda _: 200, "implausibly much memory"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(model, name, value)
            check_refused(model, path, match)


def test_quantized_rows_are_those_of_their_codes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(SOUND["both quantized"])
    held = {tensor.name: tensor for tensor in open_with(model, path).tensors}
    centroids = np.arange(3 * 256, dtype="f4")
    pieces = [centroids[:512].reshape(256, 2), centroids[512:].reshape(256, 1)]
    codes = np.arange(12).reshape(6, 2)
    expected = np.hstack([piece[codes[:, q]] for q, piece in enumerate(pieces)])
    np.testing.assert_array_equal(held["words"].open(), expected[:2])
    np.testing.assert_array_equal(held["ngrams"].open(), expected[2:])
    np.testing.assert_array_equal(held["output"].open(), expected[:2])


def test_bytes_behind_a_current_model_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(fasttext_bytes(end=bytes(5)))
    assert open_checkpoint(path).notes == ("5 bytes after the model were not read",)


@pytest.mark.slow
def test_a_long_word_of_stray_continuation_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(fasttext_bytes(((b"\x80" * 6_000, 2, 0), (b"x" * 6_000, 1, 0)), maxn=5))
    with quick(10):
        open_all(model, path)


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.slow
def test_cut_fasttext(tmp_path: Path, name: str) -> None:
    content, path = SOUND[name], tmp_path / "a"
    for end in [*range(0, min(len(content), 400), 3), len(content) - 1]:
        path.write_bytes(content[:end])
        check_refused(model, path)


def test_other_files_are_no_old_fasttext() -> None:
    old = SOUND["old"]
    assert model.sniff(old)
    rng = random.Random(0)
    heads = [old[:60], old[:70], bytes(4096), np.arange(1000, dtype="<i4").tobytes()]
    heads += [old[:56] + rng.randbytes(200) for _ in range(50)]
    heads += [np.random.default_rng(0).normal(size=500).tobytes(), b"1 2 3\n" * 500]
    assert not any(model.sniff(start) for start in heads)


# Numbers between tabs


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("0.5\t1\n1\t2\n" * 9 + "1\t2\t3\n", "line 19 has 3 cells where 2"),
        ("0.5\t1\n" * 3000 + "x\t2\n", "not a number"),
        ("0.5\t1\n" * 3000 + "2\n", r"line 3,001 has 1 cells where 2"),
        ("0.5" + "\t1" * 1_000_001 + "\n", "more than 1,000,000 numbers"),
    ],
    ids=["wider", "text", "cut off", "a million columns"],
)
def test_hostile_tsv(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "tensors.tsv"
    path.write_text(text)
    check_refused(text_table, path, match)


def test_what_is_no_table_of_numbers_between_tabs() -> None:
    texts = [b"", b"0.5", b"a\t1\n", b"1\t0.5\n2\t0.25\n", b"0.5\t\n", b"\n"]
    assert not any(text_table.sniff(text) for text in texts)
    assert text_table.sniff(b"0.5\t1\r\n2\t3\r\n")
    assert text_table.sniff(b"\t".join([b"0.125"] * 700)[:4096])

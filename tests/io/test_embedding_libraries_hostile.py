"""fastText files and tables whose numbers lie: refused in one line, at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embgeo.io.formats import fasttext as model
from embgeo.io.formats import text_table
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import check_refused, head, open_all, quick
from tests.support.embedding_files import fasttext_bytes, matrix_bytes

TABLE = np.arange(18, dtype="f4").reshape(6, 3)
ENTRIES = ((b"cat", 5, 0), (b"dog", 3, 0))


SOUND: dict[str, bytes] = {
    "current": fasttext_bytes(),
    "labels": fasttext_bytes(
        (*ENTRIES, (b"__label__x", 2, 1)), model=3, outputs=matrix_bytes(TABLE[:1])
    ),
    "without n-grams or labels": fasttext_bytes(
        model=3, bucket=0, inputs=matrix_bytes(TABLE[:2]), outputs=matrix_bytes(TABLE[:0])
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
    "pruned": (fasttext_bytes(pruned=1, pairs=[(0, 0)]), "quantized"),
    "quantized": (fasttext_bytes(quantized=1), "quantized"),
    "flag": (fasttext_bytes(quantized=7), "flag"),
    "rows negative": (fasttext_bytes(inputs=matrix_bytes(TABLE, rows=-6)), "negative shape"),
    "rows huge": (fasttext_bytes(inputs=matrix_bytes(TABLE, rows=2**62)), "longer than the file"),
    "columns 0": (fasttext_bytes(inputs=matrix_bytes(TABLE, columns=0)), "no columns"),
    "one row fewer": (fasttext_bytes(inputs=matrix_bytes(TABLE[:5])), "asks for 6×3"),
    "output": (fasttext_bytes(outputs=matrix_bytes(TABLE)), "output matrix has 6×3"),
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
    texts = [b"", b"0.5", b"a\t1\n", b"0.5\t\n", b"\n"]
    assert not any(text_table.sniff(text) for text in texts)
    assert text_table.sniff(b"0.5\t1\r\n2\t3\r\n")
    assert text_table.sniff(b"\t".join([b"0.125"] * 700)[:4096])

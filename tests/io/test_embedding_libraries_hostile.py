"""fastText files and tables whose numbers lie: refused in one line, at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embgeo.core.errors import UnreadableFile
from embgeo.io.formats import fasttext as model
from embgeo.io.formats import text_table
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import check_refused, head, open_all, quick
from tests.support.embedding_files import fasttext_bytes, matrix_bytes
from tests.support.sampling import each_folder

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
    "version": fasttext_bytes(version=13),
    "dim 0": fasttext_bytes(dim=0),
    "bucket huge": fasttext_bytes(bucket=2**31 - 1),
    "n-grams without end": fasttext_bytes(maxn=2**31 - 1),
    "words 2^31": fasttext_bytes(sizes=(-(2**31), -(2**31), 0)),
    "words 2^31-1": fasttext_bytes(sizes=(2**31 - 1, 2**31 - 1, 0)),
    "labels before words": fasttext_bytes(((b"a", 1, 1), (b"b", 1, 0))),
    "empty words": fasttext_bytes(((b"", 1, 0), (b"", 1, 0))),
    "endless word": fasttext_bytes(((b"a" * 70000, 1, 0), (b"b", 1, 0))),
    "pruned": fasttext_bytes(pruned=1, pairs=[(0, 0)]),
    "quantized": fasttext_bytes(quantized=1),
    "flag": fasttext_bytes(quantized=7),
    "rows negative": fasttext_bytes(inputs=matrix_bytes(TABLE, rows=-6)),
    "rows huge": fasttext_bytes(inputs=matrix_bytes(TABLE, rows=2**62)),
}


def test_hostile_fasttext(tmp_path: Path) -> None:
    for folder, name in each_folder(tmp_path, HOSTILE):
        content = HOSTILE[name]
        path = folder / "a"
        path.write_bytes(content)
        check_refused(model, path)


def test_dictionaries_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(SOUND["current"])
    for name, value in (
        ("MOST_ENTRIES", 1),
        ("room_for_words", lambda _: 200),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(model, name, value)
            check_refused(model, path)


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
        with quick(), pytest.raises(UnreadableFile):
            open_all(model, path)


# Numbers between tabs


@pytest.mark.slow
def test_hostile_tsv(tmp_path: Path) -> None:
    for folder, text in each_folder(
        tmp_path,
        (
            "0.5\t1\n1\t2\n" * 9 + "1\t2\t3\n",
            "0.5\t1\n" * 3000 + "x\t2\n",
            "0.5\t1\n" * 3000 + "2\n",
            "0.5" + "\t1" * 1_000_001 + "\n",
        ),
    ):
        path = folder / "tensors.tsv"
        path.write_text(text)
        check_refused(text_table, path)


def test_what_is_no_table_of_numbers_between_tabs() -> None:
    texts = [b"", b"0.5", b"a\t1\n", b"0.5\t\n", b"\n"]
    assert not any(text_table.sniff(text) for text in texts)
    assert text_table.sniff(b"0.5\t1\r\n2\t3\r\n")
    assert text_table.sniff(b"\t".join([b"0.125"] * 700)[:4096])

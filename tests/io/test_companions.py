"""Links in a folder that somebody else made: nothing outside the folder is read."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.files import maps, small_files
from embgeo.files.compressed import codec_of
from embgeo.files.links import is_foreign_link
from embgeo.files.maps import map_file
from embgeo.files.small_files import is_companion, read_bytes, read_json
from embgeo.io import load
from embgeo.io.formats import arrow, hdf5, text_table, word2vec_binary, word_vectors
from tests.support.mutants import SAMPLES, WORDS
from tests.support.refusals import refusal

ROWS = 6
SECRET = [f"secret{row}" for row in range(ROWS)]
CONTENTS = {
    "vocab.txt": "\n".join(SECRET) + "\n",
    "vocab.json": json.dumps({word: row for row, word in enumerate(SECRET)}),
    "tokenizer.json": json.dumps(
        {"model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(SECRET)}}}
    ),
    "config.json": json.dumps({"vocab_size": ROWS}),
    "dict.txt": "".join(f"{word} 5\n" for word in SECRET),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    rows = np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32)
    save_file({"embeddings.word_embeddings.weight": rows}, made / "model.safetensors")
    return made


def link(at: Path, target: Path) -> None:
    try:
        os.symlink(target, at)
    except OSError:
        pytest.skip("this system lets no links be made")


@pytest.mark.parametrize("name", [name for name in CONTENTS if name != "dict.txt"])
def test_a_link_out_of_the_folder_is_refused(folder: Path, name: str) -> None:
    outside = folder.parent / "outside"
    outside.write_text(CONTENTS[name], encoding="utf-8")
    link(folder / name, outside)
    with refusal(UnreadableFile):
        embgeo.load(folder)


def test_a_dictionary_next_to_a_file_is_left_out(folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.write_text(CONTENTS["dict.txt"], encoding="utf-8")
    link(folder / "dict.txt", outside)
    assert embgeo.load(folder / "model.safetensors").tokens is None


def test_a_vocabulary_of_a_run_outside_its_folder_is_left_out(folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.write_text("".join(f"{word}\t5\n" for word in SECRET), encoding="utf-8")
    link(folder / "vocabulary.tsv", outside)
    (folder / "run.toml").touch()
    assert embgeo.load(folder).tokens is None


def test_weights_that_are_a_link(folder: Path) -> None:
    """A link that the user names is followed; one in a folder that the user names is not."""
    outside = folder.parent / "outside.safetensors"
    (folder / "model.safetensors").rename(outside)
    link(folder / "model.safetensors", outside)
    with refusal(UnreadableFile):
        embgeo.load(folder)
    assert embgeo.load(folder / "model.safetensors").data.shape == (ROWS, 4)


@pytest.mark.parametrize("below", ["", "0_Transformer"])
def test_a_cache_of_the_hub_consists_of_links(tmp_path: Path, folder: Path, below: str) -> None:
    cache = tmp_path / "models--org--name"
    snapshot = cache / "snapshots" / "0123" / below
    (cache / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (folder / "vocab.txt").write_text(CONTENTS["vocab.txt"], encoding="utf-8")
    for file in list(folder.iterdir()):
        blob = cache / "blobs" / f"hash-of-{file.name}"
        file.rename(blob)
        link(snapshot / file.name, Path(os.path.relpath(blob, snapshot)))
    assert embgeo.load(snapshot).tokens == tuple(SECRET)


def test_links_within_the_folder_are_followed(folder: Path) -> None:
    (folder / "words.txt").write_text(CONTENTS["vocab.txt"], encoding="utf-8")
    link(folder / "vocab.txt", Path("words.txt"))
    assert is_companion(folder / "vocab.txt")
    assert not is_foreign_link(folder / "vocab.txt")
    assert embgeo.load(folder).tokens == tuple(SECRET)


READERS: tuple[Callable[[Path], Any], ...] = (
    partial(read_bytes, inside=True), partial(map_file, inside=True), read_json
)  # fmt: skip


@pytest.mark.parametrize("read", READERS, ids=["bytes", "map", "json"])
def test_what_is_opened_is_checked_and_not_its_name(folder: Path, read: Any) -> None:
    """A file is exchanged for a link between the look at its name and the reading."""
    outside, path = folder.parent / "outside", folder / "added.json"
    outside.write_text('"secret"')
    path.write_text('"own"')
    assert is_companion(path)
    own = read(path)
    path.unlink()
    link(path, outside)
    with refusal(UnreadableFile):
        read(path)
    # The user names the link: it may lead anywhere, whatever was read there before.
    assert map_file(path).tobytes() == read_bytes(path) == b'"secret"'
    path.unlink()
    path.write_text('"own"')
    assert type(read(path)) is type(own)


def test_a_file_that_is_exchanged_back_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was opened is the other file, although its name leads into the folder again."""
    outside, path = folder.parent / "outside", folder / "added.txt"
    outside.write_text("secret")
    path.write_text("own")
    plain = os.open
    monkeypatch.setattr(os, "open", lambda _, flags: plain(outside, flags))
    with refusal(UnreadableFile):
        read_bytes(path, inside=True)


def test_a_pipe_that_takes_the_place_of_a_file_does_not_block(folder: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(folder / "added.json")
    with refusal(UnreadableFile):
        read_json(folder / "added.json")


def test_a_compressed_file_is_opened_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "vocab.txt"
    path.write_bytes(gzip.compress(b"own"))

    def then_exchange(head: bytes) -> Any:
        path.unlink()
        path.write_bytes(gzip.compress(b"secret"))
        return codec_of(head)

    monkeypatch.setattr(small_files, "codec_of", then_exchange)
    assert read_bytes(path, inside=True) == b"own"


#: Formats whose files are opened again: by a library, or for a part of the text.
AGAIN = ("hdf5", "arrow", "parquet", "text vectors", "word2vec binary", "text table", "gzip")


@pytest.mark.parametrize("name", AGAIN)
def test_what_is_opened_again_is_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Libraries and readers of text open a file again, which another may have replaced."""
    (sample,) = (one for one in SAMPLES if one.name == name)
    if sample.needs:
        pytest.importorskip(sample.needs)
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(sample.wrap(sample.make(tmp_path)))
    assert embgeo.load(path).n == len(WORDS)
    other.write_bytes(path.read_bytes())
    plain = maps.stamp_of

    def then_exchange(data: Any) -> Any:
        stamp = plain(data)
        other.replace(path)
        return stamp

    for module in (arrow, hdf5, load, text_table, word2vec_binary, word_vectors):
        monkeypatch.setattr(module, "stamp_of", then_exchange)
    with pytest.raises(UnreadableFile, match="changed or replaced"):
        embgeo.load(path)

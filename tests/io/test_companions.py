"""Links in a folder that somebody else made: nothing outside the folder is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.files.small_files import is_companion, is_foreign_link
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

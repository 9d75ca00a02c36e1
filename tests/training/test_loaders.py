"""One path for the data of all tasks: which files, which part of them, which rows, which notes."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")

from embgeo.core.errors import EmbgeoError
from embgeo.training.complete import complete_settings
from embgeo.training.data.encoding import join_sequences
from embgeo.training.data.vocabulary import Dataset
from embgeo.training.settings import from_tables
from embgeo.training.tasks import make_task
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value

WORDS = [f"w{i}" for i in range(30)]
LINES = {"train": 120, "valid": 20, "test": 20}


def draw_lines(n: int) -> list[str]:
    """Lines of one to nine words, drawn as Zipf has it."""
    generator, chances = np.random.default_rng(n), 1.0 / np.arange(1, 31)
    lengths = generator.integers(1, 10, n)
    lines = [" ".join(generator.choice(WORDS, k, p=chances / chances.sum())) for k in lengths]
    return [*lines, "w1 w2 w3"]


def write_text(folder: Path) -> None:
    for split, n in LINES.items():
        (folder / f"{split}.txt").write_text("\n".join(draw_lines(n)) + "\n", "utf-8")


def write_classes(folder: Path) -> None:
    for split, n in LINES.items():
        lines = [f"{'ab'[i % 2]}\t{line}\n" for i, line in enumerate(draw_lines(n))]
        (folder / f"{split}.tsv").write_text("".join(lines), "utf-8")


def write_pairs(folder: Path) -> None:
    for split, n in LINES.items():
        for language in ("de", "en"):
            text = "\n".join(line.replace("w", language) for line in draw_lines(n))
            (folder / f"{split}.{language}").write_text(text + "\n", "utf-8")


def write_documents(folder: Path) -> None:
    (folder / "train.txt").write_text("\n".join(draw_lines(2000)) + "\n", "utf-8")
    pairs = [f"w{i}\tw{i + 1}\t{i % 7}\n" for i in range(20)]
    (folder / ".sets").mkdir()
    (folder / ".sets" / "EN-WS-353-ALL.txt").write_text("".join(pairs), "utf-8")


#: How to write a corpus of each loader, its settings, and the rows of its training split.
LOADERS: dict[str, tuple[Callable[[Path], None], dict[str, Any], Callable[[Any], Any]]] = {
    "lm": (write_text, {"data": {"min_count": 1}}, lambda train: train),
    "bpe": (write_text, {"data": {"bpe": 290}}, lambda train: train),
    "classification": (
        write_classes,
        {"data": {"min_count": 1}, "task": {"name": "classification"}, "model": {"name": "rcnn"}},
        lambda train: train.rows,
    ),
    "translation": (
        write_pairs,
        {"task": {"name": "translation"}, "model": {"name": "encoder-decoder"}},
        lambda train: train.target.rows,
    ),
    "skipgram": (
        write_documents,
        {
            "data": {"min_count": 1},
            "task": {"name": "skipgram"},
            "model": {"name": "skip-gram"},
            "optimizer": {"kind": "sgd"},
        },
        lambda train: train.rows,
    ),
}


def load(loader: str, folder: Path, task: Any = None, **data: Any) -> Any:
    tables = {"data": {"path": str(folder), **data}, "task": task or {}}
    config = from_tables(LOADERS[loader][1]).updated(tables)
    if loader == "skipgram":
        config = config.updated({"task": {"wordsim": str(folder / ".sets")}})
    return make_task(complete_settings(config)).load(config)


def words_of(loader: str, dataset: Dataset) -> list[str]:
    return [dataset.vocabulary.tokens[row] for row in LOADERS[loader][2](dataset.train)]


def test_a_part_of_a_training_split(tmp_path: Path) -> None:
    """Documents and pairs are drawn; one in which the part ends is left out."""
    for folder, loader in each_folder(tmp_path, LOADERS):
        LOADERS[loader][0](folder)
        whole = load(loader, folder)
        words = words_of(loader, whole)
        sequences = {
            "classification": whole.train,
            "translation": getattr(whole.train, "target", 0),
        }
        lengths, half = np.array([]), 301 if loader != "skipgram" else 5_003
        if loader in sequences:
            lengths = sequences[loader].lengths
            lengths = lengths[np.random.default_rng(0).permutation(len(lengths))]
            half = int(lengths[:60].sum())
        first = load(loader, folder, tokens=half)
        part = words_of(loader, first)
        assert not Counter(part) - Counter(words)
        assert part == words[: len(part)] or loader in sequences
        assert first.vocabulary.counts.sum() < whole.vocabulary.counts.sum()
        assert any(note.startswith(f"the first {half:,} ") for note in first.notes)
        if loader != "skipgram":  # its validation documents are lines of the same text
            assert first.sizes["valid"] == whole.sizes["valid"]
        if loader in sequences:
            assert len(part) == half
            assert len(first.train) == 60
            assert len(load(loader, folder, tokens=half + 1).train) == 60


def test_a_part_of_sorted_documents_has_every_class(tmp_path: Path) -> None:
    write_classes(tmp_path)
    lines = (tmp_path / "train.tsv").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "train.tsv").write_text("".join(sorted(lines)), "utf-8")
    found = load("classification", tmp_path, tokens=200)
    assert min(np.bincount(found.train.classes, minlength=2)) > 10


def test_long_pairs_are_left_out(tmp_path: Path) -> None:
    """By their longer side: the target has a word more in every third line."""
    write_pairs(tmp_path)
    lines = (tmp_path / "train.en").read_text("utf-8").splitlines()
    longer = [f"{line} en1 en1" if i % 3 == 0 else line for i, line in enumerate(lines)]
    (tmp_path / "train.en").write_text("\n".join(longer) + "\n", "utf-8")
    whole = load("translation", tmp_path).train
    both = np.maximum(whole.source.lengths, whole.target.lengths)
    part = load("translation", tmp_path, task={"length": 8}).train
    assert part.texts == tuple(t for t, n in zip(whole.texts, both, strict=True) if n <= 8)
    assert 0 < len(part) < np.sum(whole.source.lengths <= 8)


def test_notes_count_what_is_left_out(tmp_path: Path) -> None:
    for folder, loader in each_folder(tmp_path, ("classification", "translation")):
        LOADERS[loader][0](folder)
    for name, text in (("0/train.tsv", "c\tw1\n"), ("1/val.de", "de1\n"), ("1/val.en", "\n")):
        (tmp_path / name).write_text(text * 3 + "a\tde1\n", "utf-8")
    with (tmp_path / "0" / "train.tsv").open("a", encoding="utf-8") as file:
        file.write("b\tw1\n" * 20)
    merged = load("classification", tmp_path / "0", task={"merge": ["a", "b"]})
    assert "3 documents are of classes that task.merge leaves out" in merged.notes
    assert "3 pairs with an empty side are left out" in load("translation", tmp_path / "1").notes


def test_size_bounds_the_rows(tmp_path: Path) -> None:
    for folder, loader in each_folder(tmp_path, LOADERS):
        if loader != "bpe":
            LOADERS[loader][0](folder)
            assert len(load(loader, folder, size=20).vocabulary) == 20
            with refusal():
                load(loader, folder, size=1)


def test_notes_say_what_is_read_and_no_link_leads_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a password\n" * 40, "utf-8")
    for folder, loader in each_folder(tmp_path, LOADERS):
        LOADERS[loader][0](folder)
        plain = load(loader, folder)
        for file in [*folder.glob("train.*")]:
            (folder / f"train.more{file.suffix}").symlink_to(secret)
            (folder / f".train{file.suffix}").write_text("hidden\n", "utf-8")
        found = load(loader, folder)
        assert found.files == plain.files
        assert words_of(loader, found) == words_of(loader, plain)
        names = {name for name in found.files if "EN-" not in name and "json" not in name}
        said = [note for note in found.notes if " is " in note and " train" in f" {note}"]
        assert names == set(said[0].replace(";", "").replace(",", "").split()) & names
        assert any("links out of the folder" in note for note in found.notes)
        if loader == "translation":
            (folder / "train.more.de").unlink()
            (folder / "train.a.de").write_text("own\n", "utf-8")
            (folder / "train.a.en").symlink_to(secret)
            with refusal():
                load(loader, folder)


@each_value
@pytest.mark.parametrize("loader", LOADERS)
def test_compressed_files_hold_the_same(tmp_path: Path, loader: str) -> None:
    LOADERS[loader][0](tmp_path)
    plain = load(loader, tmp_path)
    for file in tmp_path.glob("*.*"):
        if file.is_file():
            file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
    packed = load(loader, tmp_path)
    assert words_of(loader, packed) == words_of(loader, plain)
    assert not plain.files.keys() & {name for name in packed.files if name.endswith(".gz")}


def damage(folder: Path, content: bytes | None) -> None:
    for file in folder.glob("train.*"):
        file.unlink()
        if content is not None:
            file.write_bytes(content)


#: Nothing, and nothing that is compressed; another encoding; a byte that no text has.
BAD = (None, b"", gzip.compress(b""), b"ok\ncaf\xe9 au lait, please\n", b"a\tb\0\n")


@pytest.mark.parametrize("content", BAD)
def test_what_is_not_there_or_no_text_is_refused(tmp_path: Path, content: bytes | None) -> None:
    for folder, loader in each_folder(tmp_path, LOADERS):
        LOADERS[loader][0](folder)
        damage(folder, content)
        with refusal(EmbgeoError):
            load(loader, folder)


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    for loader in LOADERS:
        with refusal():
            load(loader, tmp_path / ("x" * 300))


def test_a_line_of_json_is_a_document(tmp_path: Path) -> None:
    """Files of several formats and shards are one corpus."""
    write_classes(tmp_path)
    more = [{"label": "a", "text": "new words"}, {"label": "b", "text": "w1"}]
    (tmp_path / "train-2.jsonl").write_text("\n".join(map(json.dumps, more)) + "\n", "utf-8")
    found = load("classification", tmp_path)
    assert found.sizes["train"] == 123
    assert {"new", "words"} <= set(found.vocabulary.tokens)


def test_a_part_without_a_whole_text_is_refused() -> None:
    with refusal(EmbgeoError):
        join_sequences([range(9), range(9)]).within(8)

"""Corpora of `embgeo train`: which text becomes which rows, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.files import long_texts
from embgeo.training.data import Corpus, encoding, layouts
from embgeo.training.data import encoding as word_numbers
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, sample_cases
from tests.support.training_runs import load_text

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
SENTENCES = "the cat sat on the mat\na dog ran to the cat\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))
    return path


def folder(path: Path, train: str = SENTENCES * 20, **others: str) -> Path:
    """Three splits, of which some are given."""
    splits = {"train": train, "valid": SENTENCES, "test": SENTENCES, **others}
    for name, text in splits.items():
        write(path / f"{name}.txt", text)
    return path


def words_of(corpus: Corpus, rows: np.ndarray) -> str:
    return " ".join(corpus.vocabulary.tokens[row] for row in rows)


# --- Published corpora ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "lengths", "types"),
    sample_cases(
        [
            ("ptb", (929_589, 73_760, 82_430), 10_000),
            ("wikitext-2", (2_088_628, 217_646, 245_569), 33_278),
        ],
        2,
    ),
)
@pytest.mark.slow
def test_published_corpora_have_the_published_numbers(
    name: str, lengths: tuple[int, ...], types: int
) -> None:
    if not (DATA / name).is_dir():
        pytest.skip(f"{name} is not next to this checkout, in shared/data")
    corpus = load_text(DATA / name)
    assert corpus.test is not None
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == lengths
    assert len(corpus.vocabulary) == types
    assert corpus.name == name
    assert corpus.unit == "sentences"
    assert {"<unk>", "<eos>"} <= set(corpus.vocabulary.tokens)
    assert len(corpus.files) == 3
    assert words_of(corpus, corpus.valid[-3:]).endswith("<eos>")
    assert not any("compared" in note for note in corpus.notes)
    small = load_text(DATA / name, size=5000, tokens=50_000)
    assert small.name == name
    assert len(small.train) == 50_000
    assert any("not to be compared with published" in note for note in small.notes)


def wikitext(path: Path, text: str = " \n = A = \n \n some <unk> words \n" * 20) -> Path:
    for split in ("train", "valid", "test"):
        write(path / f"wiki.{split}.tokens", text)
    write(path / "SOURCE.txt", "not part of it")
    return path


def test_a_layout_alone_does_not_make_a_published_corpus(tmp_path: Path) -> None:
    """WikiText-103 has files of the same names; its empty lines are lines too."""
    corpus = load_text(wikitext(tmp_path / "wikitext-103"))
    assert corpus.name == "wikitext-103"
    assert any("hold another text" in note for note in corpus.notes)
    assert words_of(corpus, corpus.train[:6]) == "<eos> = A = <eos> <eos>"
    assert len(corpus.train) == 20 * (3 + 3 + 4)
    assert sorted(corpus.files) == [f"wiki.{split}.tokens" for split in ("test", "train", "valid")]


def test_wikitext_103_and_wikitext_2_differ_in_length(tmp_path: Path) -> None:
    short, long = wikitext(tmp_path / "short"), wikitext(tmp_path / "long")
    with (long / "wiki.train.tokens").open("r+b") as stream:
        stream.truncate(2 * 103_227_021)  # sparse
    found = [
        layouts.find_published(
            path, {s: [path / f"wiki.{s}.tokens"] for s in ("train", "valid", "test")}
        )
        for path in (short, long)
    ]
    assert [one.name for one in found if one] == ["wikitext-2", "wikitext-103"]
    assert all(one.titles for one in found if one)


# --- Splits -----------------------------------------------------------------------------------


def test_splits_by_name(tmp_path: Path) -> None:
    corpus = load_text(folder(tmp_path, valid="a cat ran\n", test="the dog"))
    assert words_of(corpus, corpus.valid) == "a cat ran <eos>"
    assert corpus.test is not None
    assert words_of(corpus, corpus.test) == "the dog <eos>"
    assert len(corpus.train) == 20 * 14
    assert corpus.files["valid.txt"] == hashlib.sha256(b"a cat ran\n").hexdigest()
    assert corpus.name == tmp_path.name


def test_several_files_of_a_split_and_no_test_split(tmp_path: Path) -> None:
    write(tmp_path / "training_b.txt", "a dog ran\n" * 20)
    write(tmp_path / "a.train.txt", "the cat sat\n" * 20)
    write(tmp_path / "dev.text", "a cat ran\n")
    write(tmp_path / "notes.txt", "no split")
    write(tmp_path / "test.pdf", "no text")
    write(tmp_path / "._train.txt", "hidden")
    corpus = load_text(tmp_path)
    assert words_of(corpus, corpus.train[[0, -2]]) == "the ran"
    assert words_of(corpus, corpus.valid) == "a cat ran <eos>"
    assert corpus.test is None
    assert set(corpus.files) == {"training_b.txt", "a.train.txt", "dev.text"}


def test_a_text_of_sentences_is_cut_by_a_draw_of_whole_lines(tmp_path: Path) -> None:
    lines = [f"w{number % 50} x{number}" for number in range(1000)]
    corpus = load_text(write(tmp_path / "t.txt", "\n".join(lines)), min_count=1, seed=3)
    assert corpus.test is not None
    assert len(corpus.valid) == len(corpus.test) == 150
    again = load_text(tmp_path / "t.txt", min_count=1, seed=3)
    other = load_text(tmp_path / "t.txt", min_count=1, seed=4)
    assert np.array_equal(again.valid, corpus.valid)
    assert not np.array_equal(other.valid, corpus.valid)
    first = [line.split()[0] for line in lines]
    for rows in (corpus.train, corpus.valid, corpus.test):
        found = words_of(corpus, rows).removesuffix(" <eos>").split(" <eos> ")
        assert {line.split()[0] for line in found} <= set(first)
    assert "whole lines drawn with seed 3" in corpus.notes[0]


def numbers_of(corpus: Corpus) -> list[int]:
    """Of the lines of the training split, in its order."""
    lines = words_of(corpus, corpus.train).split(" <eos> ")
    return [int(line.split()[1][1:]) for line in lines if "x" in line]


def test_the_training_text_is_shuffled_in_pieces(tmp_path: Path) -> None:
    text = "\n".join(f"w{number % 50} x{number}" for number in range(2000))
    path = write(tmp_path / "t.txt", text)
    mixed = load_text(path, min_count=1)
    after = numbers_of(mixed)
    before = sorted(after)
    assert after != before
    # 1,800 lines of three tokens: six pieces of whole lines, each in the order of the text.
    steps = pairwise(after)
    assert sum(before.index(b) != before.index(a) + 1 for a, b in steps) <= 5
    assert np.array_equal(load_text(path, min_count=1).train, mixed.train)
    assert not np.array_equal(load_text(path, min_count=1, seed=1).train, mixed.train)
    assert mixed.notes[0].endswith("the training text in pieces of 1,000 tokens, shuffled")


def test_paragraphs_are_kept_whole(tmp_path: Path) -> None:
    paragraphs = [f"p{number} one\np{number} two\n" for number in range(300)]
    corpus = load_text(write(tmp_path / "t.txt", "\n".join(paragraphs)), min_count=1)
    assert any("whole paragraphs" in note for note in corpus.notes)
    assert len(corpus.valid) == 90
    assert "<unk>" in words_of(corpus, corpus.valid)
    train = words_of(corpus, corpus.train).split(" <eos>")
    counted = Counter(line.split()[0] for line in train if line)
    assert set(counted.values()) == {2}


def test_a_short_text_is_cut_at_the_end(tmp_path: Path) -> None:
    text = write(tmp_path / "t.txt", " ".join(f"w{n % 7}" for n in range(1000)))
    corpus = load_text(text)
    assert corpus.test is not None
    assert len(corpus.valid) == len(corpus.test) == 50
    assert words_of(corpus, corpus.valid[:2]) == f"w{901 % 7} w{902 % 7}"
    assert any("last tenth" in note for note in corpus.notes)


# --- Words ------------------------------------------------------------------------------------


def test_counts_are_of_the_training_split_alone(tmp_path: Path) -> None:
    corpus = load_text(folder(tmp_path, valid="cat cat cat zebra\n"), min_count=1)
    counts = dict(zip(corpus.vocabulary.tokens, corpus.vocabulary.counts.tolist(), strict=True))
    naive = Counter((SENTENCES * 20).replace("\n", " <eos> ").split())
    assert counts == {**naive, "<unk>": 0}
    assert words_of(corpus, corpus.valid) == "cat cat cat <unk> <eos>"
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    assert corpus.vocabulary.tokens == tuple(token for token, _ in order)


def test_size_counts_all_rows_and_the_rest_is_unknown(tmp_path: Path) -> None:
    corpus = load_text(folder(tmp_path), size=5)
    assert set(corpus.vocabulary.tokens) == {"the", "cat", "<unk>", "<eos>", "a"}
    counts = dict(zip(corpus.vocabulary.tokens, corpus.vocabulary.counts.tolist(), strict=True))
    assert counts == {"<unk>": 6 * 20, "the": 60, "cat": 40, "<eos>": 40, "a": 20}
    assert corpus.vocabulary.counts.sum() == len(corpus.train)
    assert corpus.vocabulary.tokens[0] == "<unk>"
    unknown = np.mean(corpus.valid == corpus.vocabulary.unknown)
    assert any(f"{unknown:.1%} of valid" in note for note in corpus.notes)


def test_nothing_left_out_needs_no_unknown_token(tmp_path: Path) -> None:
    corpus = load_text(folder(tmp_path), size=1000)
    assert corpus.vocabulary.unknown is None
    assert "<unk>" not in corpus.vocabulary.tokens


def test_an_unknown_token_of_the_text_is_the_one_that_is_used(tmp_path: Path) -> None:
    corpus = load_text(folder(tmp_path, "the <unk> sat\n" * 99 + "rare", valid="new <unk>"))
    assert corpus.vocabulary.tokens.count("<unk>") == 1
    assert "rare" in corpus.vocabulary.tokens, "nothing more is made unknown"
    assert words_of(corpus, corpus.valid) == "<unk> <unk> <eos>"
    only_valid = load_text(folder(tmp_path / "2", valid="a <unk>"), min_count=1)
    assert words_of(only_valid, only_valid.valid) == "a <unk> <eos>"


def test_minimum_count_of_three_where_nothing_is_asked(tmp_path: Path) -> None:
    corpus = load_text(folder(tmp_path, SENTENCES * 20 + "three three three two two one"))
    assert "three" in corpus.vocabulary.tokens
    assert "two" not in corpus.vocabulary.tokens
    assert any("less than 3 times" in note for note in corpus.notes)
    lower = load_text(tmp_path, min_count=2)
    assert "two" in lower.vocabulary.tokens
    assert any("less than 2 times" in note for note in lower.notes)


def test_any_white_space_separates_words_and_only_line_ends_end_lines(tmp_path: Path) -> None:
    text = "tab\tno-break\u00a0form\ffeed\u2028x\r\n" * 50
    corpus = load_text(folder(tmp_path, "\ufeff" + text))
    assert words_of(corpus, corpus.train[:6]) == "tab no-break form feed x <eos>"


def test_pieces_of_long_texts_are_joined_without_a_seam(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(f"w{n} ü{n}{' ' if n % 7 else chr(10)}" for n in range(500))
    expected = load_text(folder(tmp_path / "a", text, valid="w1 ü"), min_count=1)
    monkeypatch.setattr(long_texts, "_BLOCK", 16)
    found = load_text(tmp_path / "a", min_count=1)
    assert found.vocabulary.tokens == expected.vocabulary.tokens
    assert np.array_equal(found.train, expected.train)
    one_line = folder(tmp_path / "b", text.replace("\n", " "), valid="w1 ü")
    assert len(load_text(one_line, min_count=1).train) == 1001


def test_the_text_of_the_readme() -> None:
    corpus = load_text(ROOT / "fixtures" / "pydocs.txt.gz", size=3000)
    assert corpus.test is not None
    assert corpus.name == "pydocs"
    assert len(corpus.vocabulary) == 3000
    assert len(corpus.train) + len(corpus.valid) + len(corpus.test) == 475_082 + 10_318
    assert len(corpus.valid) == pytest.approx(0.05 * 485_400, rel=1e-3)


# --- What is refused --------------------------------------------------------------------------


def damaged(path: Path) -> Path:
    path.write_bytes(gzip.compress((SENTENCES * 4000).encode())[:-20])
    return path


def raw(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": lambda p: p / "no.txt",
    "below a file": lambda p: write(p / "t.txt", "a") / "b",
    "blank": lambda p: write(p / "t.txt", " \n \n"),
    "tiny": lambda p: write(p / "t.txt", SENTENCES),
    "binary behind text": lambda p: raw(p / "t.txt", b"ok ok\n" * 60_000 + b"a\0\n"),
    "utf-16": lambda p: raw(p / "t.txt", SENTENCES.encode("utf-16")),
    "cut character": lambda p: raw(p / "t.txt", b"ok\ncaf\xc3"),
    "one word": lambda p: raw(p / "t.txt", b"x" * 3_000_000),
    "damaged": lambda p: damaged(p / "t.txt.gz"),
    "pipe": lambda p: pipe(p / "t.txt"),
    "no validation": lambda p: write(p / "train.txt", SENTENCES * 20).parent,
    "empty split": lambda p: folder(p, valid=""),
    "blank split": lambda p: folder(p, test="\n"),
}


def test_texts_that_cannot_be_used_are_refused_in_one_line(tmp_path: Path) -> None:
    for folder, case in each_folder(tmp_path, REFUSED):
        path = REFUSED[case](folder)
        with refusal(UnreadableFile):
            load_text(path)


def test_a_word_that_is_frequent_enough_is_needed(tmp_path: Path) -> None:
    with refusal(BadOption):
        load_text(folder(tmp_path), min_count=1000)


def test_hostile_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path, " ".join(map(str, range(5000))))
    with monkeypatch.context() as patch:
        patch.setattr(word_numbers, "MOST_TYPES", 1000)
        patch.setattr(long_texts, "_BLOCK", 1000)
        with refusal(UnreadableFile):
            load_text(path)
    with monkeypatch.context() as patch:
        patch.setattr(encoding, "MOST_TOKENS", 1000)
        with refusal(UnreadableFile):
            load_text(path)
        assert len(load_text(path, tokens=500, size=50).train) == 500

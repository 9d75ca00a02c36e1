"""Texts as documents of lower-case words, for word vectors, and sets of word similarity."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embgeo.core.errors import UnreadableFile, argument
from embgeo.training.data.encoding import Ids, Words, encode_files
from embgeo.training.data.layouts import describe_files, list_files, name_data
from embgeo.training.data.text import TAG, TEXTS, find_ending, hash_files, is_folder, pieces
from embgeo.training.data.vocabulary import Dataset, Vocabulary, choose_rows
from embgeo.training.sections import DataSettings
from embgeo.training.study.numbers import DECIDING, SETS
from embgeo.training.study.outcomes import LEAST_PAIRS

#: File names at github.com/mfaruqui/eval-word-vectors, and the names of the sets here.
KNOWN = {
    "EN-RG-65": "rg65",
    "EN-WS-353-ALL": "ws353",
    "EN-WS-353-SIM": "ws353_sim",
    "EN-WS-353-REL": "ws353_rel",
    "EN-RW-STANFORD": "rw",
    "EN-MEN-TR-3k": "men",
    "EN-SIMLEX-999": "simlex",
    "EN-SimVerb-3500": "simverb",
    "EN-MTurk-287": "mturk287",
    "EN-MTurk-771": "mturk771",
    "EN-MC-30": "mc30",
    "EN-VERB-143": "verb143",
    "EN-YP-130": "yp130",
}


@dataclass(frozen=True, slots=True)
class WordPairs:
    """A set of word similarity: pairs in lower case with ratings; larger is more similar."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    gold: tuple[float, ...]


def find_sets(folder: Path) -> dict[str, Path]:
    """Find the files of the sets in a folder by name, in the order of `KNOWN`."""
    files = {file.name: file for file in list_files(folder, lambda file: file.suffix == ".txt")[0]}
    names = {f"{stem}.txt": name for stem, name in KNOWN.items()}
    found = {name: files[file] for file, name in names.items() if file in files}
    if DECIDING not in found:
        raise UnreadableFile(
            "holds no EN-WS-353-ALL.txt (lines of two words and a score, with tabs between them)",
            where=folder,
            way_out=f"set task.wordsim with {argument('settings', 'task.wordsim=FOLDER')}",
        )
    return found


def read_word_pairs(folder: Path) -> tuple[WordPairs, ...]:
    """Read the sets of a folder; other files are ignored."""
    return tuple(read_set(name, path) for name, path in find_sets(folder).items())


def read_set(name: str, path: Path) -> WordPairs:
    """Read a file with two words and a score on each line."""
    pairs, gold = [], []
    lines = "".join(pieces(path)).splitlines()
    for number, line in enumerate(lines, 1):
        parts = line.lower().split()
        if not parts:
            continue
        try:
            first, second, score = parts
            value = float(score)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise UnreadableFile(f"line {number:,} is not two words and a score", where=path)
        pairs.append((first, second))
        gold.append(value)
    return WordPairs(name, tuple(pairs), tuple(gold))


#: One document in this many is for validation.
HELD_OUT = 50
FEWEST_TOKENS = 100
#: The last column of a table is a text, too.
_TABLE = ".tsv"
#: The default of `DataSettings.min_count`.
MIN_COUNT = 5
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class TokenStream:
    """Tokens of several documents: the row of each, and the number of its document."""

    rows: Ids
    documents: Ids


@dataclass(frozen=True, slots=True)
class DocumentCorpus(Dataset):
    """Texts to train word vectors on, and sets of word pairs to evaluate them."""

    similarity: tuple[WordPairs, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """Tokens of each split, and word pairs of all sets."""
        pairs = sum(len(one.pairs) for one in self.similarity)
        return {"train": len(self.train.rows), "valid": len(self.valid.rows), "test": pairs}


def load_documents(chosen: DataSettings, similarity: tuple[WordPairs, ...]) -> DocumentCorpus:
    """Read a text, or all texts of a folder, with a document in each line.

    Words are runs of letters and digits in lower case. Tags in angle brackets (``<br />``,
    ``<unk>``) are left out, and all columns but the last of a ``.tsv`` file. Words that are rare in
    the training documents are removed from the text before windows are formed, as in word2vec.
    """
    path, words = Path(chosen.path), Words(Path(chosen.path))
    files, notes = [path], list[str]()
    if is_folder(path):
        files, notes = list_files(path, lambda file: find_ending(file) in (*TEXTS, _TABLE))
        if not files:
            raise UnreadableFile(
                f"the folder holds no text ({', '.join((*TEXTS, _TABLE))}; plain, .gz or .zst)",
                where=path,
                way_out=f"name another with {argument('data')}",
            )
        notes.append(describe_files({"the text": files}))

    def encode(lines: list[str], file: Path) -> Iterator[list[int]]:
        for line in lines:
            own = line.rpartition("\t")[2] if find_ending(file) == _TABLE else line
            yield words.encode(_WORD.findall(TAG.sub(" ", own).lower()))

    text = encode_files(files, encode, end=None, limit=chosen.tokens)
    lengths = np.diff(text.lines, prepend=0)
    ids = text.ids[: chosen.tokens]
    documents = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)[: chosen.tokens]
    held_out = documents % HELD_OUT == HELD_OUT - 1
    vocabulary, rows, placed = choose_rows(
        list(words),
        {"train": ids[~held_out], "valid": ids[held_out]},
        min_count=MIN_COUNT if chosen.min_count is None else chosen.min_count,
        size=chosen.size,
        unknown=False,
    )
    train, valid = (
        TokenStream(found[found >= 0].astype(np.int32), own[found >= 0])
        for found, own in zip(
            rows.values(), (documents[~held_out], documents[held_out]), strict=True
        )
    )
    if min(len(train.rows), len(valid.rows)) < FEWEST_TOKENS:
        raise UnreadableFile(
            f"fewer than {FEWEST_TOKENS} words with a row are left for training or validation",
            where=path,
            way_out=f"lower data.min_count with {argument('settings', 'data.min_count=N')}",
        )
    if chosen.tokens is not None:
        notes.append(f"the first {len(ids):,} words of the text")
    notes.append(f"every line is a document, and one in {HELD_OUT} is for validation")
    notes += placed
    if similarity:
        notes.append(describe_coverage(similarity, vocabulary, path))
    return DocumentCorpus(
        name=name_data(path),
        vocabulary=vocabulary,
        train=train,
        valid=valid,
        test=None,
        unit="words",
        notes=tuple(notes),
        files=hash_files(path, files),
        similarity=similarity,
    )


def describe_coverage(similarity: tuple[WordPairs, ...], vocabulary: Vocabulary, path: Path) -> str:
    """Describe how many pairs of each set are known; refuse few of the deciding set."""
    known = set(vocabulary.tokens)
    parts = []
    for one in similarity:
        covered = sum(known.issuperset(pair) for pair in one.pairs)
        if one.name == DECIDING and covered < LEAST_PAIRS:
            raise UnreadableFile(
                f"{covered} of the {len(one.pairs):,} pairs of {SETS[one.name][0]} have both words "
                f"in the vocabulary of the text, and {LEAST_PAIRS} are needed",
                where=path,
            )
        parts.append(f"{SETS[one.name][0]} {covered:,} of {len(one.pairs):,}")
    return f"pairs that have both words: {'; '.join(parts)}"

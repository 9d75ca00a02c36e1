"""Texts as documents of lower-case words, for word vectors, and sets of word similarity."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import UnreadableFile, argument
from embgeo.training.data import text
from embgeo.training.data.encoding import Ids, Words, describe_part, join_sequences
from embgeo.training.data.vocabulary import Dataset, Vocabulary
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


def read_word_pairs(folder: Path) -> tuple[WordPairs, ...]:
    """Read the sets of a folder in the order of `KNOWN`; other files are ignored."""
    paths = {name: folder / f"{stem}.txt" for stem, name in KNOWN.items()}
    found = {name: path for name, path in paths.items() if path.is_file()}
    if "ws353" not in found:
        raise UnreadableFile(
            "holds no EN-WS-353-ALL.txt (lines of two words and a score, with tabs between them)",
            where=folder,
            way_out=f"set task.wordsim with {argument('settings', 'task.wordsim=FOLDER')}",
        )
    return tuple(read_set(name, path) for name, path in found.items())


def read_set(name: str, path: Path) -> WordPairs:
    """Read a file with two words and a score on each line."""
    pairs, gold = [], []
    lines = "".join(text.pieces(path)).splitlines()
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
_ENDINGS = (".txt", ".text", ".tokens", ".raw", ".tsv")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class TokenStream:
    """Tokens of several documents: the row of each, and the number of its document."""

    rows: Ids
    documents: Ids

    def take(self, n: int) -> TokenStream:
        """Return the first tokens."""
        return TokenStream(self.rows[:n], self.documents[:n])


@dataclass(frozen=True, slots=True)
class DocumentCorpus(Dataset):
    """Texts to train word vectors on, and sets of word pairs to evaluate them."""

    similarity: tuple[WordPairs, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """Tokens of each split, and word pairs of all sets."""
        pairs = sum(len(one.pairs) for one in self.similarity)
        return {"train": len(self.train.rows), "valid": len(self.valid.rows), "test": pairs}


def load_documents(
    path: Path,
    *,
    min_count: int,
    size: int | None,
    tokens: int | None,
    skip: int,
    similarity: tuple[WordPairs, ...],
) -> DocumentCorpus:
    """Read a text, or all texts of a folder, with a document in each line.

    Words are runs of letters and digits in lower case. Tags in angle brackets (``<br />``,
    ``<unk>``) are left out, and all columns but the last of a ``.tsv`` file. Words that occur less
    than `min_count` times in the training documents are removed from the text before windows are
    formed, as in word2vec.

    `path`: a file, or a folder whose texts (``.txt``, ``.tokens``, ``.raw``, ``.tsv``, compressed
    or not) are read in the order of their names. `size`: words to keep at most, the most frequent
    ones. `tokens`, `skip`: words to read at most, behind the first `skip`.
    """
    files = list_texts(path)
    words = Words(path)
    read = join_sequences(encode_documents(files, words, tokens, skip))
    documents = np.repeat(np.arange(len(read), dtype=np.int32), read.lengths)
    held_out = documents % HELD_OUT == HELD_OUT - 1
    counts = np.bincount(read.rows[~held_out], minlength=len(words))
    vocabulary, row_of = choose_words(list(words), counts, min_count, size)
    placed = row_of[read.rows]
    train, valid = (
        TokenStream(placed[chosen & (placed >= 0)], documents[chosen & (placed >= 0)])
        for chosen in (~held_out, held_out)
    )
    if min(len(train.rows), len(valid.rows)) < FEWEST_TOKENS:
        raise UnreadableFile(
            f"fewer than {FEWEST_TOKENS} words that occur {min_count:,} times or more are left for "
            "training or validation",
            where=path,
            way_out=f"lower data.min_count with {argument('settings', 'data.min_count=N')}",
        )
    notes = (
        *describe_part(len(read.rows), tokens, skip, "words of the text"),
        f"every line is a document, and one in {HELD_OUT} is for validation",
        f"{len(words) - len(vocabulary):,} of {len(words):,} different words, all rare, are "
        f"removed: {1.0 - (placed >= 0).mean():.1%} of the text",
        *([describe_coverage(similarity, vocabulary, path)] if similarity else []),
    )
    hashes = text.hash_files(path, files)
    return DocumentCorpus(
        path.name, vocabulary, train, valid, None, "words", notes, hashes, similarity
    )


def list_texts(path: Path) -> list[Path]:
    """List the file, or the texts of a folder in the order of their names."""
    if not text.is_folder(path):
        return [path]
    found = [file for file in text.list_folder(path) if text.find_ending(file) in _ENDINGS]
    if not found:
        raise UnreadableFile(
            f"the folder holds no text ({', '.join(_ENDINGS)}; plain, .gz or .zst)",
            where=path,
            way_out=f"name another with {argument('data')}",
        )
    return found


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


def encode_documents(
    files: list[Path], words: Words, limit: int | None, skip: int
) -> Iterator[list[int]]:
    """Yield the words of each document as numbers, `limit` words at most, behind `skip` words.

    A document is a line, or the last column of a line of a table.
    """
    left = limit
    for file in files:
        table = text.find_ending(file) == ".tsv"
        for line in text.read_lines(file):
            line = line.rpartition("\t")[2] if table else line
            spoken = _WORD.findall(text.TAG.sub(" ", line).lower())
            begin = min(skip, len(spoken))
            skip -= begin
            found = [words[word] for word in spoken[begin:][:left]]
            if found:
                yield found
            if left is not None:
                left -= len(found)
                if not left:
                    return


def choose_words(
    words: list[str], counts: IntArray, min_count: int, size: int | None
) -> tuple[Vocabulary, Ids]:
    """Keep the most frequent words; the row of each word is −1 if it is left out."""
    order = sorted(np.flatnonzero(counts >= min_count), key=lambda i: (-counts[i], words[i]))[:size]
    row_of = np.full(len(words), -1, dtype=np.int32)
    row_of[order] = np.arange(len(order), dtype=np.int32)
    return Vocabulary(tuple(words[i] for i in order), counts[order]), row_of

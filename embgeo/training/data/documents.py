"""Texts as documents of lower-case words, for models of words and their neighbors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import UnreadableFile
from embgeo.training.data.analogies import Analogy
from embgeo.training.data.encoding import Words
from embgeo.training.data.text import find_ending, read_lines, sha256
from embgeo.training.data.vocabulary import Vocabulary
from embgeo.training.data.word_pairs import WordPairs
from embgeo.training.study.word_similarity import DECIDING, LEAST_PAIRS, SETS

Ids = npt.NDArray[np.int32]

#: One document of this number is for validation.
HELD_OUT = 50
FEWEST_TOKENS = 100
_ENDINGS = (".txt", ".text", ".tokens", ".raw", ".tsv")
_TAG = re.compile(r"<[^>]{0,40}>")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class TokenStream:
    """Tokens of several documents in their order.

    Attributes
    ----------
    rows : int array
        Of the vocabulary.
    documents : int array
        The number of the document that each token is of.
    """

    rows: Ids
    documents: Ids

    def take(self, n: int) -> TokenStream:
        """The first tokens."""
        return TokenStream(self.rows[:n], self.documents[:n])


@dataclass(frozen=True, slots=True)
class DocumentCorpus:
    """What a model of words is trained on, and what it is compared with.

    Attributes
    ----------
    train, valid : TokenStream
    similarity : tuple of WordPairs
    analogies : tuple of Analogy
    """

    name: str
    vocabulary: Vocabulary
    train: TokenStream
    valid: TokenStream
    similarity: tuple[WordPairs, ...]
    notes: tuple[str, ...]
    files: dict[str, str]
    unit: str = "words"
    analogies: tuple[Analogy, ...] = ()

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
    similarity: tuple[WordPairs, ...],
) -> DocumentCorpus:
    """Read a text, or all texts of a folder: every line is a document.

    Words are runs of letters and digits in lower case; what stands in angle brackets (``<br />``,
    ``<unk>``) is left out, and of a file that ends in ``.tsv`` all columns but the last. Words that
    occur less than `min_count` times in the training documents are taken out of the text, before
    windows are laid over it, as word2vec does it.

    `path`: a file, or a folder whose texts (``.txt``, ``.tokens``, ``.raw``, ``.tsv``, compressed
    or not) are read in the order of their names. `size`: words that are kept at most, the most
    frequent ones. `tokens`: words that are read at most.
    """
    files = list_texts(path)
    words = Words(path)
    rows, lengths = encode_documents(files, words, tokens)
    documents = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    held_out = documents % HELD_OUT == HELD_OUT - 1
    counts = np.bincount(rows[~held_out], minlength=len(words))
    vocabulary, row_of = choose_words(list(words), counts, min_count, size)
    placed = row_of[rows]
    train, valid = (
        TokenStream(placed[chosen & (placed >= 0)], documents[chosen & (placed >= 0)])
        for chosen in (~held_out, held_out)
    )
    if min(len(train.rows), len(valid.rows)) < FEWEST_TOKENS:
        raise UnreadableFile(
            f"fewer than {FEWEST_TOKENS} words that occur {min_count:,} times or more are left for "
            "training or validation",
            where=path,
            way_out="give more text, in lines, or a smaller min_count of [data]",
        )
    notes = (
        f"every line is a document, and one in {HELD_OUT} is for validation",
        f"{len(words) - len(vocabulary):,} of {len(words):,} different words, all rare, are taken "
        f"out: {1.0 - (placed >= 0).mean():.1%} of the text",
        *([describe_coverage(similarity, vocabulary, path)] if similarity else []),
    )
    hashes = {file.name: sha256(file) for file in files}
    return DocumentCorpus(path.name, vocabulary, train, valid, similarity, notes, hashes)


def list_texts(path: Path) -> list[Path]:
    """The file, or the texts of a folder in the order of their names."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if find_ending(file) in _ENDINGS)
    if not found:
        raise UnreadableFile(
            f"the folder holds no text ({', '.join(_ENDINGS)}; plain, .gz, .xz or .bz2)",
            where=path,
            way_out="give a text, or a folder of texts",
        )
    return found


def describe_coverage(similarity: tuple[WordPairs, ...], vocabulary: Vocabulary, path: Path) -> str:
    """How many pairs of each set are known; `UnreadableFile` if the one that decides has few."""
    known = set(vocabulary.tokens)
    parts = []
    for one in similarity:
        covered = sum(known.issuperset(pair) for pair in one.pairs)
        if one.name == DECIDING and covered < LEAST_PAIRS:
            raise UnreadableFile(
                f"{covered} of the {len(one.pairs):,} pairs of {SETS[one.name][0]} have both words "
                f"in the vocabulary of the text, and {LEAST_PAIRS} are needed",
                where=path,
                way_out="give more text of the language of the pairs",
            )
        parts.append(f"{SETS[one.name][0]} {covered:,} of {len(one.pairs):,}")
    return f"pairs that have both words: {'; '.join(parts)}"


def encode_documents(files: list[Path], words: Words, limit: int | None) -> tuple[Ids, list[int]]:
    """Numbers of all words, in the order in which they first occur, and lengths of documents."""
    rows: list[npt.NDArray[np.int32]] = []
    lengths: list[int] = []
    total = 0
    for line in read_texts(files):
        found = [words[word] for word in _WORD.findall(_TAG.sub(" ", line).lower())]
        if limit is not None:
            found = found[: limit - total]
        if found:
            rows.append(np.array(found, dtype=np.int32))
            lengths.append(len(found))
            total += len(found)
        if limit is not None and total >= limit:
            break
    return np.concatenate(rows) if rows else np.zeros(0, np.int32), lengths


def read_texts(files: list[Path]) -> Iterator[str]:
    """The lines of all files; of tables the last column."""
    for file in files:
        table = find_ending(file) == ".tsv"
        for line in read_lines(file):
            yield line.rpartition("\t")[2] if table else line


def choose_words(
    words: list[str], counts: npt.NDArray[np.int64], min_count: int, size: int | None
) -> tuple[Vocabulary, Ids]:
    """The most frequent words, and the row of each word; −1 for those that are left out."""
    order = sorted(np.flatnonzero(counts >= min_count), key=lambda i: (-counts[i], words[i]))[:size]
    row_of = np.full(len(words), -1, dtype=np.int32)
    row_of[order] = np.arange(len(order), dtype=np.int32)
    return Vocabulary(tuple(words[i] for i in order), counts[order].astype(np.int64)), row_of

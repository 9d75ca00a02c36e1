"""Texts as three splits of rows of one vocabulary."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.training.data.encoding import (
    SHARE,
    Ids,
    Words,
    cut_text,
    describe_part,
    encode_files,
)
from embgeo.training.data.layouts import SPLITS, KnownCorpus, find_layout
from embgeo.training.data.text import hash_files, read_lines, sha256
from embgeo.training.data.tokenizer import ENDS, TOKENIZER_NAME, ByteLevel, Tokenizer
from embgeo.training.data.vocabulary import UNKNOWN, Vocabulary, place_words, ranked

UNITS = ("sentences", "stream")
#: For texts without ``<unk>``, as in the making of WikiText.
DEFAULT_MIN_COUNT = 3
#: Fewer tokens cannot be learned from or measured.
FEWEST_TRAINING_TOKENS = 100
FEWEST_TOKENS = 2


@dataclass(frozen=True, slots=True)
class Corpus:
    """The splits of a text as rows of a vocabulary."""

    #: ``wikitext-2`` or another published corpus; else the name of the file or folder.
    name: str
    vocabulary: Vocabulary
    #: Rows of the vocabulary in the order of the text; `test` may be None.
    train: IntArray
    valid: IntArray
    test: IntArray | None
    #: "sentences", each line ending in `Vocabulary.end`, or "stream".
    unit: str
    #: What was decided about the text.
    notes: tuple[str, ...]
    #: SHA-256 of each file that was read, by its path below the given folder, and of a learned
    #: tokenizer.
    files: dict[str, str]
    #: The ``tokenizer.json`` that was learned from the training split.
    tokenizer: str | None = None
    #: The bytes of text that each row stands for, where known; shape (N,).
    row_bytes: IntArray | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Tokens of each split."""
        splits = {split: getattr(self, split) for split in SPLITS}
        return {split: len(rows) for split, rows in splits.items() if rows is not None}


def load_corpus(
    path: Path,
    *,
    unit: str | None = None,
    min_count: int | None = None,
    size: int | None = None,
    tokenizer: Path | None = None,
    tokens: int | None = None,
    skip: int = 0,
    shuffle: bool = True,
    vocabulary: Vocabulary | None = None,
    seed: int = 0,
) -> Corpus:
    """Read a text or a folder of texts as rows of a vocabulary.

    White space separates words. `find_layout` finds the splits of a folder, and `cut_text` cuts a
    text without splits.

    Parameters
    ----------
    path : Path
        UTF-8 text, plain or compressed (.gz, .zst), or a folder.
    unit : str, optional
        "sentences": each line ends in an end-of-sentence token, the default if there is such a
        token. "stream": words ignore line ends, and a tokenizer encodes them.
    min_count : int, optional
        Words that occur less often in the training split are unknown; 3 where neither this nor
        `size` is given, and 1 where the text has ``<unk>`` already.
    size : int, optional
        Rows of the vocabulary; the rarest words are unknown.
    tokenizer : Path, optional
        A ``tokenizer.json`` in place of words; rows are its ids.
    tokens, skip : int, optional
        Tokens of the training split to use, behind the first `skip`, also for counts and
        vocabulary.
    shuffle : bool
        Whether to shuffle pieces of the training split of a text without splits; see `cut_text`.
    vocabulary : Vocabulary, optional
        A vocabulary to use, whatever `min_count` and `size` are.
    seed : int
        Seed that cuts and shuffles a text without splits; independent of the seeds of runs, which
        have to be measured on the same text.

    Raises
    ------
    UnreadableFile
        A text that is missing, empty, tiny, binary, not UTF-8 or damaged; an unusable tokenizer.
    BadOption
        An option that does not fit the text.
    """
    _check_options(unit, min_count, size, tokenizer, tokens)
    layout = find_layout(path)
    notes = list(layout.notes)
    reader = Words(path) if tokenizer is None else Tokenizer(tokenizer)
    unit = unit or ("stream" if reader.end() is None else "sentences")
    end = None if unit == "stream" else _find_end(reader)
    published = layout.published
    known_lines = tokenizer is None and published is not None and published.empty_lines
    encode = partial(encode_files, encode=reader.encode, end=end, empty_lines=known_lines)
    limit = None if tokens is None else skip + tokens
    if "all" in layout.splits:
        text = encode(layout.splits["all"])
        ids, how = cut_text(text, stream=end is None, seed=seed, shuffle=shuffle)
        notes.append(f"a twentieth each for validation and test: {how}")
    else:
        ids = {
            split: encode(files, limit=limit if split == "train" else None).ids
            for split, files in layout.splits.items()
        }
    notes += take_part(ids, tokens, skip, path)
    if published is not None and not _is_published(published, ids, whole=not (skip or tokens)):
        if end is not None:
            notes.append(f"files are named as those of {published.name}, but hold another text")
        published = None
    if isinstance(reader, Tokenizer):
        counts = np.bincount(ids["train"], minlength=reader.size)
        vocabulary = reader.vocabulary(counts, end=end is not None)
        rows = {split: found.astype(np.int64) for split, found in ids.items()}
    else:
        if vocabulary is not None:
            vocabulary, row_of = place_words(list(reader), ids["train"], vocabulary)
            notes.append("words are those of the weights that training starts from")
        else:
            vocabulary, row_of = _rank_words(reader, ids["train"], min_count, size, end, notes)
        rows = {split: row_of[found] for split, found in ids.items()}
    if vocabulary.unknown is not None:
        shares = (f"{np.mean(r == vocabulary.unknown):.1%} of {split}" for split, r in rows.items())
        notes.append(f"{vocabulary.tokens[vocabulary.unknown]} stands for {', '.join(shares)}")
    if published is not None and len(vocabulary) != published.types:
        notes.append(
            f"{len(vocabulary):,} rows where {published.name} has {published.types:,} types: "
            "perplexities are not to be compared with published ones"
        )
    files = hash_files(path, layout.files)
    if tokenizer is not None:
        files[tokenizer.name] = sha256(tokenizer)
    return Corpus(
        layout.name if published is None else published.name,
        vocabulary,
        rows["train"],
        rows["valid"],
        rows.get("test"),
        unit,
        tuple(notes),
        files,
    )


def load_byte_level(path: Path, size: int, *, tokens: int | None = None, skip: int = 0) -> Corpus:
    """Read a text or a folder as rows of a tokenizer that is learned from the training split.

    The text is a stream, line ends included. `SEPARATOR` precedes each article of WikiText and
    follows each file. The last tenth of a text without splits is validation and test.

    `path`: see `embgeo.training.data.load_corpus`. `size`: rows at most. `tokens`, `skip`:
    tokens of the training split to use, behind the first `skip`; the tokenizer is learned from all
    of it.
    """
    layout = find_layout(path)
    splits, notes = layout.splits, list(layout.notes)
    whole = "all" not in splits
    lines = read_training_lines(splits["train" if whole else "all"], whole=whole)
    reader = ByteLevel(lines, size, path, titles=bool(layout.published and layout.published.titles))
    lengths = reader.count_bytes()
    ids = {
        split: encode_files(files, reader.encode, end=None, separator=0).ids
        for split, files in splits.items()
    }
    notes.append(f"a byte-level tokenizer of {reader.size:,} rows, learned from the training split")
    if not whole:
        ids = cut_bytes(ids["all"], lengths)
        notes.append("the last tenth of the text is validation and test")
    notes += take_part(ids, tokens, skip, path)
    rows = {split: found.astype(np.int64) for split, found in ids.items()}
    digest = hashlib.sha256(reader.text.encode()).hexdigest()
    counts = np.bincount(rows["train"], minlength=reader.size)
    return Corpus(
        layout.name,
        reader.vocabulary(counts),
        rows["train"],
        rows["valid"],
        rows.get("test"),
        "stream",
        tuple(notes),
        hash_files(path, layout.files) | {TOKENIZER_NAME: digest},
        reader.text,
        lengths,
    )


def take_part(ids: dict[str, Ids], tokens: int | None, skip: int, path: Path) -> list[str]:
    """Keep some tokens of the training split, behind the first `skip`, and say so."""
    there = len(ids["train"])
    if skip >= there > 0:
        raise BadOption(
            f"skip is {skip:,}, and the training split has {there:,} tokens",
            where="data",
            way_out="give a lower number",
        )
    ids["train"] = ids["train"][skip:][:tokens]
    check_splits(ids, path)
    return describe_part(len(ids["train"]), tokens, skip, "tokens of the training text")


def read_training_lines(files: Sequence[Path], *, whole: bool) -> Iterator[str]:
    """Yield the lines of a training split, or of the first nine tenths of a text without splits."""
    left = float("inf")
    if not whole:
        sizes = (len(line.encode()) for file in files for line in read_lines(file))
        left = (1.0 - 2.0 * SHARE) * sum(sizes)
    for file in files:
        for line in read_lines(file):
            left -= len(line.encode())
            if left < 0:
                return
            yield line


def cut_bytes(ids: Ids, lengths: IntArray) -> dict[str, Ids]:
    """Cut off the last tenth of the bytes of a text for validation and test."""
    ends = np.cumsum(lengths[ids])
    places = np.searchsorted(ends, [(1.0 - k * SHARE) * ends[-1] for k in (2, 1)])
    return dict(zip(SPLITS, np.split(ids, places), strict=True))


def _find_end(reader: Words | Tokenizer) -> int:
    end = reader.end()
    if end is None:
        raise BadOption(
            f"the tokenizer has no token that ends a sentence ({', '.join(ENDS)})",
            where="unit",
            way_out="give stream",
        )
    return end


def _is_published(published: KnownCorpus, ids: dict[str, Ids], *, whole: bool) -> bool:
    """Tell whether splits are as long as published; other corpora have files of the same names."""
    lengths = dict(zip(SPLITS, published.tokens, strict=True))
    compared = SPLITS if whole else SPLITS[1:]
    return all(len(ids[split]) == lengths[split] for split in compared)


def _rank_words(
    words: Words,
    train: Ids,
    min_count: int | None,
    size: int | None,
    end: int | None,
    notes: list[str],
) -> tuple[Vocabulary, IntArray]:
    """Choose `min_count` if it is not given, and rank the words."""
    counts = np.bincount(train, minlength=len(words))
    if min_count is None:
        has_unknown = UNKNOWN in words and counts[words[UNKNOWN]] > 0
        min_count = 1 if has_unknown or size is not None else DEFAULT_MIN_COUNT
    if min_count > 1:
        notes.append(f"words that occur less than {min_count:,} times in train are {UNKNOWN}")
    return ranked(list(words), counts, min_count=min_count, size=size, end=end is not None)


def _check_options(
    unit: str | None,
    min_count: int | None,
    size: int | None,
    tokenizer: Path | None,
    tokens: int | None,
) -> None:
    if unit is not None and unit not in UNITS:
        raise BadOption(f"no unit {unit!r}", where="unit", way_out=f"give {' or '.join(UNITS)}")
    if tokens is not None and tokens < FEWEST_TRAINING_TOKENS:
        raise BadOption(
            f"{tokens:,} tokens are too few to train on",
            where="tokens",
            way_out=f"give {FEWEST_TRAINING_TOKENS} or more",
        )
    if tokenizer is not None and (min_count is not None or size is not None):
        raise BadOption(
            "a tokenizer has its own vocabulary",
            where="size" if min_count is None else "min_count",
            way_out="leave it out, or leave out the tokenizer",
        )


def check_splits(splits: dict[str, Ids], path: Path) -> None:
    """Refuse splits with too few tokens."""
    for split, ids in splits.items():
        fewest = FEWEST_TRAINING_TOKENS if split == "train" else FEWEST_TOKENS
        if len(ids) < fewest:
            raise UnreadableFile(
                f"{len(ids):,} tokens for the {split} split are less than {fewest}",
                where=path,
                way_out="give more text",
            )

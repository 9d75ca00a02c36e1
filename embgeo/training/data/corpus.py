"""A corpus: three splits as rows of one vocabulary, and what was decided about the text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.training.data.encoding import Encode, EncodingRules, Words, cut_text, encode_files
from embgeo.training.data.layouts import SPLITS, CorpusLayout, KnownCorpus, find_layout
from embgeo.training.data.text import sha256
from embgeo.training.data.tokenizer import ENDS, Tokenizer
from embgeo.training.data.vocabulary import UNKNOWN, Vocabulary, place_words, ranked

UNITS = ("sentences", "stream")
#: For texts in which no word is ``<unk>`` yet; as WikiText was made.
DEFAULT_MIN_COUNT = 3
#: Below this nothing can be learned or measured.
FEWEST_TRAINING_TOKENS = 100
FEWEST_TOKENS = 2

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a model is trained and measured on.

    Attributes
    ----------
    name : str
        ``wikitext-2`` or ``ptb`` where the text is that; otherwise that of the file or folder.
    train, valid, test : array of int64
        Rows of the vocabulary in the order of the text; `test` may be None.
    unit : str
        "sentences", each line ending in `Vocabulary.end`, or "stream".
    notes : tuple of str
        What was decided about the text, in words.
    files : dict of str to str
        SHA-256 of each file that was read, by its path below the given folder, and of a tokenizer
        that was learned.
    tokenizer : str, optional
        One that was learned from the training split, as a ``tokenizer.json``.
    row_bytes : array of int64, optional
        How many bytes of text each row stands for, shape (N,), where that is known.
    """

    name: str
    vocabulary: Vocabulary
    train: npt.NDArray[np.int64]
    valid: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64] | None
    unit: str
    notes: tuple[str, ...]
    files: dict[str, str]
    tokenizer: str | None = None
    row_bytes: npt.NDArray[np.int64] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Tokens of each split."""
        splits = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: len(rows) for name, rows in splits.items() if rows is not None}


def load_corpus(
    path: Path,
    *,
    unit: str | None = None,
    min_count: int | None = None,
    size: int | None = None,
    tokenizer: Path | None = None,
    tokens: int | None = None,
    shuffle: bool = True,
    vocabulary: Vocabulary | None = None,
    seed: int = 0,
) -> Corpus:
    """Read a text or a folder of texts as rows of a vocabulary.

    Words are what white space separates. `find_layout` says which files are which split and
    `cut_text` how a text without splits is cut.

    Parameters
    ----------
    path : Path
        UTF-8 text, plain or compressed (.gz, .xz, .bz2), or a folder.
    unit : str, optional
        "sentences": each line ends in an end-of-sentence token. "stream": line ends mean nothing
        to words, and what the tokenizer makes of them to a tokenizer. Sentences by default, if
        there is such a token.
    min_count : int, optional
        Words that occur less often in the training split are unknown; 3 where neither this nor
        `size` is given, and 1 where the text has ``<unk>`` already.
    size : int, optional
        Rows of the vocabulary; the rarest words are unknown.
    tokenizer : Path, optional
        A ``tokenizer.json`` in place of words; rows are its ids.
    tokens : int, optional
        Number of tokens of the training split to use, from its start; counts and vocabulary are
        of these.
    shuffle : bool
        Whether the training split of a text without splits is shuffled in pieces; see `cut_text`.
    vocabulary : Vocabulary, optional
        Words of which have a row, in this order, whatever `min_count` and `size` are.
    seed : int
        Of the draws that cut and shuffle a text without splits. Not that of a run: runs with
        several seeds are to be measured on the same text.

    Raises
    ------
    UnreadableFile
        No text, or none that can be used: missing, empty, tiny, binary, not UTF-8, damaged; a
        tokenizer that cannot be read or run.
    BadOption
        An option that makes no sense for this text.
    """
    _check(unit, min_count, size, tokenizer, tokens)
    layout = find_layout(path)
    notes = list(layout.notes)
    reader = Words(path) if tokenizer is None else Tokenizer(tokenizer)
    unit = unit or ("stream" if reader.end() is None else "sentences")
    rules = _rules(layout, reader, unit)
    ids = _splits(layout, reader.encode, rules, tokens, (shuffle, seed), notes)
    check_splits(ids, path)
    if tokens is not None:
        notes.append(f"the first {len(ids['train']):,} tokens of the training text")
    published = layout.published
    if published is not None and not _is_published(published, ids, tokens):
        if rules.end is not None:
            notes.append(f"files are named as those of {published.name}, but hold another text")
        published = None
    if isinstance(reader, Tokenizer):
        counts = np.bincount(ids["train"], minlength=reader.size)
        vocabulary = reader.vocabulary(counts, end=rules.end is not None)
        rows = {split: found.astype(np.int64) for split, found in ids.items()}
    elif vocabulary is not None:
        vocabulary, row_of = place_words(list(reader), ids["train"], vocabulary)
        notes.append("words are those of the weights that training starts from")
        rows = {split: row_of[found] for split, found in ids.items()}
    else:
        vocabulary, rows = _by_words(reader, ids, min_count, size, rules, notes)
    notes += _about_unknown(vocabulary, rows)
    if published is not None:
        notes += _about_types(vocabulary, published)
    files = hash_files(path, layout)
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


def _rules(layout: CorpusLayout, reader: Words | Tokenizer, unit: str) -> EncodingRules:
    if unit == "stream":
        return EncodingRules(None)
    end = reader.end()
    if end is None:
        raise BadOption(
            f"the tokenizer has no token that ends a sentence ({', '.join(ENDS)})",
            where="unit",
            way_out="give stream",
        )
    known = layout.published if isinstance(reader, Words) else None
    return EncodingRules(end, empty_lines=known is not None and known.empty_lines)


def _splits(
    layout: CorpusLayout,
    encode: Encode,
    rules: EncodingRules,
    tokens: int | None,
    drawing: tuple[bool, int],
    notes: list[str],
) -> dict[str, Ids]:
    if "all" in layout.splits:
        text = encode_files(layout.splits["all"], encode, rules)
        cut, how = cut_text(text, stream=rules.end is None, seed=drawing[1], shuffle=drawing[0])
        notes.append(f"a twentieth each for validation and test: {how}")
        return {**cut, "train": cut["train"][:tokens]}
    return {
        split: encode_files(files, encode, rules, limit=tokens if split == "train" else None).ids
        for split, files in layout.splits.items()
    }


def _is_published(published: KnownCorpus, ids: dict[str, Ids], tokens: int | None) -> bool:
    """Whether splits are as long as published: other corpora have files of the same names."""
    lengths = dict(zip(SPLITS, published.tokens, strict=True))
    compared = SPLITS if tokens is None else SPLITS[1:]
    return all(len(ids[split]) == lengths[split] for split in compared)


def _by_words(
    words: Words,
    ids: dict[str, Ids],
    min_count: int | None,
    size: int | None,
    rules: EncodingRules,
    notes: list[str],
) -> tuple[Vocabulary, dict[str, npt.NDArray[np.int64]]]:
    counts = np.bincount(ids["train"], minlength=len(words))
    if min_count is None:
        has_unknown = UNKNOWN in words and counts[words[UNKNOWN]] > 0
        min_count = 1 if has_unknown or size is not None else DEFAULT_MIN_COUNT
    if min_count > 1:
        notes.append(f"words that occur less than {min_count:,} times in train are {UNKNOWN}")
    vocabulary, row_of = ranked(
        list(words), counts, min_count=min_count, size=size, end=rules.end is not None
    )
    rows = {split: row_of[found] for split, found in ids.items()}
    return vocabulary, rows


def _check(
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
    """`UnreadableFile` for a split with next to no tokens."""
    for split, ids in splits.items():
        fewest = FEWEST_TRAINING_TOKENS if split == "train" else FEWEST_TOKENS
        if len(ids) < fewest:
            raise UnreadableFile(
                f"{len(ids):,} tokens for the {split} split are less than {fewest}",
                where=path,
                way_out="give more text",
            )


def hash_files(path: Path, layout: CorpusLayout) -> dict[str, str]:
    """SHA-256 of each file, by its path below the folder."""
    folder = path if path.is_dir() else path.parent
    return {
        file.relative_to(folder).as_posix(): sha256(file)
        for files in layout.splits.values()
        for file in files
    }


def _about_unknown(vocabulary: Vocabulary, rows: dict[str, npt.NDArray[np.int64]]) -> list[str]:
    if vocabulary.unknown is None:
        return []
    shares = (
        f"{np.mean(found == vocabulary.unknown):.1%} of {split}" for split, found in rows.items()
    )
    return [f"{vocabulary.tokens[vocabulary.unknown]} stands for {', '.join(shares)}"]


def _about_types(vocabulary: Vocabulary, published: KnownCorpus) -> list[str]:
    if len(vocabulary) == published.types:
        return []
    return [
        f"{len(vocabulary):,} rows where {published.name} has {published.types:,} types: "
        "perplexities are not to be compared with published ones"
    ]

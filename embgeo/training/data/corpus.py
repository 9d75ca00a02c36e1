"""Texts as three splits of rows of one vocabulary."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
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
from embgeo.training.data.layouts import SPLITS, find_layout
from embgeo.training.data.text import hash_files, read_lines, sha256
from embgeo.training.data.tokenizer import ENDS, TOKENIZER_NAME, ByteLevel, Tokenizer
from embgeo.training.data.vocabulary import UNKNOWN, Dataset, Vocabulary, place_words, ranked

UNITS = ("sentences", "stream")
#: For texts without ``<unk>``, as in the making of WikiText.
DEFAULT_MIN_COUNT = 3
#: Fewer tokens cannot be learned from or measured.
FEWEST_TRAINING_TOKENS = 100
FEWEST_TOKENS = 2


@dataclass(frozen=True, slots=True)
class Corpus(Dataset):
    """The splits of a text as rows of a vocabulary, in the order of the text."""

    #: The ``tokenizer.json`` that was learned from the training split.
    tokenizer: str | None = None
    #: The bytes of text that each row stands for, where known; shape (N,).
    row_bytes: IntArray | None = None


def load_corpus(
    path: Path,
    *,
    unit: str | None = None,
    min_count: int | None = None,
    size: int | None = None,
    tokenizer: Path | None = None,
    bpe: int | None = None,
    tokens: int | None = None,
    skip: int | None = None,
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
    bpe : int, optional
        Rows at most of a byte-level tokenizer that is learned from all of the training split, in
        place of words. The text is then a stream: `SEPARATOR` precedes each article of WikiText and
        follows each file, and the last tenth of a text without splits is validation and test.
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
    published, splits, skip = layout.published, layout.splits, skip or 0
    notes = list(layout.notes)
    reader: Words | Tokenizer
    if bpe is not None:
        lines = read_training_lines(splits)
        reader = ByteLevel(lines, bpe, path, titles=bool(published and published.titles))
        said = f"a byte-level tokenizer of {reader.size:,} rows, learned from the training split"
        notes.append(said)
    else:
        reader = Words(path) if tokenizer is None else Tokenizer(tokenizer)
    if unit is None:
        unit = "stream" if bpe is not None or reader.end() is None else "sentences"
    end = reader.end() if unit == "sentences" else None
    if unit == "sentences" and end is None:
        raise BadOption(
            f"the tokenizer has no token that ends a sentence ({', '.join(ENDS)})",
            where="unit",
            way_out="give stream",
        )
    encode = partial(
        encode_files,
        encode=reader.encode,
        end=end,
        empty_lines=isinstance(reader, Words) and published is not None and published.empty_lines,
        separator=None if bpe is None else 0,
    )
    if "all" not in splits:
        limit = None if tokens is None else skip + tokens
        ids = {
            split: encode(files, limit=limit if split == "train" else None).ids
            for split, files in splits.items()
        }
    elif isinstance(reader, ByteLevel):
        whole = encode(splits["all"]).ids
        ends = np.cumsum(reader.row_bytes[whole])
        places = np.searchsorted(ends, [(1.0 - k * SHARE) * ends[-1] for k in (2, 1)])
        ids = dict(zip(SPLITS, np.split(whole, places), strict=True))
        notes.append("the last tenth of the text is validation and test")
    else:
        ids, how = cut_text(encode(splits["all"]), stream=end is None, seed=seed, shuffle=shuffle)
        notes.append(f"a twentieth each for validation and test: {how}")
    there = len(ids["train"])
    if skip >= there > 0:
        raise BadOption(
            f"skip is {skip:,}, and the training split has {there:,} tokens",
            where="data",
            way_out="give a lower number",
        )
    ids["train"] = ids["train"][skip:][:tokens]
    for split, found in ids.items():
        fewest = FEWEST_TRAINING_TOKENS if split == "train" else FEWEST_TOKENS
        if len(found) < fewest:
            raise UnreadableFile(
                f"{len(found):,} tokens for the {split} split are less than {fewest}",
                where=path,
                way_out="give more text",
            )
    notes += describe_part(len(ids["train"]), tokens, skip, "tokens of the training text")
    if bpe is not None:
        published = None  # whose numbers are of words
    elif published is not None:
        # Other corpora have files of the same names.
        compared = SPLITS[1:] if skip or tokens else SPLITS
        lengths = dict(zip(SPLITS, published.tokens, strict=True))
        if any(len(ids[split]) != lengths[split] for split in compared):
            if end is not None:
                notes.append(f"files are named as those of {published.name}, but hold another text")
            published = None
    if isinstance(reader, Tokenizer):
        counts = np.bincount(ids["train"], minlength=reader.size)
        vocabulary = reader.vocabulary(counts, end=bpe is not None or end is not None)
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
    learned = reader if isinstance(reader, ByteLevel) else None
    if tokenizer is not None:
        files[tokenizer.name] = sha256(tokenizer)
    elif learned is not None:
        files[TOKENIZER_NAME] = hashlib.sha256(learned.text.encode()).hexdigest()
    return Corpus(
        layout.name if published is None else published.name,
        vocabulary,
        rows["train"],
        rows["valid"],
        rows.get("test"),
        unit,
        tuple(notes),
        files,
        None if learned is None else learned.text,
        None if learned is None else learned.row_bytes,
    )


def read_training_lines(splits: Mapping[str, Sequence[Path]]) -> Iterator[str]:
    """Yield the lines of a training split, or of the first nine tenths of a text without splits."""
    files, left = splits.get("train", ()), float("inf")
    if "all" in splits:
        files = splits["all"]
        sizes = (len(line.encode()) for file in files for line in read_lines(file))
        left = (1.0 - 2.0 * SHARE) * sum(sizes)
    for file in files:
        for line in read_lines(file):
            left -= len(line.encode())
            if left < 0:
                return
            yield line


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
    for name, value in (("min_count", min_count), ("size", size)):
        if tokenizer is not None and value is not None:
            raise BadOption(
                "a tokenizer has its own vocabulary",
                where=name,
                way_out="leave it out, or leave out the tokenizer",
            )

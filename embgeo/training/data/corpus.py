"""Texts as three splits of rows of one vocabulary."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.training.data.encoding import (
    SHARE,
    Ids,
    Words,
    cut_text,
    describe_part,
    encode_files,
)
from embgeo.training.data.layouts import SPLITS, KnownCorpus, find_layout
from embgeo.training.data.text import hash_files, read_lines
from embgeo.training.data.tokenizer import TOKENIZER_NAME, ByteLevel
from embgeo.training.data.vocabulary import UNKNOWN, Dataset, ranked

#: For texts without ``<unk>``, as in the making of WikiText.
DEFAULT_MIN_COUNT = 3
#: Fewer tokens cannot be learned from or measured.
FEWEST = {"train": 100, "valid": 2, "test": 2}


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
    min_count: int | None = None,
    size: int | None = None,
    bpe: int | None = None,
    tokens: int | None = None,
    skip: int = 0,
    shuffle: bool = True,
    seed: int = 0,
) -> Corpus:
    """Read a text or a folder of texts as rows of a vocabulary; `DataSettings` has the arguments.

    `seed` cuts and shuffles a text without splits; it is not that of a run, as all runs have to be
    measured on the same text.
    """
    layout = find_layout(path)
    known, notes = layout.published, list(layout.notes)
    reader: Words | ByteLevel = Words(path)
    if bpe is not None:
        lines = read_training_lines(layout.splits)
        reader = ByteLevel(lines, bpe, titles=bool(known and known.titles))
        notes.append(
            f"a byte-level tokenizer of {reader.size:,} rows, learned from the training split"
        )
    ids = read_splits(reader, layout.splits, known, notes, skip, tokens, shuffle, seed)
    there = len(ids["train"])
    if skip >= there > 0:
        cause = f"skip is {skip:,}, and the training split has {there:,} tokens"
        way_out = f"lower data.skip with {argument('settings', 'data.skip=N')}"
        raise BadOption(cause, where="data", way_out=way_out)
    ids["train"] = ids["train"][skip:][:tokens]
    for split, found in ids.items():
        if len(found) < FEWEST[split]:
            cause = f"{len(found):,} tokens for the {split} split are less than {FEWEST[split]}"
            raise UnreadableFile(cause, where=path)
    notes += describe_part(len(ids["train"]), tokens, skip, "tokens of the training text")
    files = hash_files(path, layout.files)
    if isinstance(reader, ByteLevel):
        known = None  # whose numbers are of words
        files[TOKENIZER_NAME] = hashlib.sha256(reader.text.encode()).hexdigest()
        vocabulary = reader.vocabulary(np.bincount(ids["train"], minlength=reader.size))
        rows = {split: found.astype(np.int64) for split, found in ids.items()}
    else:
        if known is not None:
            # Other corpora have files of the same names.
            lengths = dict(zip(SPLITS, known.tokens, strict=True))
            compared = SPLITS[1:] if skip or tokens else SPLITS
            if any(len(ids[split]) != lengths[split] for split in compared):
                notes.append(f"files are named as those of {known.name}, but hold another text")
                known = None
        counts = np.bincount(ids["train"], minlength=len(reader))
        if min_count is None:
            has_unknown = UNKNOWN in reader and counts[reader[UNKNOWN]] > 0
            min_count = 1 if has_unknown or size is not None else DEFAULT_MIN_COUNT
        if min_count > 1:
            notes.append(f"words that occur less than {min_count:,} times in train are {UNKNOWN}")
        vocabulary, row_of = ranked(list(reader), counts, min_count=min_count, size=size, end=True)
        rows = {split: row_of[found] for split, found in ids.items()}
    if vocabulary.unknown is not None:
        shares = (f"{np.mean(r == vocabulary.unknown):.1%} of {split}" for split, r in rows.items())
        notes.append(f"{vocabulary.tokens[vocabulary.unknown]} stands for {', '.join(shares)}")
    if known is not None and len(vocabulary) != known.types:
        notes.append(
            f"{len(vocabulary):,} rows where {known.name} has {known.types:,} types: "
            "perplexities are not to be compared with published ones"
        )
    learned = reader if isinstance(reader, ByteLevel) else None
    return Corpus(
        layout.name if known is None else known.name,
        vocabulary,
        rows["train"],
        rows["valid"],
        rows.get("test"),
        "sentences" if learned is None else "stream",
        tuple(notes),
        files,
        None if learned is None else learned.text,
        None if learned is None else learned.row_bytes,
    )


def read_splits(
    reader: Words | ByteLevel,
    splits: Mapping[str, Sequence[Path]],
    known: KnownCorpus | None,
    notes: list[str],
    skip: int,
    tokens: int | None,
    shuffle: bool,
    seed: int,
) -> dict[str, Ids]:
    """Encode the splits of a layout, or cut its text; `notes` gets how."""
    whole = None if tokens is None else skip + tokens
    texts = {
        split: encode_files(
            files,
            reader.encode,
            end=reader.end() if isinstance(reader, Words) else None,
            empty_lines=isinstance(reader, Words) and known is not None and known.empty_lines,
            separator=0 if isinstance(reader, ByteLevel) else None,
            limit=whole if split == "train" else None,
        )
        for split, files in splits.items()
    }
    if "all" not in texts:
        return {split: text.ids for split, text in texts.items()}
    if isinstance(reader, ByteLevel):
        ids = texts["all"].ids
        ends = np.cumsum(reader.row_bytes[ids])
        places = np.searchsorted(ends, [(1.0 - k * SHARE) * ends[-1] for k in (2, 1)])
        notes.append("the last tenth of the text is validation and test")
        return dict(zip(SPLITS, np.split(ids, places), strict=True))
    found, how = cut_text(texts["all"], seed=seed, shuffle=shuffle)
    notes.append(f"a twentieth each for validation and test: {how}")
    return found


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

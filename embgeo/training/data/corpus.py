"""Texts as three splits of rows of one vocabulary."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import UnreadableFile
from embgeo.training.data.encoding import (
    SHARE,
    Words,
    cut_text,
    encode_files,
)
from embgeo.training.data.layouts import SPLITS, Files, find_published, find_splits, name_data
from embgeo.training.data.text import TEXTS, find_ending, hash_files, read_lines
from embgeo.training.data.tokenizer import TOKENIZER_NAME, ByteLevel
from embgeo.training.data.vocabulary import END, UNKNOWN, Dataset, choose_rows
from embgeo.training.sections import DataSettings

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


def load_corpus(chosen: DataSettings, *, seed: int = 0) -> Corpus:
    """Read a text or a folder of texts as rows of a vocabulary.

    `seed` cuts and shuffles a text without splits; it is not that of a run, as all runs have to be
    measured on the same text.
    """
    path, words = Path(chosen.path), Words(Path(chosen.path))
    files, notes = find_splits(
        path, lambda file: find_ending(file) in TEXTS, "text", ("train", "valid")
    )
    known, learned = find_published(path, files), None
    if chosen.bpe is not None:
        titles = known is not None and known.titles
        learned = ByteLevel(read_training_lines(files), chosen.bpe, titles=titles)
        notes.append(
            f"a byte-level tokenizer of {learned.size:,} rows, learned from the training split"
        )
        known = None  # whose numbers are of words
    texts = {
        split: encode_files(
            own,
            words.encode_lines if learned is None else learned.encode_lines,
            end=words[END] if learned is None else None,
            empty_lines=known is not None and known.empty_lines,
            separator=None if learned is None else 0,
            limit=chosen.tokens if split == "train" else None,
        )
        for split, own in files.items()
    }
    ids = {split: text.ids for split, text in texts.items()}
    if "all" in ids and learned is None:
        ids, how = cut_text(texts["all"], seed=seed)
        notes.append(f"a twentieth each for validation and test: {how}")
    elif "all" in ids and learned is not None:
        ends = np.cumsum(learned.row_bytes[ids["all"]])
        places = np.searchsorted(ends, [(1.0 - k * SHARE) * ends[-1] for k in (2, 1)])
        ids = dict(zip(SPLITS, np.split(ids["all"], places), strict=True))
        notes.append("the last tenth of the text is validation and test")
    ids["train"] = ids["train"][: chosen.tokens]
    if chosen.tokens is not None:
        notes.append(f"the first {len(ids['train']):,} tokens of the training text")
    for split, found in ids.items():
        if len(found) < FEWEST[split]:
            cause = f"{len(found):,} tokens for the {split} split are less than {FEWEST[split]}"
            raise UnreadableFile(cause, where=path)
    hashes = hash_files(path, (file for own in files.values() for file in own))
    more: dict[str, Any] = {}
    if learned is not None:
        hashes[TOKENIZER_NAME] = hashlib.sha256(learned.text.encode()).hexdigest()
        vocabulary = learned.vocabulary(np.bincount(ids["train"], minlength=learned.size))
        rows = {split: found.astype(np.int64) for split, found in ids.items()}
        more = {"tokenizer": learned.text, "row_bytes": learned.row_bytes}
    else:
        if known is not None:
            # Other corpora have files of the same names.
            lengths = dict(zip(SPLITS, known.tokens, strict=True))
            compared = SPLITS[1:] if chosen.tokens else SPLITS
            if any(len(ids[split]) != lengths[split] for split in compared):
                notes.append(f"files are named as those of {known.name}, but hold another text")
                known = None
        least = chosen.min_count
        if least is None:
            has_unknown = UNKNOWN in words and words[UNKNOWN] in ids["train"]
            least = 1 if has_unknown or chosen.size is not None else DEFAULT_MIN_COUNT
        vocabulary, rows, placed = choose_rows(
            list(words), ids, min_count=least, size=chosen.size, end=True
        )
        notes += placed
        if known is not None and len(vocabulary) != known.types:
            notes.append(
                f"{len(vocabulary):,} rows where {known.name} has {known.types:,} types: "
                "perplexities are not to be compared with published ones"
            )
    return Corpus(
        name_data(path) if known is None else known.name,
        vocabulary,
        rows["train"],
        rows["valid"],
        rows.get("test"),
        "sentences" if learned is None else "stream",
        tuple(notes),
        hashes,
        **more,
    )


def read_training_lines(splits: Files) -> Iterator[str]:
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

"""Texts as rows of a byte-level tokenizer that is learned from them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption
from embgeo.training.data.byte_pairs import learn_pairs
from embgeo.training.data.corpus import Corpus, check_splits
from embgeo.training.data.encoding import SHARE, encode_files
from embgeo.training.data.layouts import SPLITS, find_layout
from embgeo.training.data.text import hash_files, read_lines
from embgeo.training.data.tokenizer import Tokenizer, import_tokenizers

#: The token between documents, in row 0.
SEPARATOR = "<|endoftext|>"
#: The file of the tokenizer in a run.
TOKENIZER_NAME = "tokenizer.json"
#: Rows of a vocabulary without pairs: the separator and all bytes.
FEWEST_ROWS = 257
#: The title line of an article of WikiText.
_TITLE = re.compile(r" = [^=].* = \n?")


def load_byte_level(path: Path, size: int, *, tokens: int | None = None) -> Corpus:
    """Read a text or a folder as rows of a tokenizer that is learned from the training split.

    The text is a stream, line ends included. `SEPARATOR` precedes each article of WikiText and
    follows each file. The last tenth of a text without splits is validation and test.

    `path`: see `embgeo.training.data.load_corpus`. `size`: rows at most. `tokens`: tokens of the
    training split to use, from its start; the tokenizer is learned from all of it.
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
    if tokens is not None:
        ids["train"] = ids["train"][:tokens]
        notes.append(f"the first {len(ids['train']):,} tokens of the training text")
    check_splits(ids, path)
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


class ByteLevel(Tokenizer):
    """Byte-pair encoding of the bytes of a text, learned from its training part.

    `lines`: the text to learn from. `size`: rows at most: `SEPARATOR`, 256 bytes, and pairs.
    `path`: the text that errors name. `titles`: whether `SEPARATOR` precedes titles of articles.

    References
    ----------
    Radford et al., "Language models are unsupervised multitask learners", 2019, §2.2.
    """

    def __init__(self, lines: Iterable[str], size: int, path: Path, *, titles: bool) -> None:
        if size < FEWEST_ROWS:
            raise BadOption(
                f"bpe is {size:,}", where="data", way_out=f"give a whole number from {FEWEST_ROWS}"
            )
        library = import_tokenizers("bpe of [data]")
        split = library.pre_tokenizers.ByteLevel
        #: The tokenizer as a ``tokenizer.json``.
        self.text = learn_pairs(
            lines,
            size,
            special=SEPARATOR,
            split=split(add_prefix_space=False),
            decoder=library.decoders.ByteLevel(),
            initial_alphabet=sorted(split.alphabet()),
        )
        self.titles = titles
        super().__init__(path, self.text)

    def encode(self, lines: Iterable[str]) -> Iterator[list[int]]:
        known = list(lines)
        for line, ids in zip(known, super().encode(known), strict=True):
            yield [0, *ids] if self.titles and _TITLE.fullmatch(line) else ids

    def count_bytes(self) -> IntArray:
        """The bytes of each row; a character of a token stands for a byte, `SEPARATOR` for none."""
        tokens = (self.tokenizer.id_to_token(row) for row in range(1, self.size))
        return np.array([0, *map(len, tokens)], np.int64)


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


def cut_bytes(ids: npt.NDArray[np.int32], lengths: IntArray) -> dict[str, npt.NDArray[np.int32]]:
    """Cut off the last tenth of the bytes of a text for validation and test."""
    ends = np.cumsum(lengths[ids])
    places = np.searchsorted(ends, [(1.0 - k * SHARE) * ends[-1] for k in (2, 1)])
    return dict(zip(SPLITS, np.split(ids, places), strict=True))

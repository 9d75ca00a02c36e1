"""A byte-level tokenizer that is learned from a training text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption
from embgeo.training.data.corpus import Corpus, check_splits, hash_files
from embgeo.training.data.encoding import SHARE, EncodingRules, encode_files
from embgeo.training.data.layouts import find_layout
from embgeo.training.data.text import read_lines
from embgeo.training.data.tokenizer import Tokenizer

#: What stands between documents, in row 0.
SEPARATOR = "<|endoftext|>"
#: As the files of a run call the tokenizer.
TOKENIZER_NAME = "tokenizer.json"
#: Rows of a vocabulary without pairs: the separator and all bytes.
FEWEST_ROWS = 257
#: The title of an article of WikiText, with which a document begins.
_TITLE = re.compile(r" = [^=].* = \n?")


def load_byte_level(path: Path, size: int, *, tokens: int | None = None) -> Corpus:
    """Read a text or a folder as rows of a tokenizer that is learned from the training split.

    The text is a stream, line ends included. `SEPARATOR` stands before each article of WikiText and
    behind each file. Of a text without splits, the last tenth is validation and test.

    `path`: see `embgeo.training.data.load_corpus`. `size`: rows at most. `tokens`: number of tokens
    of the training split to use, from its start. The tokenizer is learned from all of it.
    """
    layout = find_layout(path)
    splits, notes = layout.splits, list(layout.notes)
    known = layout.published
    whole = "all" not in splits
    lines = read_training_lines(splits["train" if whole else "all"], whole=whole)
    reader = ByteLevel(lines, size, path, titles=known is not None and known.titles)
    lengths = reader.count_bytes()
    rules = EncodingRules(None, separator=0)
    ids = {split: encode_files(files, reader.encode, rules).ids for split, files in splits.items()}
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
        reader.vocabulary(counts, end=True),
        rows["train"],
        rows["valid"],
        rows.get("test"),
        "stream",
        tuple(notes),
        hash_files(path, layout) | {TOKENIZER_NAME: digest},
        reader.text,
        lengths,
    )


class ByteLevel(Tokenizer):
    """Byte-pair encoding of the bytes of a text, learned from its training part.

    `lines`: what the pairs are learned from. `size`: rows at most: `SEPARATOR`, 256 bytes, and
    pairs. `path`: of the text, named in errors. `titles`: whether lines that are titles of articles
    begin documents.

    Attributes
    ----------
    text : str
        The tokenizer as a ``tokenizer.json``.

    References
    ----------
    Radford et al., "Language models are unsupervised multitask learners", 2019, §2.2.
    """

    def __init__(self, lines: Iterable[str], size: int, path: Path, *, titles: bool) -> None:
        if size < FEWEST_ROWS:
            raise BadOption(
                f"bpe is {size:,}", where="data", way_out=f"give a whole number from {FEWEST_ROWS}"
            )
        self.text = learn(lines, size)
        self.titles = titles
        super().__init__(path, self.text)
        # In a text the name of the separator is text.
        self._tokenizer.encode_special_tokens = True

    def encode(self, lines: list[str]) -> list[list[int]]:
        found = super().encode(lines)
        if not self.titles:
            return found
        return [
            [0, *ids] if _TITLE.fullmatch(line) else ids
            for line, ids in zip(lines, found, strict=True)
        ]

    def count_bytes(self) -> npt.NDArray[np.int64]:
        """Of each row; none of the separator. A character of a token stands for a byte."""
        tokens = (self._tokenizer.id_to_token(row) for row in range(self.size))
        return np.array([0 if row == 0 else len(t) for row, t in enumerate(tokens)], np.int64)


def learn(lines: Iterable[str], size: int) -> str:
    """A tokenizer for a text, as JSON; the same text gives the same one."""
    try:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    except ImportError as error:
        raise BadOption(
            "bpe of [data] needs the package tokenizers", way_out="pip install 'embgeo[train]'"
        ) from error
    known = Tokenizer(models.BPE())
    known.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    known.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[SEPARATOR],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    known.train_from_iterator(lines, trainer)
    text: str = known.to_str()
    return text


def read_training_lines(files: Sequence[Path], *, whole: bool) -> Iterator[str]:
    """The lines of a training split; of a text without splits, those of its first nine tenths."""
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


def cut_bytes(
    ids: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[np.int32]]:
    """The last tenth of a text by its bytes, first validation, then test; the rest to train."""
    ends = np.cumsum(lengths[ids])
    places = np.searchsorted(ends, [(1.0 - k * SHARE) * ends[-1] for k in (2, 1)])
    return dict(zip(("train", "valid", "test"), np.split(ids, places), strict=True))

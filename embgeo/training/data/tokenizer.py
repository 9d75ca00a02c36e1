"""Tokenizers that are learned from a text in place of words."""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.training.data.vocabulary import END, Vocabulary

#: Lines to encode together: the library returns kilobytes for each line.
AT_ONCE = 10_000
#: The file of a learned tokenizer in a run.
TOKENIZER_NAME = "tokenizer.json"
#: The row of `END`, which begins and ends a translation.
END_ROW = 0
#: The token between documents of a byte-level tokenizer, in row 0.
SEPARATOR = "<|endoftext|>"
#: The title line of an article of WikiText.
_TITLE = re.compile(r" = [^=].* = \n?")


def import_tokenizers(user: str) -> Any:
    """Import the package tokenizers; `BadOption` says that `user` needs it."""
    try:
        return import_module("tokenizers")
    except ImportError as error:
        raise BadOption(
            f"{user} needs the package tokenizers", way_out="pip install 'embgeo[train]'"
        ) from error


class Tokenizer:
    """Byte-pair encoding, learned from lines; the same lines give the same tokenizer.

    `size`: rows at most. `special`: the token of row 0, whose name in a line is plain text.
    `split`, `decoder`: pre-tokenizer and decoder of the package tokenizers, which is `library`.
    `options`: further options of its trainer.
    """

    def __init__(
        self,
        library: Any,
        lines: Iterable[str],
        size: int,
        *,
        special: str,
        split: Any,
        decoder: Any,
        **options: Any,
    ) -> None:
        learned = library.Tokenizer(library.models.BPE())
        learned.pre_tokenizer, learned.decoder = split, decoder
        trainer = library.trainers.BpeTrainer(
            vocab_size=size, special_tokens=[special], show_progress=False, **options
        )
        learned.train_from_iterator(lines, trainer)
        learned.encode_special_tokens = True
        self.tokenizer = learned
        self.size: int = learned.get_vocab_size()

    def encode(self, lines: Iterable[str]) -> Iterator[list[int]]:
        """Yield the ids of each line."""
        left = iter(lines)
        while batch := list(islice(left, AT_ONCE)):
            for encoding in self.tokenizer.encode_batch(batch, add_special_tokens=False):
                yield encoding.ids

    def vocabulary(self, counts: IntArray) -> Vocabulary:
        """Return rows in the order of the ids, with tokens spelled as the tokenizer stores them."""
        tokens = tuple(map(self.tokenizer.id_to_token, range(self.size)))
        return Vocabulary(tokens, counts, end=END_ROW)


class BytePairs(Tokenizer):
    """Byte-pair encoding of characters, with spaces as characters of their own.

    Characters that the learned text lacks are dropped.

    `sentences`: the text to learn from. `size`: pieces at most, `END` among them.

    References
    ----------
    Sennrich, Haddow and Birch, "Neural machine translation of rare words with subword units", ACL
    2016, §3.2.
    """

    def __init__(self, sentences: Iterable[str], size: int) -> None:
        library = import_tokenizers("translation")
        split = library.pre_tokenizers
        super().__init__(
            library,
            sentences,
            size,
            special=END,
            split=split.Sequence([split.Metaspace(), split.Punctuation()]),
            decoder=library.decoders.Metaspace(),
        )
        if self.size > size:
            raise BadOption(
                f"the text has {self.size - 1:,} characters, and {size:,} rows do not suffice",
                where="size",
                way_out=f"raise data.size with {argument('settings', 'data.size=N')}",
            )

    def decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """Decode the sentences of pieces, without `END`."""
        found: list[str] = self.tokenizer.decode_batch([list(one) for one in rows])
        return found


class ByteLevel(Tokenizer):
    """Byte-pair encoding of the bytes of a text, learned from its training part.

    `lines`: the text to learn from. `size`: rows at most: `SEPARATOR`, 256 bytes, and pairs.
    `titles`: whether `SEPARATOR` precedes titles of articles.

    References
    ----------
    Radford et al., "Language models are unsupervised multitask learners", 2019, §2.2.
    """

    def __init__(self, lines: Iterable[str], size: int, *, titles: bool) -> None:
        library = import_tokenizers("bpe of [data]")
        split = library.pre_tokenizers.ByteLevel
        super().__init__(
            library,
            lines,
            size,
            special=SEPARATOR,
            split=split(add_prefix_space=False),
            decoder=library.decoders.ByteLevel(),
            initial_alphabet=sorted(split.alphabet()),
        )
        self.titles = titles
        #: The tokenizer as a ``tokenizer.json``.
        self.text: str = self.tokenizer.to_str()
        tokens = (self.tokenizer.id_to_token(row) for row in range(1, self.size))
        #: The bytes of each row: a character of a token stands for one, `SEPARATOR` for none.
        self.row_bytes: IntArray = np.array([0, *map(len, tokens)], np.int64)

    def encode_lines(self, lines: list[str], _path: Path) -> Iterator[list[int]]:
        """Yield the ids of each line, with `SEPARATOR` before titles."""
        for line, ids in zip(lines, self.encode(lines), strict=True):
            yield [0, *ids] if self.titles and _TITLE.fullmatch(line) else ids

"""Tokenizers of the package tokenizers in place of words: given, or learned from a text."""

import json
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.files.guard import cannot_read
from embgeo.training.data.encoding import MOST_TYPES
from embgeo.training.data.vocabulary import END, Vocabulary

#: Names of the token that ends a text, in order of preference.
ENDS = ("<eos>", "</s>", "<|endoftext|>", "<|end_of_text|>", "[EOS]", "[SEP]")
#: Lines to encode together: the library returns kilobytes for each line.
AT_ONCE = 10_000
#: The file of a learned tokenizer in a run.
TOKENIZER_NAME = "tokenizer.json"
#: The row of `END`, which begins and ends a translation.
END_ROW = 0
#: The token between documents of a byte-level tokenizer, in row 0.
SEPARATOR = "<|endoftext|>"
#: Rows of a byte-level vocabulary without pairs: the separator and all bytes.
FEWEST_ROWS = 257
#: The title line of an article of WikiText.
_TITLE = re.compile(r" = [^=].* = \n?")


def import_tokenizers(user: str, extra: str = "train") -> Any:
    """Import the package tokenizers; `BadOption` says that `user` needs it."""
    try:
        return import_module("tokenizers")
    except ImportError as error:
        raise BadOption(
            f"{user} needs the package tokenizers", way_out=f"pip install 'embgeo[{extra}]'"
        ) from error


class Tokenizer:
    """Pieces of words as the ids of a tokenizer.

    Special tokens around the input, truncation and padding are turned off, although many
    ``tokenizer.json`` files request them.

    `path`: a ``tokenizer.json``, which errors name. `text`: the content of a learned
    ``tokenizer.json``; names of special tokens in a line are then plain text.
    """

    def __init__(self, path: Path | None, text: str | None = None) -> None:
        self.path = path
        library = import_tokenizers("a tokenizer.json", "hf")
        learned = text is not None
        try:
            if text is None:
                assert path is not None
                text = path.read_text("utf-8")
            self.tokenizer: Any = library.Tokenizer.from_str(text)
        except OSError as error:
            assert path is not None
            raise cannot_read(path, error) from error
        except Exception as error:  # the package raises nothing narrower
            raise self._refuse("is not understood", error) from error
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = learned
        self._ids: dict[str, int] = self.tokenizer.get_vocab(with_added_tokens=True)
        if not self._ids:
            raise self._refuse("is not understood", "it has no tokens")
        model = json.loads(text)["model"]
        self._unknown = self._ids.get(model.get("unk_token"), model.get("unk_id"))
        #: One more than the largest id.
        self.size = max(self._ids.values()) + 1
        if self.size > MOST_TYPES:
            raise self._refuse("is not understood", f"its largest id is {self.size - 1:,}")

    def end(self) -> int | None:
        """Return the id of the token that ends a text, if there is one."""
        return next((self._ids[name] for name in ENDS if name in self._ids), None)

    def encode(self, lines: Iterable[str]) -> Iterator[list[int]]:
        """Yield the ids of each line."""
        left = iter(lines)
        while batch := list(islice(left, AT_ONCE)):
            try:
                found = self.tokenizer.encode_batch(batch, add_special_tokens=False)
            except Exception as error:
                raise self._refuse("fails on the text", error) from error
            for encoding in found:
                yield encoding.ids

    def vocabulary(self, counts: IntArray, *, end: bool = True) -> Vocabulary:
        """Return rows in the order of the ids, with tokens spelled as the tokenizer stores them."""
        names = {number: name for name, number in self._ids.items()}
        tokens = tuple(names.get(number, f"<no token {number}>") for number in range(self.size))
        return Vocabulary(tokens, counts, self._unknown, self.end() if end else None)

    def _refuse(self, what: str, cause: object) -> UnreadableFile:
        return UnreadableFile(
            f"the tokenizer {what} ({ascii(str(cause))[1:-1][:120]})",
            where=self.path,
            way_out="give another tokenizer.json",
        )


def learn_pairs(
    lines: Iterable[str], size: int, *, special: str, split: Any, decoder: Any, **options: Any
) -> str:
    """Learn a ``tokenizer.json``; the same lines give the same one.

    `size`: rows at most. `special`: the token of row 0. `split`, `decoder`: pre-tokenizer and
    decoder of the package tokenizers. `options`: further options of its trainer.
    """
    library = import_tokenizers("training")
    learned = library.Tokenizer(library.models.BPE())
    learned.pre_tokenizer, learned.decoder = split, decoder
    trainer = library.trainers.BpeTrainer(
        vocab_size=size, special_tokens=[special], show_progress=False, **options
    )
    learned.train_from_iterator(lines, trainer)
    text: str = learned.to_str()
    return text


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
        text = learn_pairs(
            sentences,
            size,
            special=END,
            split=split.Sequence([split.Metaspace(), split.Punctuation()]),
            decoder=library.decoders.Metaspace(),
        )
        super().__init__(None, text)
        if self.size > size:
            raise BadOption(
                f"the text has {self.size - 1:,} characters, and {size:,} rows do not suffice",
                where="size",
                way_out="make size of [data] larger",
            )

    def decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """Decode the sentences of pieces, without `END`."""
        found: list[str] = self.tokenizer.decode_batch([list(one) for one in rows])
        return found


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
        tokens = (self.tokenizer.id_to_token(row) for row in range(1, self.size))
        #: The bytes of each row: a character of a token stands for one, `SEPARATOR` for none.
        self.row_bytes: IntArray = np.array([0, *map(len, tokens)], np.int64)

    def encode(self, lines: Iterable[str]) -> Iterator[list[int]]:
        known = list(lines)
        for line, ids in zip(known, super().encode(known), strict=True):
            yield [0, *ids] if self.titles and _TITLE.fullmatch(line) else ids

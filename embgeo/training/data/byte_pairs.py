"""Pieces of words that are learned from a text by byte-pair encoding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption
from embgeo.training.data.vocabulary import END, Vocabulary

Ints = npt.NDArray[np.int64]

#: The row of `END`, which begins and ends what a model writes.
END_ROW = 0
#: Sentences that are encoded together: what the library returns takes kilobytes a sentence.
AT_ONCE = 10_000


class BytePairs:
    """Byte-pair encoding of the characters of a text, with spaces as characters of their own.

    Characters that the text does not have are left out of what is encoded.

    `sentences`: what the pieces are learned from. `size`: pieces at most, `END` among them.

    References
    ----------
    Sennrich, Haddow and Birch, "Neural machine translation of rare words with subword units", ACL
    2016, §3.2.
    """

    def __init__(self, sentences: Iterable[str], size: int) -> None:
        try:
            from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
        except ImportError as error:
            raise BadOption(
                "translation needs the package tokenizers",
                way_out="pip install 'embgeo[train]'",
            ) from error
        known: Any = Tokenizer(models.BPE())
        known.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()]
        )
        known.decoder = decoders.Metaspace()
        known.encode_special_tokens = True  # in a sentence the name of `END` is text
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[END], show_progress=False)
        known.train_from_iterator(sentences, trainer)
        if known.get_vocab_size() > size:
            raise BadOption(
                f"the text has {known.get_vocab_size() - 1:,} characters, and {size:,} rows do not "
                "suffice",
                where="size",
                way_out="make size of [data] larger",
            )
        self._known = known
        self.size: int = known.get_vocab_size()

    def encode(self, sentences: Iterable[str]) -> Iterator[list[int]]:
        """Rows of each sentence, without `END`."""
        left = iter(sentences)
        while batch := list(islice(left, AT_ONCE)):
            for one in self._known.encode_batch(batch, add_special_tokens=False):
                yield one.ids

    def decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """The sentences of pieces; `END` is left out."""
        found: list[str] = self._known.decode_batch([list(one) for one in rows])
        return found

    def vocabulary(self, counts: Ints) -> Vocabulary:
        """The pieces in the order of their rows, with how often each occurs."""
        tokens = tuple(self._known.id_to_token(row) for row in range(self.size))
        return Vocabulary(tokens, counts, None, END_ROW)

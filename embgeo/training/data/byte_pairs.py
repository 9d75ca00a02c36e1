"""Byte-pair encoding that is learned from a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from embgeo.core.errors import BadOption
from embgeo.training.data.tokenizer import Tokenizer, import_tokenizers
from embgeo.training.data.vocabulary import END

#: The row of `END`, which begins and ends a translation.
END_ROW = 0


def learn_pairs(
    lines: Iterable[str], size: int, *, special: str, split: Any, decoder: Any, **options: Any
) -> str:
    """Learn a ``tokenizer.json``; the same lines give the same one.

    `size`: rows at most. `special`: the token of row 0. `split`, `decoder`: pre-tokenizer and
    decoder of the package tokenizers. `options`: further options of its trainer.
    """
    from tokenizers import Tokenizer, models, trainers

    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer, learned.decoder = split, decoder
    trainer = trainers.BpeTrainer(
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
        """The sentences of pieces, without `END`."""
        found: list[str] = self.tokenizer.decode_batch([list(one) for one in rows])
        return found

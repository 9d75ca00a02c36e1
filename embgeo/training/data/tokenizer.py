"""Tokenizers of the package tokenizers in place of words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.io.bounded.guard import cannot_read
from embgeo.training.data.encoding import MOST_TYPES
from embgeo.training.data.vocabulary import Vocabulary

#: Names of the token that ends a text, in order of preference.
ENDS = ("<eos>", "</s>", "<|endoftext|>", "<|end_of_text|>", "[EOS]", "[SEP]")
#: Lines to encode together: the library returns kilobytes for each line.
AT_ONCE = 10_000


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
        """Id of the token that ends a text, if there is one."""
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
        """Rows in the order of the ids, with tokens spelled as the tokenizer stores them."""
        names = {number: name for name, number in self._ids.items()}
        tokens = tuple(names.get(number, f"<no token {number}>") for number in range(self.size))
        return Vocabulary(tokens, counts, self._unknown, self.end() if end else None)

    def _refuse(self, what: str, cause: object) -> UnreadableFile:
        return UnreadableFile(
            f"the tokenizer {what} ({ascii(str(cause))[1:-1][:120]})",
            where=self.path,
            way_out="give another tokenizer.json",
        )

"""A tokenizer.json of Hugging Face's tokenizers in place of words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.io.bounded.guard import cannot_read
from embgeo.training.data.vocabulary import Vocabulary

#: Optional dependencies of the package that are needed here.
EXTRA = "hf"
#: Names that tokenizers give to the token behind a text; the first that is there is taken.
ENDS = ("<eos>", "</s>", "<|endoftext|>", "<|end_of_text|>", "[EOS]", "[SEP]")


class Tokenizer:
    """Pieces of words as the ids of a tokenizer.

    Special tokens that a model puts around its input are left out, and so are the truncation and
    the padding that many of these files ask for.

    `path`: a ``tokenizer.json``. `text`: what it holds, where there is no such file.
    """

    def __init__(self, path: Path, text: str | None = None) -> None:
        self.path = path
        try:
            from tokenizers import Tokenizer as Theirs
        except ImportError as error:
            raise BadOption(
                "a tokenizer.json needs the package tokenizers",
                where="tokenizer",
                way_out=f"pip install 'embgeo[{EXTRA}]'",
            ) from error
        try:
            text = path.read_text("utf-8") if text is None else text
            self._tokenizer: Any = Theirs.from_str(text)
        except OSError as error:
            raise cannot_read(path, error) from error
        except Exception as error:  # the package raises nothing narrower
            raise self._unusable("is not understood", error) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._ids: dict[str, int] = self._tokenizer.get_vocab(with_added_tokens=True)
        if not self._ids:
            raise self._unusable("is not understood", "it has no tokens")
        model = json.loads(text)["model"]
        self._unknown = self._ids.get(model.get("unk_token"), model.get("unk_id"))

    def end(self) -> int | None:
        """Id of the token that ends a text; None if it has no such token."""
        return next((self._ids[name] for name in ENDS if name in self._ids), None)

    def encode(self, lines: list[str]) -> list[list[int]]:
        """Ids of each line."""
        try:
            found = self._tokenizer.encode_batch(lines, add_special_tokens=False)
        except Exception as error:
            raise self._unusable("fails on the text", error) from error
        return [encoding.ids for encoding in found]

    def vocabulary(self, counts: npt.NDArray[np.int64], *, end: bool) -> Vocabulary:
        """Rows in the order of the ids, with tokens spelt as the tokenizer stores them."""
        names = {number: name for name, number in self._ids.items()}
        tokens = tuple(names.get(number, f"<no token {number}>") for number in range(self.size))
        return Vocabulary(
            tokens, counts.astype(np.int64), self._unknown, self.end() if end else None
        )

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return max(self._ids.values()) + 1

    def _unusable(self, what: str, cause: object) -> UnreadableFile:
        return UnreadableFile(
            f"the tokenizer {what} ({ascii(str(cause))[1:-1][:120]})",
            where=self.path,
            way_out="give another tokenizer.json",
        )

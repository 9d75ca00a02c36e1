"""Which tokenizer turns text into the rows of a matrix, without loading it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["tokenizer.json", "SentencePiece", "byte-level BPE", "WordPiece"]


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """A model's own tokenizer, whose ids are the numbers of its labels.

    Attributes
    ----------
    kind : str
    files : tuple of Path
        The first one names it.
    lowercase : bool
        Whether a WordPiece tokenizer puts text into lower case first.
    """

    kind: Kind
    files: tuple[Path, ...]
    lowercase: bool = False

    @property
    def name(self) -> str:
        return self.files[0].name

    @property
    def package(self) -> str:
        """The package that runs it."""
        return "sentencepiece" if self.kind == "SentencePiece" else "tokenizers"

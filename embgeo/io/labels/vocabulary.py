"""A vocabulary: labels in row order, and the tokenizer that turns text into row numbers."""

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


@dataclass(frozen=True, slots=True)
class TokenizerVocabulary:
    """Labels in row order.

    Attributes
    ----------
    tokens : tuple of str
    source : str
        In words: which file, and what was done to make its tokens readable.
    notes : tuple of str
    counts : tuple of int or None
        How often each occurs, where the file says it.
    implied : int
        Labels at the beginning that the file does not list; its program puts them there.
    encoder : TextEncoder or None
        The tokenizer whose ids these are.
    """

    tokens: tuple[str, ...]
    source: str
    notes: tuple[str, ...] = ()
    counts: tuple[int, ...] | None = None
    implied: int = 0
    encoder: TextEncoder | None = None

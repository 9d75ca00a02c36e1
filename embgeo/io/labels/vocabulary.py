"""Vocabularies: labels in row order, and the tokenizer that turns text into row numbers."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["tokenizer.json", "SentencePiece", "byte-level BPE", "WordPiece"]


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """The tokenizer of a model; its token ids are row numbers."""

    kind: Kind
    files: tuple[Path, ...]  # the first one names the tokenizer
    lowercase: bool = False  # whether WordPiece lowercases the text first

    @property
    def name(self) -> str:
        return self.files[0].name

    @property
    def package(self) -> str:
        return "sentencepiece" if self.kind == "SentencePiece" else "tokenizers"


@dataclass(frozen=True, slots=True)
class TokenizerVocabulary:
    """Labels in row order."""

    tokens: tuple[str, ...]
    source: str  # for the reader: the file, and how its tokens were decoded
    notes: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()  # of the tokens; empty if the file has none
    encoder: TextEncoder | None = None
    added: Mapping[str, int] = field(default_factory=dict)  # added tokens and their rows
    special: frozenset[str] = frozenset()  # those among the added that are special


Scheme = Literal["byte-level", "sentencepiece", "plain"]

#: The signs for a space in SentencePiece and in byte-level BPE.
SPACE_SIGN = "\N{LOWER ONE EIGHTH BLOCK}"
BYTE_SPACE_SIGN = "\u0120"
#: A vocabulary follows a scheme if at least this share of its tokens begins with the space sign.
_SIGN_SHARE = 0.05
_INVALID = re.compile("[\udc80-\udcff]")


def _byte_of_character() -> dict[str, int]:
    """Return the alphabet of byte-level BPE: printable bytes as such, others from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    hidden = (byte for byte in range(256) if byte not in set(printable))
    alphabet.update({chr(0x100 + place): byte for place, byte in enumerate(hidden)})
    return alphabet


_BYTES = _byte_of_character()


def from_byte_level(token: str) -> str:
    """Decode a byte-level token; bytes that are not valid UTF-8 become ``<0xE2>``.

    A token with a character outside the byte alphabet is returned unchanged.

    >>> from_byte_level("\\u0120the"), from_byte_level("\\u00e2")
    (' the', '<0xE2>')
    """
    try:
        raw = bytes([_BYTES[character] for character in token])
    except KeyError:
        return token
    return from_bytes(raw)


def from_bytes(raw: bytes) -> str:
    """Decode UTF-8; invalid bytes become ``<0xE2>``."""
    text = raw.decode("utf-8", "surrogateescape")
    return _INVALID.sub(lambda byte: f"<0x{ord(byte[0]) - 0xDC00:02X}>", text)


def from_sentencepiece(token: str) -> str:
    """Replace the space sign of a SentencePiece piece by a space."""
    return token.replace(SPACE_SIGN, " ")


READERS: dict[Scheme, Callable[[str], str]] = {
    "byte-level": from_byte_level,
    "sentencepiece": from_sentencepiece,
    "plain": str,
}


def guess_scheme(tokens: Collection[str]) -> Scheme:
    """Infer from the tokens how the vocabulary writes spaces."""
    if has_sign(tokens, BYTE_SPACE_SIGN):
        return "byte-level"
    return "sentencepiece" if has_sign(tokens, SPACE_SIGN) else "plain"


def has_sign(tokens: Collection[str], sign: str) -> bool:
    """Tell whether enough tokens begin with a sign for it to mark words."""
    return sum(token.startswith(sign) for token in tokens) >= max(1.0, _SIGN_SHARE * len(tokens))


def marks_words_by_spaces(tokens: Sequence[str]) -> bool:
    """Tell whether decoded tokens that begin a word begin with a space, as in ``" the"``."""
    return has_sign(tokens, " ")


def word_of(token: str, spaced: bool) -> str:
    """Return the word that a token spells, or an empty string for a part of a word.

    Where the vocabulary marks words by spaces (`spaced`), ``" the"`` is one and ``"the"`` a part.
    """
    if not spaced:
        return token
    return token[1:] if token.startswith(" ") else ""

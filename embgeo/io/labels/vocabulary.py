"""A vocabulary: labels in row order, and the tokenizer that turns text into row numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
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
    added : mapping of str to int
        Tokens that were added to the model's own, and their rows.
    """

    tokens: tuple[str, ...]
    source: str
    notes: tuple[str, ...] = ()
    counts: tuple[int, ...] | None = None
    implied: int = 0
    encoder: TextEncoder | None = None
    added: Mapping[str, int] = field(default_factory=dict)


Scheme = Literal["byte-level", "sentencepiece", "plain"]

#: SentencePiece's sign for a space, U+2581.
SPACE_SIGN = "\N{LOWER ONE EIGHTH BLOCK}"
#: The byte-level sign for a space, U+0120.
BYTE_SPACE_SIGN = "\u0120"
#: Share of tokens with a scheme's space sign from which a vocabulary is taken to follow it.
_SIGN_SHARE = 0.05


def _byte_of_character() -> dict[str, int]:
    """Byte-level BPE's alphabet: printable bytes stand for themselves, the others from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    hidden = (byte for byte in range(256) if byte not in set(printable))
    alphabet.update({chr(0x100 + place): byte for place, byte in enumerate(hidden)})
    return alphabet


_BYTES = _byte_of_character()


def from_byte_level(token: str) -> str:
    """The text of a byte-level token; bytes that are not UTF-8 by themselves as ``<0xE2>``.

    A token with a character outside the byte alphabet is returned as it is.

    >>> from_byte_level("\\u0120the"), from_byte_level("\\u00e2")
    (' the', '<0xE2>')
    """
    try:
        raw = bytes([_BYTES[character] for character in token])
    except KeyError:
        return token
    return from_bytes(raw)


def from_bytes(raw: bytes) -> str:
    """The text that bytes are in UTF-8; bytes that are none by themselves as ``<0xE2>``."""
    text = raw.decode("utf-8", "surrogateescape")
    if not any("\udc80" <= character <= "\udcff" for character in text):
        return text
    return "".join(
        f"<0x{ord(character) - 0xDC00:02X}>" if "\udc80" <= character <= "\udcff" else character
        for character in text
    )


def from_sentencepiece(token: str) -> str:
    """The text of a SentencePiece piece: its space sign becomes a space."""
    return token.replace(SPACE_SIGN, " ")


READERS: dict[Scheme, Callable[[str], str]] = {
    "byte-level": from_byte_level,
    "sentencepiece": from_sentencepiece,
    "plain": str,
}


def guess_scheme(tokens: Collection[str]) -> Scheme:
    """How a vocabulary writes spaces, judged by the tokens alone."""
    if uses_sign(tokens, BYTE_SPACE_SIGN):
        return "byte-level"
    return "sentencepiece" if uses_sign(tokens, SPACE_SIGN) else "plain"


def uses_sign(tokens: Collection[str], sign: str) -> bool:
    """Whether enough tokens begin with a sign for it to be part of how words are written."""
    return sum(token.startswith(sign) for token in tokens) >= max(1.0, _SIGN_SHARE * len(tokens))


def marks_words_by_spaces(tokens: Sequence[str]) -> bool:
    """Whether (readable) tokens that begin a word begin with a space, as in ``" the"``."""
    return uses_sign(tokens, " ")


def word_of(token: str, spaced: bool) -> str:
    """The whole word that a token is; empty if it is only a piece of one.

    Parameters
    ----------
    token : str
    spaced : bool
        What :func:`marks_words_by_spaces` says of the vocabulary: then ``"the"`` without a space
        continues a word, and only ``" the"`` is one.
    """
    if not spaced:
        return token
    return token[1:] if token.startswith(" ") else ""

"""Special tokens: their roles and spelling."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

#: The key of the token in the tokenizer's files; an added token, special or not; one in the chat
#: template; and types of GGUF.
Role = Literal[
    "bos", "eos", "pad", "unk", "cls", "sep", "mask", "additional", "special", "added", "template",
    "unused", "byte",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A token that a tokenizer or a chat template names."""

    token: str
    #: Its row; None if the matrix has none.
    row: int | None
    #: In the order of `Role`; at least one.
    roles: tuple[Role, ...]


def place_special(special: Iterable[SpecialToken], n: int) -> tuple[SpecialToken, ...]:
    """Return the special tokens of a matrix of `n` rows.

    Those with a row beyond the last have none.
    """
    return tuple(
        one if one.row is None or one.row < n else replace(one, row=None) for one in special
    )


def cut_special(special: Iterable[SpecialToken], start: int, stop: int) -> tuple[SpecialToken, ...]:
    """Return the special tokens of a range of rows, with row numbers counted from its start."""
    return tuple(
        replace(one, row=one.row - start)
        for one in special
        if one.row is not None and start <= one.row < stop
    )


#: Reserved tokens that training never uses.
UNUSED = re.compile(
    r"[<\[]\|?(tokens?_)?(unused|reserved|dummy|placeholder|filler|control_\d)[ _a-z]*\d*\|?[>\]]"
    r"|<\|extra_\d+\|>"
    r"|madeupword\d+|</?s>NOTUSED|<padding row \d+>|<row \d+>",
    re.IGNORECASE,
)
BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
#: ``<s>``, ``</s>``, ``<extra_id_0>``, ``<|endoftext|>``, ``<｜end▁of▁sentence｜>``, ``[CLS]``,
#: ``[/INST]``. HTML tags, which are not words either, match as well.
SPECIAL = re.compile(r"<\|[^|<>]+\|>|<｜[^｜<>]+｜>|</?[A-Za-z_][\w .-]*>|\[/?[A-Z][A-Z0-9_]+\]")

#: First characters of these spellings: most tokens need no match of a pattern.
BEGINNINGS = ("<", "[", "m", "M")


def classify_token(token: str) -> str:
    """Return ``"unused"``, ``"byte"`` or ``"special"``; empty for an ordinary token."""
    if not token.startswith(BEGINNINGS):
        return ""
    if UNUSED.fullmatch(token):
        return "unused"
    if BYTE.fullmatch(token):
        return "byte"
    return "special" if SPECIAL.fullmatch(token) else ""

"""Tokens that are no words by their spelling: special, unused and byte tokens."""

from __future__ import annotations

import re

#: Spellings of tokens that a vocabulary reserves and training never uses.
UNUSED = re.compile(
    r"[<\[]\|?(tokens?_)?(unused|reserved|extra_\d|dummy|placeholder|filler|control_\d)"
    r"[ _a-z]*\d*\|?[>\]]"
    r"|madeupword\d+|</?s>NOTUSED|<padding row \d+>|<row \d+>",
    re.IGNORECASE,
)
BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
#: ``<s>``, ``</s>``, ``<extra_id_0>``, ``<|endoftext|>``, ``<｜end▁of▁sentence｜>``, ``[CLS]``,
#: ``[/INST]``. HTML tags are spelled alike and cannot be distinguished; they are not words either.
SPECIAL = re.compile(
    r"<\|[^|<>]+\|>|<｜[^｜<>]+｜>|</?[A-Za-z_][\w .-]*>|\[/?[A-Z][A-Z0-9_]+\]",
)


#: How spellings of these groups begin: most tokens need no closer look.
BEGINNINGS = ("<", "[", "m", "M")


def classify_token(token: str) -> str:
    """``"unused"``, ``"byte"``, ``"special"`` or empty for an ordinary token."""
    if not token.startswith(BEGINNINGS):
        return ""
    if UNUSED.fullmatch(token):
        return "unused"
    if BYTE.fullmatch(token):
        return "byte"
    return "special" if SPECIAL.fullmatch(token) else ""

"""Special, unused and byte tokens, recognized by their spelling."""

from __future__ import annotations

import re

#: Reserved tokens that training never uses.
UNUSED = re.compile(
    r"[<\[]\|?(tokens?_)?(unused|reserved|extra_\d|dummy|placeholder|filler|control_\d)"
    r"[ _a-z]*\d*\|?[>\]]"
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
    """``"unused"``, ``"byte"`` or ``"special"``; empty for an ordinary token."""
    if not token.startswith(BEGINNINGS):
        return ""
    if UNUSED.fullmatch(token):
        return "unused"
    if BYTE.fullmatch(token):
        return "byte"
    return "special" if SPECIAL.fullmatch(token) else ""

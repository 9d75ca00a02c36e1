"""Strings of Python 2, as the oldest pickles spell them."""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}


def old_string(value: bytes) -> object:
    """A string of Python 2: text where it is ASCII, bytes otherwise (its encoding is unknown)."""
    return value.decode() if value.isascii() else value


def unescaped(text: bytes) -> bytes:
    """What stands between the quotes of a string literal, without its backslashes."""
    return _ESCAPE.sub(_unescape, text)


def _unescape(match: re.Match[bytes]) -> bytes:
    what = match[1]
    if len(what) == 3 and what[:1] == b"x":
        return bytes([int(what[1:], 16)])
    if what[:1].isdigit() and what[:1] < b"8":
        return bytes([int(what, 8) & 0xFF])
    return _ESCAPED.get(what, what if what in b"\\'\"" else b"\\" + what)

"""Strings in pickles: those of Python 2, and bytes spelled as very long texts.

Protocols before 3 have no bytes: Python 3 writes those of an array as a text of the characters 0 to
255, to be encoded as Latin-1. No other text is as long, so it stays in the file until it is needed.
"""

from __future__ import annotations

import codecs
import re

import numpy as np

from embgeo.io.bounded.guard import Damaged

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


def unescape_string(text: bytes) -> bytes:
    """What stands between the quotes of a string literal, without its backslashes."""
    return _ESCAPE.sub(_unescape, text)


def _unescape(match: re.Match[bytes]) -> bytes:
    what = match[1]
    if len(what) == 3 and what[:1] == b"x":
        return bytes([int(what[1:], 16)])
    if what[:1].isdigit() and what[:1] < b"8":
        return bytes([int(what, 8) & 0xFF])
    return _ESCAPED.get(what, what if what in b"\\'\"" else b"\\" + what)


_PIECE = 2**22


class LongText:
    """A text that is not decoded; `piece` is its UTF-8."""

    __slots__ = ("piece",)

    def __init__(self, piece: memoryview) -> None:
        self.piece = piece


class LatinText:
    """The Latin-1 bytes of a :class:`LongText`."""

    __slots__ = ("_length", "_piece")

    def __init__(self, text: LongText) -> None:
        self._piece = text.piece
        self._length = -1

    def __len__(self) -> int:
        if self._length < 0:
            raw = np.frombuffer(self._piece, dtype=np.uint8)
            pieces = (raw[start : start + _PIECE] for start in range(0, len(raw), _PIECE))
            self._length = sum(int(np.count_nonzero(piece & 0xC0 != 0x80)) for piece in pieces)
        return self._length

    def decode(self) -> memoryview:
        """The bytes."""
        out = np.empty(len(self), dtype=np.uint8)
        decoder = codecs.getincrementaldecoder("utf-8")()
        filled = 0
        try:
            for start in range(0, len(self._piece), _PIECE):
                end = start + _PIECE
                text = decoder.decode(self._piece[start:end], end >= len(self._piece))
                out[filled : filled + len(text)] = np.frombuffer(text.encode("latin-1"), np.uint8)
                filled += len(text)
        except UnicodeError:
            raise Damaged("the pickle has bytes with values beyond 255") from None
        return out.data

"""The inert objects that a pickle becomes, and its strings.

Protocols before 3 have no bytes: Python 3 writes those of an array as a text of the characters 0 to
255, to be encoded as Latin-1. No other text is as long, so it stays in the file until it is needed.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import Array

T = TypeVar("T")

#: Objects that a Stub gathers from BUILD: the state, and the keyword arguments of NEWOBJ_EX.
_MOST_STATES = 8
#: Numbers hash without a salt: larger ones can be chosen to collide, which makes a dict quadratic.
_LARGEST_KEY = 2**22


class Global:
    """A name that the file mentions: ``module.name``; never resolved."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Stub:
    """What stands for an object whose class is not on the list.

    Attributes
    ----------
    name : str
        Qualified name of what the file wanted to call.
    args : tuple
        What it would have been called with.
    states, items, entries : sequence
        What BUILD, APPEND and SETITEM put into it.
    """

    __slots__ = ("args", "entries", "items", "name", "states")

    def __init__(self, name: str, args: tuple[object, ...] = ()) -> None:
        self.name = name
        self.args = args
        # Most stubs never get any: the lists are made when they do.
        self.states: Sequence[object] = ()
        self.items: Sequence[object] = ()
        self.entries: Sequence[tuple[object, object]] = ()

    def add_state(self, state: object) -> None:
        if len(self.states) == _MOST_STATES:
            raise Damaged("the pickle sets the state of one object over and over")
        self.states = (*self.states, state)

    def add_items(self, values: Sequence[object]) -> None:
        self.items = _extend(self.items, values)

    def add_entries(self, pairs: Sequence[tuple[object, object]]) -> None:
        self.entries = _extend(self.entries, pairs)


def _extend(known: Sequence[T], more: Sequence[T]) -> list[T]:
    extended = known if isinstance(known, list) else []
    extended.extend(more)
    return extended


class Buildable:
    """An object of a constructor that takes the state given by BUILD."""

    __slots__ = ()

    def build(self, state: object) -> None:
        raise NotImplementedError


class OddKey:
    """A dict key other than a text or a small integer, kept by identity: it is never hashed."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def as_key(value: object) -> object:
    """`value` where hashing it is cheap and safe, boxed otherwise."""
    if value is None or isinstance(value, (str, bytes)):
        return value
    if isinstance(value, int) and -_LARGEST_KEY < value < _LARGEST_KEY:
        return value
    return OddKey(value)


class Leaf:
    """Something in a pickle that holds numbers, or would."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def dtype(self) -> str:
        """numpy's or ml_dtypes' name."""
        raise NotImplementedError

    @property
    def key(self) -> object:
        """Equal for leaves over the same bytes, seen the same way."""
        raise NotImplementedError

    @property
    def unread(self) -> str:
        """Why it is not read; empty where it is."""
        return ""

    def check(self) -> None:
        """Raise Damaged where the bytes do not suffice."""

    def open(self) -> Array:
        raise NotImplementedError


class Unread(Leaf):
    """A tensor of a kind that is named and left out."""

    __slots__ = ("_reason",)

    def __init__(self, reason: str) -> None:
        self._reason = reason

    @property
    def key(self) -> object:
        return id(self)

    @property
    def unread(self) -> str:
        return self._reason


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

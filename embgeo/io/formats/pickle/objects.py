"""Inert objects for the content of a pickle.

Protocols before 3 have no bytes: Python 3 writes the bytes of an array as text, to be encoded as
Latin-1. No other text is as long, so that such texts stay in the file until they are needed.
"""

import codecs
import re
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from embgeo.files.guard import Damaged
from embgeo.files.maps import Array

T = TypeVar("T")

#: A stub collects states of BUILD and keyword arguments of NEWOBJ_EX.
_MOST_STATES = 8
#: Numbers hash without a salt: larger ones can be chosen to collide, so that a dict takes quadratic
#: time.
_LARGEST_KEY = 2**22


class Global:
    """A ``module.name`` in the file; never resolved."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Buildable:
    """An object that takes the state given by BUILD."""

    __slots__ = ()

    def build(self, state: object) -> None:
        raise NotImplementedError


class Stub(Buildable):
    """Placeholder for the call of a class or function that is not allowed.

    `states`, `items` and `entries` are additions by BUILD, APPEND and SETITEM.
    """

    __slots__ = ("args", "entries", "items", "name", "states")

    def __init__(self, name: str, args: tuple[object, ...] = ()) -> None:
        self.name = name
        self.args = args
        # Most stubs stay without: lists are made on demand.
        self.states: Sequence[object] = ()
        self.items: Sequence[object] = ()
        self.entries: Sequence[tuple[object, object]] = ()

    def build(self, state: object) -> None:
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


class KeyBox:
    """Box of a dict key that is not a text or a small integer; hashed by identity."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def as_key(value: object) -> object:
    """Return `value` if hashing it is cheap and safe, else a box of it."""
    if value is None or isinstance(value, (str, bytes)):
        return value
    if isinstance(value, int) and -_LARGEST_KEY < value < _LARGEST_KEY:
        return value
    return KeyBox(value)


class Leaf:
    """An array or tensor in a pickle."""

    __slots__ = ()
    shape: tuple[int, ...]
    #: Name of the type in numpy or ml_dtypes.
    dtype: str
    #: Why the leaf cannot be read, a clause such as "holds text", and what to do.
    problem: str = ""
    way_out: str = ""

    @property
    def key(self) -> object:
        """Equal for leaves that view the same bytes in the same way."""
        return id(self)

    def check(self) -> None:
        """Raise Damaged if the bytes do not suffice."""

    def open(self) -> Array:
        raise NotImplementedError


class UnreadLeaf(Leaf):
    """An array or tensor of a form that is not read."""

    __slots__ = ("problem", "shape", "way_out")
    dtype = ""

    def __init__(self, problem: str, shape: tuple[int, ...] = (), way_out: str = "") -> None:
        self.problem, self.shape, self.way_out = problem, shape, way_out


_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = dict(zip(b"ntrabfv", b"\n\t\r\a\b\f\v", strict=True))


def old_string(value: bytes) -> object:
    """Return a string of Python 2: text if it is ASCII, else bytes, as its encoding is unknown."""
    return value.decode() if value.isascii() else value


def unescape_string(text: bytes) -> bytes:
    """Resolve the escapes in a string literal."""
    return _ESCAPE.sub(_unescape, text)


def _unescape(match: re.Match[bytes]) -> bytes:
    what = match[1]
    if len(what) == 3 and what[:1] == b"x":
        return bytes([int(what[1:], 16)])
    if what[:1].isdigit() and what[:1] < b"8":
        return bytes([int(what, 8) & 0xFF])
    if what in b"\\'\"":
        return what
    return bytes([_ESCAPED[what[0]]]) if what[0] in _ESCAPED else b"\\" + what


_PIECE = 2**22


class LongText:
    """The UTF-8 of a text that is not decoded."""

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

"""The state of a pickle machine that cannot call anything, and the inert objects it builds.

A pickle is a program for a stack machine, and Python's own machine imports and calls whatever the
program names. This one knows the opcodes only. A name in the file becomes a :class:`Global`, which
is a string in a box; calling a name looks it up in the table of constructors that the reader was
given, and builds an inert :class:`Stub` where the table has no entry. Nothing is imported, no
attribute is looked up, and nothing but plain scalars is ever hashed or compared, so that deep or
self-similar structures cost no more than their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from embgeo.sources.guard import Damaged

Constructor = Callable[["Machine", tuple[object, ...]], object]

_WINDOW = 256

#: Integers beyond it hash alike by construction; as keys they would make a dict quadratic.
_LARGEST_KEY = 2**60


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
    states, items, entries : list
        What BUILD, APPEND and SETITEM put into it.
    """

    __slots__ = ("args", "entries", "items", "name", "states")

    def __init__(self, name: str, args: tuple[object, ...] = ()) -> None:
        self.name = name
        self.args = args
        self.states: list[object] = []
        self.items: list[object] = []
        self.entries: list[tuple[object, object]] = []


class Buildable:
    """An object of a constructor that takes the state given by BUILD."""

    __slots__ = ()

    def build(self, state: object) -> None:
        raise NotImplementedError


class OddKey:
    """A dict key other than a short scalar, kept by identity so that it is never hashed."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def as_key(value: object) -> object:
    """`value` where hashing it is cheap and safe, boxed otherwise."""
    if value is None or isinstance(value, (str, bytes, float)):
        return value
    if isinstance(value, int) and -_LARGEST_KEY < value < _LARGEST_KEY:
        return value
    return OddKey(value)


class Machine:
    """The program, the stack and the memo of one pickle.

    Parameters
    ----------
    data : memoryview
        The pickle and whatever follows it.
    constructors : mapping
        What each allowed qualified name builds from its arguments.
    persistent : callable, optional
        Builds an object from a persistent id; a stub by default.
    """

    def __init__(
        self,
        data: memoryview,
        constructors: Mapping[str, Constructor],
        persistent: Callable[[object], object] | None = None,
    ) -> None:
        self.data = data
        self.at = 0
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: dict[int, object] = {}
        self.constructors = constructors
        self.persistent = persistent
        # A constructor copies what it is given; each byte of a sound file is copied once or twice.
        self.copies_left = 4 * len(data) + 65536

    # Bytes of the program.

    def take(self, size: int) -> memoryview:
        end = self.at + size
        if end > len(self.data):
            raise Damaged("the pickle ends early")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def line(self, longest: int | None = None) -> bytes:
        """Up to the next newline, which is taken too."""
        window = _WINDOW
        while True:
            piece = bytes(self.data[self.at : self.at + window])
            end = piece.find(b"\n")
            if longest is not None and (end if end >= 0 else len(piece)) > longest:
                raise Damaged("the pickle has an overlong name or number")
            if end >= 0:
                self.at += end + 1
                return piece[:end]
            if len(piece) < window:
                raise Damaged("the pickle ends early")
            window *= 8

    # The stack.

    def push(self, value: object) -> None:
        self.stack.append(value)

    def pop(self) -> object:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise Damaged("the pickle takes more from its stack than it put there")
        return self.stack.pop()

    def peek(self) -> object:
        value = self.pop()
        self.stack.append(value)
        return value

    def since_mark(self) -> list[object]:
        if not self.marks:
            raise Damaged("the pickle closes a group that it never opened")
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    # Objects.

    def charge(self, amount: int) -> None:
        """Count what a constructor copies, and end a program that multiplies its own data."""
        self.copies_left -= amount
        if self.copies_left < 0:
            raise Damaged("the pickle copies its own data over and over")

    def make(self, function: object, args: object) -> object:
        """The object that calling `function` with `args` stands for; nothing is called."""
        arguments = args if isinstance(args, tuple) else (args,)
        if not isinstance(function, Global):
            return Stub("(call of an object)", arguments)
        constructor = self.constructors.get(function.name)
        if constructor is None:
            return Stub(function.name, arguments)
        return constructor(self, arguments)

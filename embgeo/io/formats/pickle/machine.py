"""State of a pickle machine that cannot call anything.

A pickle is a program for a stack machine; Python's machine imports and calls whatever the program
names. This one turns a name into a :class:`Global`, a boxed string. Calling a name looks it up in
a table of constructors and makes an inert :class:`Stub` of any other name. Nothing is imported, no
attribute is looked up, and only plain scalars are hashed or compared, so that deep or self-similar
structures cost no more than their bytes. The memory of objects is counted as they are made, and a
program that makes too many is refused before it has them.

Costs are bytes of CPython, rounded up; those of containers include what a walk over them notes.
"""

import sys
from collections.abc import Callable, Mapping

from embgeo.files.guard import Damaged
from embgeo.io.formats.pickle.objects import Global, Stub

#: A place on the stack, in a list or in the memo.
ENTRY_COST = 8
#: An entry of a dict, while the dict grows.
PAIR_COST = 100
#: A text besides its characters.
TEXT_COST = 50
#: The object that a constructor makes, or a stub.
CALL_COST = 300

#: Memory of an instruction by opcode; parts that depend on a length are added where it is known.
COSTS = [ENTRY_COST] * 256
for _opcodes, _cost in (
    (b"JMG\x8a\x8b(", 32),
    (b"ILF", 150),
    (b"ae", 40),
    (b"]l\x85\x86\x87t", 170),
    (b"}d", 350),
    (b"\x8f\x91bBCTUPQ\x8e\x96", 250),
    (b"\x82\x83\x84c\x93i", 400),
):
    for _opcode in _opcodes:
        COSTS[_opcode] += _cost


Constructor = Callable[["Machine", tuple[object, ...]], object]

#: A vocabulary of a million words with counts takes half as many.
MOST_OPCODES = 8_000_000
#: Memory of the objects of one pickle; a vocabulary of three million words takes less.
MOST_MEMORY = 700 * 2**20
#: Longer lines are counted before they become text: four bytes a character at most.
_LONG_LINE = 2**16

_WINDOW = 256


class Machine:
    """Program, stack and memo of one pickle; the parameters are those of `loading.load`."""

    def __init__(
        self,
        data: memoryview,
        constructors: Mapping[str, Constructor],
        persistent: Callable[[object], object] | None = None,
        most_opcodes: int = MOST_OPCODES,
    ) -> None:
        self.data = data
        self.most_opcodes = most_opcodes
        self.at = 0
        self.stack: list[object] = []
        self.marks: list[int] = []
        # Nearly all pickles number their memo 0, 1, 2, …: a list takes a tenth of a dict's memory.
        self.memo: list[object] = []
        # Other numbers, as text, which hashes with a salt: integers can be chosen to collide.
        self.far_memo: dict[str, object] = {}
        self.constructors = constructors
        self.persistent = persistent
        self.memory_left = MOST_MEMORY

    # Bytes of the program.

    def take(self, size: int) -> memoryview:
        end = self.at + size
        if end > len(self.data):
            raise Damaged("the pickle ends early")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def number(self, size: int) -> int:
        if size == 1 and self.at < len(self.data):
            self.at += 1
            return self.data[self.at - 1]
        return int.from_bytes(self.take(size), "little")

    def line(self, longest: int | None = None) -> bytes:
        """Take the bytes up to the next newline, and the newline."""
        window = _WINDOW
        while True:
            if window > _LONG_LINE:
                self.charge(min(window, len(self.data) - self.at))
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

    def text(self, piece: memoryview | bytes, encoding: str = "utf-8") -> str:
        """Decode a piece and count its memory."""
        size = len(piece)
        if size > _LONG_LINE:
            self.charge(4 * size)
        text = str(piece, encoding, "surrogatepass" if encoding == "utf-8" else "strict")
        # The mapped bytes are in memory, too, once they are read.
        self.memory_left -= size + sys.getsizeof(text)
        return text

    # The stack and the memo.

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

    def remember(self, index: int) -> None:
        value = self.peek()
        if index < len(self.memo):
            self.memo[index] = value
        elif index == len(self.memo):
            self.far_memo.pop(str(index), None)
            self.memo.append(value)
        else:
            self.charge(PAIR_COST)
            self.far_memo[str(index)] = value

    def remember_next(self) -> None:
        self.remember(len(self.memo) + len(self.far_memo))

    def recall(self, index: int) -> None:
        try:
            near = index < len(self.memo)
            self.push(self.memo[index] if near else self.far_memo[str(index)])
        except KeyError:
            raise Damaged("the pickle recalls something that it never stored") from None

    # Objects.

    def charge(self, amount: int) -> None:
        """Count `amount` bytes; refuse a program that makes implausibly many objects."""
        self.memory_left -= amount
        if self.memory_left < 0:
            raise Damaged(
                "the pickle makes or copies implausibly many objects",
                "save the matrix with numpy.save",
            )

    def make(self, function: object, args: object) -> object:
        """Make the object or stub for calling `function` with `args`, without calling it."""
        self.charge(CALL_COST)
        arguments = args if isinstance(args, tuple) else (args,)
        if not isinstance(function, Global):
            return Stub("(call of an object)", arguments)
        constructor = self.constructors.get(function.name)
        if constructor is None:
            return Stub(function.name, arguments)
        return constructor(self, arguments)

"""A pickle machine that cannot call anything: its state, and the opcodes of protocols 0 to 5.

A pickle is a program for a stack machine; Python's machine imports and calls whatever the program
names. This one turns a name into a :class:`Global`, a boxed string. Calling a name looks it up in
a table of constructors and makes an inert :class:`Stub` of any other name. Nothing is imported, no
attribute is looked up, and only plain scalars are hashed or compared, so that deep or self-similar
structures cost no more than their bytes. The memory of objects is counted as they are made, and a
program that makes too many is refused before it has them. Opcodes are those that CPython's
``pickletools`` documents.

Costs are bytes of CPython, rounded up; those of containers include what a walk over them notes.
"""

import struct
import sys
from collections.abc import Callable, Mapping

from embgeo.files.guard import Damaged
from embgeo.io.formats.pickle import objects

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
        if not isinstance(function, objects.Global):
            return objects.Stub("(call of an object)", arguments)
        constructor = self.constructors.get(function.name)
        if constructor is None:
            return objects.Stub(function.name, arguments)
        return constructor(self, arguments)


# Opcodes

_LONGEST_NAME = 1000
_LONGEST_INTEGER = 1024
_LARGEST_MEMO = 2**60

#: Bytes and texts of this length or more stay in the file.
_LARGE = 4096
_LONGEST_TEXT = 2**20

Step = Callable[[Machine], None]


def run(machine: Machine) -> object:
    """Run a program and return the pickled object."""
    data, end = machine.data, len(machine.data)
    for _ in range(machine.most_opcodes):
        at = machine.at
        if at >= end:
            raise Damaged("the pickle ends early")
        opcode = data[at]
        machine.at = at + 1
        if opcode == _STOP:
            return machine.pop()
        machine.memory_left -= COSTS[opcode]
        _TABLE[opcode](machine)
        if machine.memory_left < 0:
            machine.charge(0)
    raise Damaged(
        f"the pickle has more than {machine.most_opcodes:,} instructions",
        "save the matrix with numpy.save",
    )


def _unknown(machine: Machine) -> None:
    at = machine.at - 1
    raise Damaged(f"not a pickle: byte {machine.data[at]:#04x} at {at:,} is not an opcode")


def _name(machine: Machine) -> None:
    module, name = machine.line(_LONGEST_NAME), machine.line(_LONGEST_NAME)
    machine.charge(len(module) + len(name))
    machine.push(objects.Global(f"{module.decode()}.{name.decode()}"))


def _stack_name(machine: Machine) -> None:
    name, module = machine.pop(), machine.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise Damaged("the pickle names something by other than a string")
    if len(name) + len(module) > _LONGEST_NAME:
        raise Damaged("the pickle has an overlong name or number")
    machine.charge(sys.getsizeof(module) + sys.getsizeof(name))
    machine.push(objects.Global(f"{module}.{name}"))


def _extension(size: int) -> Step:
    return lambda machine: machine.push(objects.Global(f"(extension).{machine.number(size)}"))


def _reduce(machine: Machine) -> None:
    args, function = machine.pop(), machine.pop()
    machine.push(machine.make(function, args))


def _newobj_ex(machine: Machine) -> None:
    keywords, args, function = machine.pop(), machine.pop(), machine.pop()
    made = machine.make(function, args)
    if isinstance(made, objects.Stub):
        made.build(keywords)
    machine.push(made)


def _inst(machine: Machine) -> None:
    _name(machine)
    function = machine.pop()
    machine.push(machine.make(function, tuple(machine.since_mark())))


def _obj(machine: Machine) -> None:
    values = machine.since_mark()
    if not values:
        raise Damaged("the pickle builds an object of no class")
    machine.push(machine.make(values[0], tuple(values[1:])))


def _build(machine: Machine) -> None:
    state, target = machine.pop(), machine.peek()
    if isinstance(target, objects.Buildable):
        target.build(state)


def _persistent(machine: Machine, pid: object) -> None:
    make = machine.persistent
    machine.push(objects.Stub("(persistent id)", (pid,)) if make is None else make(pid))


def _append(machine: Machine, values: list[object]) -> None:
    target = machine.peek()
    if isinstance(target, list):
        target.extend(values)
    elif isinstance(target, objects.Stub):
        target.add_items(values)
    else:
        raise Damaged("the pickle appends to something that is not a list")


def _set_items(machine: Machine, values: list[object]) -> None:
    target = machine.peek()
    if len(values) % 2:
        raise Damaged("the pickle sets a key without a value")
    machine.charge(len(values) // 2 * PAIR_COST)
    pairs = zip(values[::2], values[1::2], strict=True)
    if isinstance(target, dict):
        target.update((objects.as_key(key), value) for key, value in pairs)
    elif isinstance(target, objects.Stub):
        machine.charge(len(values) // 2 * PAIR_COST)  # they become a dict later
        target.add_entries(list(pairs))
    else:
        raise Damaged("the pickle sets keys of something that is not a dict")


def _set_item(machine: Machine) -> None:
    value, key = machine.pop(), machine.pop()
    _set_items(machine, [key, value])


def _frozenset(machine: Machine) -> None:
    stub = objects.Stub("builtins.frozenset")
    stub.add_items(machine.since_mark())
    machine.push(stub)


def _dict(machine: Machine) -> None:
    values = machine.since_mark()
    machine.push({})
    _set_items(machine, values)


def _tuple_of(size: int) -> Step:
    return lambda machine: machine.push(tuple([machine.pop() for _ in range(size)][::-1]))


def _pop(machine: Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.pop()


def _text_index(machine: Machine) -> int:
    index = int(machine.line(20))
    if not 0 <= index < _LARGEST_MEMO:
        raise Damaged("the pickle has a memo number out of range")
    return index


def _bytes(size: int) -> Step:
    def step(machine: Machine) -> None:
        piece = machine.take(machine.number(size))
        machine.push(_copy(machine, piece) if len(piece) < _LARGE else piece)

    return step


def _copy(machine: Machine, piece: memoryview) -> bytes:
    machine.charge(len(piece))
    return bytes(piece)


def _unicode(size: int) -> Step:
    # Inlined calls: a vocabulary has millions of these.
    def step(machine: Machine) -> None:
        start = machine.at + size
        length = int.from_bytes(machine.data[machine.at : start], "little")
        machine.at = start + length
        piece = machine.data[start : machine.at]
        if machine.at > len(machine.data):
            raise Damaged("the pickle ends early")
        if length < _LARGE:
            machine.memory_left -= 4 * length + TEXT_COST
            machine.stack.append(str(piece, "utf-8", "surrogatepass"))
        else:
            machine.push(machine.text(piece) if length < _LONGEST_TEXT else objects.LongText(piece))

    return step


def _old_strings(size: int) -> Step:
    def step(machine: Machine) -> None:
        piece = machine.take(machine.number(size))
        # Only arrays of Python 2 are as long.
        long = len(piece) >= _LONGEST_TEXT
        machine.push(piece if long else objects.old_string(_copy(machine, piece)))

    return step


def _push_quoted(machine: Machine) -> None:
    text = machine.line().strip()
    machine.charge(3 * len(text))
    if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in (b"'", b'"'):
        raise Damaged("the pickle has a string without quotes")
    machine.push(objects.old_string(objects.unescape_string(text[1:-1])))


def _long(size: int) -> Step:
    def step(machine: Machine) -> None:
        length = machine.number(size)
        if length > _LONGEST_INTEGER:
            raise Damaged(f"the pickle has an integer of {length:,} bytes")
        machine.charge(2 * length)
        machine.push(int.from_bytes(machine.take(length), "little", signed=True))

    return step


def _text_int(machine: Machine) -> None:
    line = machine.line(_LONGEST_INTEGER)
    machine.charge(len(line))
    machine.push(line == b"01" if line in (b"00", b"01") else int(line))


def _frame(machine: Machine) -> None:
    if machine.number(8) > len(machine.data) - machine.at:
        raise Damaged("the pickle ends early")


def _protocol(machine: Machine) -> None:
    version = machine.number(1)
    if version > 5:
        raise Damaged(f"pickle protocol {version} is not known", "pickle it with protocol=5")


def _out_of_band(_machine: Machine) -> None:
    raise Damaged(
        "the pickle keeps its arrays outside of the file", "pickle it without buffer_callback"
    )


def _constant(value: object) -> Step:
    return lambda machine: machine.push(value)


_STOP = ord(".")

_STEPS: dict[int, Step] = {
    # The stack and the memo.
    ord("("): lambda m: m.marks.append(len(m.stack)),
    ord("0"): _pop,
    ord("1"): lambda m: m.since_mark().clear(),
    ord("2"): lambda m: m.push(m.peek()),
    ord("p"): lambda m: m.remember(_text_index(m)),
    ord("q"): lambda m: m.remember(m.number(1)),
    ord("r"): lambda m: m.remember(m.number(4)),
    0x94: Machine.remember_next,
    ord("g"): lambda m: m.recall(_text_index(m)),
    ord("h"): lambda m: m.recall(m.number(1)),
    ord("j"): lambda m: m.recall(m.number(4)),
    0x80: _protocol,
    0x95: _frame,
    0x97: _out_of_band,
    0x98: _out_of_band,
    # Numbers and constants.
    ord("N"): _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    ord("I"): _text_int,
    ord("J"): lambda m: m.push(int.from_bytes(m.take(4), "little", signed=True)),
    ord("K"): lambda m: m.push(m.number(1)),
    ord("M"): lambda m: m.push(m.number(2)),
    ord("L"): lambda m: m.push(int(m.line(_LONGEST_INTEGER).rstrip(b"L"))),
    0x8A: _long(1),
    0x8B: _long(4),
    ord("F"): lambda m: m.push(float(m.line(_LONGEST_INTEGER))),
    ord("G"): lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    # Text and bytes.
    ord("S"): _push_quoted,
    ord("T"): _old_strings(4),
    ord("U"): _old_strings(1),
    ord("V"): lambda m: m.push(m.text(m.line(), "raw-unicode-escape")),
    ord("X"): _unicode(4),
    0x8C: _unicode(1),
    0x8D: _unicode(8),
    ord("B"): _bytes(4),
    ord("C"): _bytes(1),
    0x8E: _bytes(8),
    # A bytearray; nothing writes into it.
    0x96: lambda m: m.push(m.take(m.number(8))),
    # Containers.
    ord(")"): _constant(()),
    0x85: _tuple_of(1),
    0x86: _tuple_of(2),
    0x87: _tuple_of(3),
    ord("t"): lambda m: m.push(tuple(m.since_mark())),
    ord("]"): lambda m: m.push([]),
    ord("l"): lambda m: m.push(m.since_mark()),
    ord("a"): lambda m: _append(m, [m.pop()]),
    ord("e"): lambda m: _append(m, m.since_mark()),
    ord("}"): lambda m: m.push({}),
    ord("d"): _dict,
    ord("s"): _set_item,
    ord("u"): lambda m: _set_items(m, m.since_mark()),
    0x8F: lambda m: m.push(objects.Stub("builtins.set")),
    0x90: lambda m: _append(m, m.since_mark()),
    0x91: _frozenset,
    # Names and objects.
    ord("c"): _name,
    0x93: _stack_name,
    0x82: _extension(1),
    0x83: _extension(2),
    0x84: _extension(4),
    ord("R"): _reduce,
    0x81: _reduce,
    0x92: _newobj_ex,
    ord("i"): _inst,
    ord("o"): _obj,
    ord("b"): _build,
    ord("P"): lambda m: _persistent(m, m.text(m.line(_LONGEST_NAME))),
    ord("Q"): lambda m: _persistent(m, m.pop()),
}

_TABLE: list[Step] = [_STEPS.get(opcode, _unknown) for opcode in range(256)]

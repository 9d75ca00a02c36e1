"""Reading pickles without running them: the names that are allowed, and what they build.

Every other name in the file becomes an inert :class:`~embgeo.io.pickle.machine.Stub`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from embgeo.io.bounded.guard import Damaged
from embgeo.io.pickle.machine import MOST_OPCODES, PAIR_COST, Constructor, Machine
from embgeo.io.pickle.numpy_arrays import NUMPY
from embgeo.io.pickle.objects import Global, LatinText, LongText, Stub, as_key
from embgeo.io.pickle.opcodes import run

#: What an entry of a copied list is counted for: more than its place, as whoever looks for arrays
#: and vocabularies goes through it again.
_COPY_COST = 64


def load(
    data: memoryview,
    constructors: Mapping[str, Constructor] | None = None,
    persistent: Callable[[object], object] | None = None,
    most: int = MOST_OPCODES,
) -> object:
    """The object pickled at the start of `data`; nothing in it is imported, called or compared.

    Parameters
    ----------
    data : memoryview
        Large byte strings and arrays in the result are views of it.
    constructors : mapping, optional
        Names to allow besides Python's containers and numpy's arrays.
    persistent : callable, optional
        Builds the objects that the file refers to by a persistent id.
    most : int
        Instructions of the longest program that is read.

    Returns
    -------
    object
        Python's scalars, lists, tuples and dicts; leaves; and stubs for everything else.

    Raises
    ------
    Damaged
        Also where a bound is passed: instructions, memory, length of integers and names.
    """
    return Pickles(data).next(constructors, persistent, most)


class Pickles:
    """Pickles one behind the other; `at` is the byte at which the next one begins."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0

    def next(
        self,
        constructors: Mapping[str, Constructor] | None = None,
        persistent: Callable[[object], object] | None = None,
        most: int = MOST_OPCODES,
    ) -> object:
        """The object of the next one, as :func:`load` gives it."""
        allowed = {**_CONTAINERS, **NUMPY, **(constructors or {})}
        machine = Machine(self.data[self.at :], allowed, persistent, most)
        value = run(machine)
        self.at += machine.at
        return value


def _pairs(machine: Machine, source: object) -> list[tuple[object, object]]:
    if isinstance(source, dict):
        machine.charge(2 * PAIR_COST * len(source))
        return list(source.items())
    if not isinstance(source, (list, tuple)):
        raise Damaged("the pickle builds a dict from something that is none")
    machine.charge(2 * PAIR_COST * len(source))
    pairs = []
    for pair in source:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise Damaged("the pickle builds a dict from something that is none")
        pairs.append((pair[0], pair[1]))
    return pairs


def _dict(machine: Machine, args: tuple[object, ...]) -> object:
    if not args:
        return {}
    return {as_key(key): value for key, value in _pairs(machine, args[0])}


def _empty_dict(_machine: Machine, _args: tuple[object, ...]) -> object:
    # A defaultdict's only argument is its factory; the entries follow.
    return {}


def _list(machine: Machine, args: tuple[object, ...]) -> object:
    if args and isinstance(args[0], (list, tuple)):
        machine.charge(_COPY_COST * len(args[0]))
        return list(args[0])
    return []


def _tuple(machine: Machine, args: tuple[object, ...]) -> object:
    if args and isinstance(args[0], list):
        machine.charge(_COPY_COST * len(args[0]))
        return tuple(args[0])
    return args[0] if args and isinstance(args[0], tuple) else ()


def _encode(machine: Machine, args: tuple[object, ...]) -> object:
    """Protocol 2 has no bytes: Python 3 writes them as text that is to be encoded as Latin-1."""
    if len(args) != 2 or args[1] not in ("latin1", "latin-1"):
        return Stub("_codecs.encode", args)
    if isinstance(args[0], LongText):
        return LatinText(args[0])
    if not isinstance(args[0], str):
        return Stub("_codecs.encode", args)
    machine.charge(len(args[0]))
    try:
        return args[0].encode("latin-1")
    except UnicodeEncodeError:
        raise Damaged("the pickle has bytes with values beyond 255") from None


def _bytes(machine: Machine, args: tuple[object, ...]) -> object:
    if not args:
        return b""
    if isinstance(args[0], (bytes, memoryview)):
        return args[0]
    if isinstance(args[0], (str, LongText)) and len(args) == 2:
        return _encode(machine, args)
    return Stub("builtins.bytes", args)


def _reconstructor(_machine: Machine, args: tuple[object, ...]) -> object:
    """How protocols 0 and 1 make an instance: (class, base, state of the base)."""
    cls = args[0] if args else None
    return Stub(cls.name if isinstance(cls, Global) else "(object)")


_CONTAINERS: dict[str, Constructor] = {
    "collections.OrderedDict": _dict,
    "collections.Counter": _dict,
    "collections.defaultdict": _empty_dict,
    "collections.deque": _list,
    "_codecs.encode": _encode,
    "copyreg._reconstructor": _reconstructor,
    "copy_reg._reconstructor": _reconstructor,
}
for _builtins in ("builtins", "__builtin__"):
    _CONTAINERS[f"{_builtins}.dict"] = _dict
    _CONTAINERS[f"{_builtins}.list"] = _list
    _CONTAINERS[f"{_builtins}.tuple"] = _tuple
    _CONTAINERS[f"{_builtins}.bytes"] = _bytes
    _CONTAINERS[f"{_builtins}.bytearray"] = _bytes

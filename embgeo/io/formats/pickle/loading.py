"""Read pickles without running them; names that are not allowed become inert stubs."""

from collections.abc import Callable, Mapping

from embgeo.files.guard import Damaged
from embgeo.io.formats.pickle.machine import MOST_OPCODES, PAIR_COST, Constructor, Machine, run
from embgeo.io.formats.pickle.numpy_arrays import NUMPY
from embgeo.io.formats.pickle.objects import Global, LatinText, LongText, Stub, as_key

#: Cost of an entry of a copied list: more than its place, as the search for arrays and
#: vocabularies goes through it again.
_COPY_COST = 64
_NOT_PAIRS = "the pickle builds a dict from something that is none"


def load(
    data: memoryview,
    constructors: Mapping[str, Constructor] | None = None,
    persistent: Callable[[object], object] | None = None,
    most: int = MOST_OPCODES,
) -> object:
    """Read the object pickled at the start of `data`; import, call and compare nothing in it.

    The result consists of Python's scalars, lists, tuples and dicts, of leaves, which are views of
    `data`, and of stubs for everything else. `constructors` are allowed besides Python's containers
    and numpy's arrays; `persistent` makes the object for a persistent id. Raises Damaged also for
    more than `most` instructions, too much memory, and long integers or names.
    """
    return Pickles(data).next(constructors, persistent, most)


class Pickles:
    """Consecutive pickles; `at` is the start of the next one."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0

    def next(
        self,
        constructors: Mapping[str, Constructor] | None = None,
        persistent: Callable[[object], object] | None = None,
        most: int = MOST_OPCODES,
    ) -> object:
        """Read the next object as :func:`load` does."""
        allowed = {**_CONTAINERS, **NUMPY, **(constructors or {})}
        machine = Machine(self.data[self.at :], allowed, persistent, most)
        value = run(machine)
        self.at += machine.at
        return value


def _dict(machine: Machine, args: tuple[object, ...]) -> object:
    source = args[0] if args else ()
    if not isinstance(source, (dict, list, tuple)):
        raise Damaged(_NOT_PAIRS)
    machine.charge(2 * PAIR_COST * len(source))
    pairs = list(source.items()) if isinstance(source, dict) else source
    if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs):
        raise Damaged(_NOT_PAIRS)
    return {as_key(key): value for key, value in pairs}


def _copy_as(kind: type[list[object]] | type[tuple[object, ...]]) -> Constructor:
    def copy(machine: Machine, args: tuple[object, ...]) -> object:
        source = args[0] if args and isinstance(args[0], (list, tuple)) else ()
        machine.charge(_COPY_COST * len(source))
        return kind(source)

    return copy


def _encode(machine: Machine, args: tuple[object, ...]) -> object:
    """Encode text as Latin-1: Python 3 writes bytes so in protocol 2, which has none."""
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
    """Make an instance from class, base and state of the base, as protocols 0 and 1 do."""
    cls = args[0] if args else None
    return Stub(cls.name if isinstance(cls, Global) else "(object)")


_CONTAINERS: dict[str, Constructor] = {
    "collections.OrderedDict": _dict,
    "collections.Counter": _dict,
    # The only argument is the factory; the entries follow.
    "collections.defaultdict": lambda _machine, _args: {},
    "collections.deque": _copy_as(list),
    "_codecs.encode": _encode,
    "copyreg._reconstructor": _reconstructor,
    "copy_reg._reconstructor": _reconstructor,
}
for _builtins in ("builtins", "__builtin__"):
    _CONTAINERS[f"{_builtins}.dict"] = _dict
    _CONTAINERS[f"{_builtins}.list"] = _copy_as(list)
    _CONTAINERS[f"{_builtins}.tuple"] = _copy_as(tuple)
    _CONTAINERS[f"{_builtins}.bytes"] = _bytes
    _CONTAINERS[f"{_builtins}.bytearray"] = _bytes

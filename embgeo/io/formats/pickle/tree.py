"""A walk over an unpickled object that finds and names its arrays."""

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from embgeo.files.guard import Damaged, plain, short
from embgeo.io.formats.pickle.objects import Leaf, Stub, UnreadLeaf, as_key
from embgeo.io.formats.word_lists import are_words, is_numbering, is_vocabulary_name
from embgeo.io.model.checkpoint import FEWEST_VECTORS

#: Entries that are visited again because several names or objects share their container.
MOST_REPEATS = 100_000
#: Total length of all names.
_MOST_NAME_BYTES = 2**25
MOST_LEAVES = 200_000
# Modules nest about ten levels deep; linked lists of a training state may be longer.
DEEPEST = 200
_LONGEST_NAME = 1000
_LONGEST_KEY = 200
#: Containers up to this length are inspected before they are entered.
_SHORT = 8
_MOST_VOCABULARIES = 50
#: Shorter strings of bytes hold too few numbers for a matrix.
_FEWEST_BYTES = 1024
_NUMBERS = "lists of numbers"
#: Shorter ones are words of Python 2, in any encoding.
_FEWEST_OF_VECTOR = 8
#: Packages whose objects keep arrays in a form of their own, such as transposed or sparse.
_PACKAGES = ("pandas.", "scipy.sparse", "xarray.", "polars.", "pyarrow.")

Children = Iterator[tuple[str | None, object]]

#: Attributes of torch's modules; they are not part of the names in a state_dict.
_MODULE_PARTS = ("_parameters", "_buffers", "_modules")

#: Prefix of the classes of compiled modules, whose state holds everything side by side.
_SCRIPTED = "__torch__."


@dataclass(slots=True)
class PickleInventory:
    """Leaves with unique printable names, and values of keys that usually hold a vocabulary."""

    leaves: list[tuple[str, Leaf]] = field(default_factory=list)
    vocabularies: list[tuple[str, object]] = field(default_factory=list)


def walk(root: object) -> PickleInventory:
    """Find all leaves below `root` and name them as in a state_dict.

    Shared and cyclic objects are entered once, except for submodules: the tensors of a module with
    two names are listed under both. Raises Damaged for too many entries and too deep nesting.
    """
    return _Walk().run(root)


class _Walk:
    def __init__(self) -> None:
        self.found = PickleInventory()
        self.names: dict[str, int] = {}
        self.named: set[tuple[str, int]] = set()
        self.seen: set[int] = set()
        self.repeats_left = MOST_REPEATS
        self.name_bytes_left = _MOST_NAME_BYTES
        # Other attributes of modules come last: by then the module tree has the names of a
        # state_dict. They do not lead into a module again, as it may hold its parent.
        self.later: deque[tuple[str, Children]] = deque()
        self.enter_again = True

    def run(self, root: object) -> PickleInventory:
        root = unread_form(root) or root
        if isinstance(root, Leaf):
            self.add("", root)
        else:
            self.descend("", self.children("", root))
        self.enter_again = False
        while self.later:
            self.descend(*self.later.popleft())
        return self.found

    def descend(self, prefix: str, children: Children) -> None:
        """Walk depth first without recursion; `above` stops at modules that hold themselves."""
        path: list[tuple[str, Children, int]] = [(prefix, children, 0)]
        above: set[int] = set()
        while path:
            prefix, children, owner = path[-1]
            entry = next(children, None)
            if entry is None:
                path.pop()
                above.discard(owner)
                continue
            key, value = entry
            value = unread_form(value) or value
            if isinstance(value, Leaf):
                self.add(_join(prefix, key), value)
            elif id(value) not in above:
                if len(path) >= DEEPEST:
                    raise Damaged(f"its contents nest more than {DEEPEST} levels deep")
                name = _join(prefix, key)
                path.append((name, self.children(name, value), id(value)))
                above.add(id(value))

    def add(self, name: str, leaf: Leaf) -> None:
        if len(self.found.leaves) >= MOST_LEAVES:
            raise Damaged(f"it holds more than {MOST_LEAVES:,} arrays")
        if (name, id(leaf)) in self.named:
            return  # a dict whose entries are also its attributes holds everything twice
        self.named.add((name, id(leaf)))
        self.name_bytes_left -= len(name)
        if self.name_bytes_left < 0:
            raise Damaged("its arrays have implausibly long names")
        unique = name
        while unique in self.names:
            self.names[name] += 1
            unique = f"{name}#{self.names[name]}"
        self.names[unique] = 1
        self.found.leaves.append((unique, leaf))

    def note_vocabulary(self, name: str, value: object) -> None:
        known = self.found.vocabularies
        if len(known) < _MOST_VOCABULARIES and all(value is not other for _, other in known):
            known.append((name, value))

    def children(self, name: str, value: object) -> Children:
        """Return the entries of `value`; none if it was entered before and is not a module."""
        if isinstance(value, Stub):
            return self.of_stub(name, value)
        if id(value) in self.seen:
            return iter(())
        self.seen.add(id(value))
        if isinstance(value, dict):
            return self.of_dict(name, value)
        return _of_sequence(value)

    def of_dict(
        self, name: str, entries: dict[object, object], *, public_only: bool = False
    ) -> Children:
        for key, value in entries.items():
            if not _holds_something(value):
                continue
            if public_only and not (isinstance(key, str) and not key.startswith("_")):
                continue
            text = _key_text(key)
            if text is not None and (is_vocabulary_name(text) or is_numbering(value)):
                self.note_vocabulary(_join(name, text), value)
            if _may_hold_arrays(value):
                yield text, value

    def of_stub(self, name: str, stub: Stub) -> Children:
        parts = _module_parts(stub)
        known = id(stub) in self.seen
        if known and (parts is None or not self.enter_again):
            return iter(())
        self.seen.add(id(stub))
        if parts is not None:
            tensors, attributes = parts
            if not known:
                self.later.append((name, self.of_dict(name, attributes, public_only=True)))
            for entries in tensors:
                self.count_repeats(entries, known=known)
            return chain.from_iterable(self.of_dict(name, entries) for entries in tensors)
        for part in (*stub.states, stub.args):
            self.count_repeats(part)
        return chain(
            *(self.of_state(name, state) for state in stub.states),
            # Entries of an object whose class is a kind of dict.
            self.of_dict(name, {as_key(key): value for key, value in stub.entries}),
            _of_sequence(stub.items),
            _of_sequence(stub.args),
        )

    def count_repeats(self, part: object, known: bool = False) -> None:
        """Count entries that are entered again, from another object or under another name."""
        if not isinstance(part, (dict, list, tuple)) or not (part or known):
            return
        if known or id(part) in self.seen:
            self.repeats_left -= 1 + len(part)
            if self.repeats_left < 0:
                raise Damaged("its objects hold each other too many times over")
        self.seen.add(id(part))

    def of_state(self, name: str, state: object) -> Children:
        """Return the attributes of an object: entries of its state, and slots in a second dict."""
        if isinstance(state, dict):
            return self.of_dict(name, state)
        if isinstance(state, (list, tuple)):
            if len(state) == 2 and all(part is None or isinstance(part, dict) for part in state):
                dicts = [part for part in state if isinstance(part, dict)]
                return chain.from_iterable(self.of_dict(name, part) for part in dicts)
            return _of_sequence(state)
        return _of_sequence([state])


def unread_form(value: Any) -> UnreadLeaf | None:
    """Return what holds numbers and is not an array, with the reason; None for everything else."""
    if isinstance(value, (bytes, memoryview)) and len(value) >= _FEWEST_BYTES:
        return UnreadLeaf("holds bytes, not an array")
    if isinstance(value, Stub):
        package, _, name = value.name.rpartition(".")
        if package == "array":
            return UnreadLeaf("is an array of Python's module array, not of numpy")
        if value.name.startswith(_PACKAGES):
            package = short(package.partition(".")[0])
            return UnreadLeaf(f"is a {short(name)} of {package}, not an array")
    is_dict = isinstance(value, dict) and len(value) >= FEWEST_VECTORS
    if not is_dict and not (isinstance(value, (list, tuple)) and len(value) > 1):
        return None
    entries = list(itertools.islice(value.values() if isinstance(value, dict) else value, _SHORT))
    first, *others = map(_vector_in, entries)
    if first is None or any(other is None or other[0] != first[0] for other in others):
        return None
    # A dict of a few long lists is a history of training.
    is_history = first[0] == _NUMBERS and first[1] > len(value)
    if is_dict and (is_history or {first} != {*others}):
        return None
    what = f"is a {'dict' if is_dict else 'list'} of {first[0]}, not an array"
    return UnreadLeaf(what, (len(value), first[1]))


def _vector_in(entry: object, *, is_record: bool = False) -> tuple[str, int] | None:
    """Return how an entry of a list or dict is a vector or holds one, and its length."""
    if isinstance(entry, str):
        return None if are_words([entry]) else ("vectors written as text", 0)
    if isinstance(entry, bytes):
        is_text = len(entry) < _FEWEST_OF_VECTOR or (b"\0" not in entry and _is_utf8(entry))
        return None if is_text else ("bytes", len(entry))
    if isinstance(entry, (list, tuple)) and len(entry) > 1 and _are_numbers(entry):
        # The records of an optimizer hold pairs of its settings, and the numbers of parameters.
        is_vector = not is_record or (len(entry) > 2 and type(entry[0]) is float)
        return (_NUMBERS, len(entry)) if is_vector else None
    if isinstance(entry, (list, tuple, dict)) and entry and not is_record:
        values = entry.values() if isinstance(entry, dict) else entry
        found = (_vector_in(value, is_record=True) for value in itertools.islice(values, _SHORT))
        return next((("records", one[1]) for one in found if one), None)
    return None


def _is_utf8(text: bytes) -> bool:
    try:
        return bool(text.decode())
    except UnicodeDecodeError:
        return False


def _are_numbers(values: list[Any] | tuple[Any, ...]) -> bool:
    return all(type(value) in (float, int) for value in values[:_SHORT])


def _of_sequence(values: object) -> Children:
    if not isinstance(values, (list, tuple)):
        return
    if _is_list_of_named(values):
        for name, value in values:
            if _may_hold_arrays(value):
                yield name, value
        return
    for index, value in enumerate(values):
        if _may_hold_arrays(value):
            yield str(index), value


def _is_list_of_named(values: list[Any] | tuple[Any, ...]) -> bool:
    """Tell whether all entries are pairs of a name and a value, as in ``list(d.items())``."""
    return len(values) > 0 and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and pair[0]
        for pair in values
    )


def _holds_something(value: object) -> bool:
    if isinstance(value, (bytes, memoryview)):
        return len(value) >= _FEWEST_BYTES
    if isinstance(value, (dict, list, tuple)):
        return bool(value)
    if isinstance(value, Stub):
        return bool(value.states or value.items or value.entries or value.args)
    return isinstance(value, Leaf)


def _may_hold_arrays(value: object) -> bool:
    if isinstance(value, (list, tuple)) and len(value) <= _SHORT:
        return any(map(_holds_something, value))
    return _holds_something(value)


def _module_parts(
    stub: Stub,
) -> tuple[list[dict[object, object]], dict[object, object]] | None:
    """Return a torch module's tensors and submodules, and the dict with its other attributes."""
    for state in stub.states:
        if not isinstance(state, dict):
            continue
        if stub.name.startswith(_SCRIPTED):
            return [state], {}
        parts = [state.get(part) for part in _MODULE_PARTS]
        if isinstance(parts[0], dict) and isinstance(parts[2], dict):
            return [part for part in parts if isinstance(part, dict)], state
    return None


def _key_text(key: object) -> str | None:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.decode("utf-8", "backslashreplace")
    return str(key) if isinstance(key, (int, float)) else None


def _join(prefix: str, key: str | None) -> str:
    part = "?" if key is None else key[:_LONGEST_KEY]
    name = f"{prefix}.{part}" if prefix else part
    if len(name) > _LONGEST_NAME:
        raise Damaged("it has an overlong name")
    return plain(name)

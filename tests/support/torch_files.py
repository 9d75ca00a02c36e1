"""torch's older formats, written by hand so that every number in them can be anything."""

from __future__ import annotations

import io
import pickle
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

MAGIC = 0x1950A86A20F9469CFC6C
SYSTEM = {
    "protocol_version": 1001,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


class Named:
    """Pickled as a name that nobody has to import."""

    def __init__(self, name: str) -> None:
        self.name = name


class Stored:
    """A persistent id."""

    def __init__(self, pid: object) -> None:
        self.pid = pid


class Called:
    """A name, called with arguments."""

    def __init__(self, name: str, *args: object) -> None:
        self.name, self.args = name, args


class Built:
    """An instance of a named class, with its state."""

    def __init__(self, name: str, state: object) -> None:
        self.name, self.state = name, state


class _Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Python's own pickler in Python, which lets names be written without looking them up."""

    def persistent_id(self, obj: Any) -> Any:
        return obj.pid if isinstance(obj, Stored) else None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, Named):
            module, _, name = obj.name.rpartition(".")
            self.write(b"c" + module.encode() + b"\n" + name.encode() + b"\n")
        elif isinstance(obj, Called):
            self.save(Named(obj.name))
            self.save(obj.args)
            self.write(pickle.REDUCE)
        elif isinstance(obj, Built):
            self.save(Named(obj.name))
            self.write(pickle.EMPTY_TUPLE + pickle.NEWOBJ)
            self.save(obj.state)
            self.write(pickle.BUILD)
        else:
            super().save(obj, save_persistent_id)


def pickle_value(value: object) -> bytes:
    target = io.BytesIO()
    _Pickler(target, protocol=2).dump(value)
    return target.getvalue()


def tensor(
    key: object = "0",
    elements: object = 6,
    *,
    part: object = None,
    kind: str = "torch.FloatStorage",
    offset: object = 0,
    shape: object = (2, 3),
    strides: object = (3, 1),
) -> Called:
    """A tensor over a storage, as the legacy format refers to it."""
    pid = ("storage", Named(kind), key, "cpu", elements, part)
    return Called("torch._utils._rebuild_tensor", Stored(pid), offset, shape, strides)


def storage(*values: float, count: int | None = None) -> bytes:
    length = len(values) if count is None else count
    return struct.pack(f"<q{len(values)}f", length, *values)


def legacy(
    value: object,
    keys: object = ("0",),
    storages: bytes = storage(0, 1, 2, 3, 4, 5),
    *,
    version: object = 1001,
    system: object = SYSTEM,
) -> bytes:
    """The whole file."""
    keys = list(keys) if isinstance(keys, tuple) else keys
    return b"".join(map(pickle_value, (MAGIC, version, system, value, keys))) + storages


@contextmanager
def module_of(*classes: type, name: str = "embgeo_test_gone") -> Iterator[ModuleType]:
    """A module with these classes that is gone afterwards, as a research project's usually is."""
    module = ModuleType(name)
    for cls in classes:
        cls.__module__, cls.__qualname__ = name, cls.__name__
        setattr(module, cls.__name__, cls)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, module)
        yield module

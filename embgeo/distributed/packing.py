"""Statistics as plain data and arrays, and back, for files without pickles.

Not a `RecordFormat`, because a state has no fixed schema: a statistic of any kind holds the
attributes in the `STATE` of its class, and shares arrays with others.

Only the classes in `RECORDS` are restored, with their own attributes only; no code of a statistic
runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from embgeo.core.matrix import FinalNorm, Frequency, Matrix, Origin
from embgeo.core.options import Options
from embgeo.core.special import SpecialToken
from embgeo.distributed.part import Elsewhere, MeasuringSetup, StatePart
from embgeo.numerics.block_rotation import BlockRotation
from embgeo.numerics.eigen import Eigen
from embgeo.stats import STATISTICS
from embgeo.stats.per_row import shorten
from embgeo.stats.statistic import Statistic

Array = npt.NDArray[Any]

#: Classes that may be packed, next to numbers, text, arrays, lists, tuples, mappings and slices.
RECORDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *STATISTICS,
        BlockRotation,
        Eigen,
        Elsewhere,
        FinalNorm,
        Frequency,
        Matrix,
        Options,
        Origin,
        SpecialToken,
        StatePart,
        MeasuringSetup,
    )
}


def list_attributes(kind: type) -> list[str]:
    """The attributes of a record: its fields, and the state of a statistic."""
    return [*(entry.name for entry in fields(kind)), *getattr(kind, "STATE", ())]


class Unpackable(ValueError):
    """Plain data that no `Packer` writes."""


class Packer:
    """Turns values into plain data for JSON, and collects their arrays.

    An array that several values share is collected once, and shared again when unpacked.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[int, Any] = {}
        # Keeps arrays alive, so that no other object gets their id.
        self._kept: list[Any] = []

    def pack(self, value: Any) -> Any:
        """Plain data for a value; TypeError if there is none."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, np.generic):
            return self.pack(value.item())
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if (
            isinstance(value, list)
            and value
            and all(isinstance(v, np.ndarray | range) for v in value)
        ):
            # Statistics that gather rows keep a list of pieces, which is one array in a file.
            return {"pieces": self._array(np.concatenate(value))}
        if isinstance(value, list):
            return [self.pack(item) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.pack(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.pack(k), self.pack(v)] for k, v in value.items()]}
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop, value.step]}
        if RECORDS.get(type(value).__name__) is type(value):
            names = list_attributes(type(value))
            own = {name: self.pack(getattr(value, name)) for name in names}
            return {"record": type(value).__name__, "of": own}
        raise TypeError(f"{type(value).__name__} cannot be saved")

    def _array(self, array: Array) -> Any:
        known = self._names.get(id(array))
        if known is None:
            known = self._names[id(array)] = self._described(array)
            self._kept.append(array)
        return known

    def _described(self, array: Array) -> dict[str, Any]:
        if array.dtype == np.int64 and array.ndim == 1:
            rows = shorten(array)
            if isinstance(rows, range):
                return {"range": [rows.start, rows.stop]}
        name = f"a{len(self.arrays)}"
        if hasattr(ml_dtypes, array.dtype.name):
            # .npy does not know these types: their bits are saved.
            self.arrays[name] = array.view(f"u{array.dtype.itemsize}")
            return {"array": name, "dtype": array.dtype.name}
        self.arrays[name] = array
        return {"array": name}


class Unpacker:
    """Turns the plain data of a `Packer` into values again.

    `array` gives the array of a name. No range may be longer than `longest`: a few bytes of a
    hostile file would become an array of any size.
    """

    def __init__(self, array: Callable[[str], Array], longest: int) -> None:
        self._array = array
        self._longest = longest
        self._known: dict[str | tuple[int, int], Array] = {}

    def unpack(self, plain: Any) -> Any:
        """The value; Unpackable if no `Packer` writes such data."""
        if plain is None or isinstance(plain, bool | int | float | str):
            return plain
        if isinstance(plain, list):
            return [self.unpack(item) for item in plain]
        match plain:
            case {"float": "inf" | "-inf" | "nan" as text}:
                return float(text)
            case {"array": str(name)} if set(plain) <= {"array", "dtype"}:
                return self._shared(name, plain.get("dtype"))
            case {"range": [int(first), int(stop)]}:
                return self._range(first, stop)
            case {"pieces": dict(pieces)}:
                return [self.unpack(pieces)]
            case {"tuple": list(items)}:
                return tuple(self.unpack(item) for item in items)
            case {"dict": list(items)}:
                return {self.unpack(k): self.unpack(v) for k, v in items}
            case {"slice": [start, stop, step]}:
                return slice(*(_bound(edge) for edge in (start, stop, step)))
            case {"record": str(name), "of": dict(attributes)} if name in RECORDS:
                return self._record(RECORDS[name], attributes)
        raise Unpackable("an unknown kind of value")

    def _record(self, kind: type, attributes: dict[str, Any]) -> Any:
        if attributes.keys() != set(list_attributes(kind)):
            raise Unpackable(f"the attributes of {kind.__name__} are others")
        values = {name: self.unpack(plain) for name, plain in attributes.items()}
        if not issubclass(kind, Statistic):
            return kind(**values)
        record = object.__new__(kind)
        vars(record).update(values)
        return record

    def _range(self, first: int, stop: int) -> Array:
        if not 0 <= stop - first <= self._longest:
            raise Unpackable("a range that is longer than the matrix")
        if (first, stop) not in self._known:
            self._known[first, stop] = np.arange(first, stop, dtype=np.int64)
        return self._known[first, stop]

    def _shared(self, name: str, dtype: Any) -> Array:
        if name not in self._known:
            array = self._array(name)
            if dtype is not None:
                array = array.view(_ml_dtype(dtype))
            self._known[name] = array
        return self._known[name]


def _bound(edge: Any) -> int | None:
    if edge is not None and type(edge) is not int:
        raise Unpackable("a slice without numbers")
    return edge


def _ml_dtype(name: Any) -> np.dtype[Any]:
    if not isinstance(name, str) or "float" not in name or not hasattr(ml_dtypes, name):
        raise Unpackable("an array of an unknown type")
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype

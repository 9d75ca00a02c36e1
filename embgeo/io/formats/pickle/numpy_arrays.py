"""numpy's arrays and types in a pickle."""

import re
import sys
from typing import Any

import ml_dtypes
import numpy as np

from embgeo.files.guard import Damaged, short
from embgeo.files.maps import TEXT, Array, count, is_numeric, number_type, view, whole_numbers
from embgeo.io.formats.pickle.machine import Constructor, Machine
from embgeo.io.formats.pickle.objects import Buildable, Global, LatinText, Leaf, Stub

_CODE = re.compile(r"[biufc]\d{1,2}|[SU][1-9]\d{0,7}")


class PickledType(Buildable):
    """A numpy dtype: constructed with its code; BUILD sets its byte order and fields."""

    __slots__ = ("_code", "_order", "_plain")

    def __init__(self, code: object) -> None:
        self._code = code
        self._order = "="
        self._plain = True

    def build(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or state[1] not in ("<", ">", "|", "="):
            raise Damaged("a pickled array has a damaged type")
        self._order = state[1]
        self._plain = all(part is None for part in state[2:5])

    @property
    def name(self) -> str:
        code = self._code
        return code if isinstance(code, str) else getattr(code, "name", "?")

    @property
    def swapped(self) -> bool:
        return self._order == _OTHER_ORDER

    def resolve(self) -> np.dtype[Any] | None:
        """Return the type in native order; None if it is neither a plain number nor text."""
        if not self._plain:
            return None
        if isinstance(self._code, Global):
            module, _, name = self._code.name.rpartition(".")
            known = module == "ml_dtypes" and hasattr(ml_dtypes, name)
            dtype = number_type(name) if known and name[:1] != "_" and "info" not in name else None
            return dtype if dtype is not None and is_numeric(dtype) else None
        if not isinstance(self._code, str) or not _CODE.fullmatch(self._code):
            return None
        try:
            return np.dtype(self._code)
        except TypeError:  # a long double that this machine does not have
            return None


_OTHER_ORDER = ">" if np.little_endian else "<"


class PickledArray(Leaf, Buildable):
    """A numpy array, constructed empty; its bytes stay where they are."""

    __slots__ = ("_data", "_fortran", "_resolved", "_type", "dtype", "problem", "shape")

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()
        self.dtype, self.problem = "", "has no data"
        self._type: PickledType | None = None
        self._resolved: np.dtype[Any] | None = None
        self._data: object = None
        self._fortran = False

    def build(self, state: object) -> None:
        # (version, shape, dtype, is_fortran, data); the oldest numpy left the version out.
        if isinstance(state, tuple) and len(state) == 4:
            state = (0, *state)
        if not isinstance(state, tuple) or len(state) != 5:
            raise Damaged("a pickled array has a damaged state")
        self.set(state[1], state[2], state[4], fortran=bool(state[3]))

    def set(self, shape: object, dtype: object, data: object, *, fortran: bool) -> None:
        self.shape = whole_numbers(shape, "the shape of a pickled array")
        if not isinstance(dtype, PickledType):
            raise Damaged("a pickled array has no type")
        self._type, self._resolved = dtype, dtype.resolve()
        self._data, self._fortran = data, fortran
        if self._resolved is not None:
            is_text = not is_numeric(self._resolved)
            self.dtype = TEXT if is_text else self._resolved.name
            self.problem = "holds text" if is_text else ""
        elif dtype.name.startswith("O"):
            self.problem = "holds Python objects"
        else:
            self.problem = f"is of type {short(dtype.name)}, which is not a plain number"

    @property
    def nbytes(self) -> int:
        return 0 if self._resolved is None else self._resolved.itemsize * count(self.shape)

    def open(self) -> Array:
        if self._resolved is None or self.problem:
            raise Damaged("a pickled array does not hold numbers")
        return self._view(self._resolved)

    def check(self) -> None:
        """Refuse an array that has not exactly the bytes of its shape."""
        if self._resolved is not None and self.nbytes != _length(self._data):
            raise Damaged("a pickled array has other than the bytes that its shape asks for")

    def texts(self, most: int | None = None) -> list[str] | None:
        """Return the entries of a vector of strings, or the first ones; None for other arrays."""
        dtype = self._resolved
        if dtype is None or dtype.kind not in "SU" or len(self.shape) != 1:
            return None
        self.check()
        return text_entries(self._view(dtype)[:most])

    def _view(self, dtype: np.dtype[Any]) -> Array:
        swapped = self._type is not None and self._type.swapped
        raw = np.frombuffer(_raw(self._data), dtype=np.uint8)
        return view(raw, dtype, self.shape, swapped=swapped, fortran=self._fortran)


def text_entries(array: Array) -> list[str] | None:
    """Return the strings of an array of type S (UTF-8) or U; None if they cannot be decoded."""
    if array.dtype.kind == "U":
        native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        # numpy does not check this, and Python raises a SystemError.
        if native.size and native.view(np.uint32).max() > sys.maxunicode:
            return None
        return [str(entry) for entry in native.tolist()]
    try:
        return [entry.decode() for entry in array.tolist()]
    except UnicodeDecodeError:
        return None


def _length(data: object) -> int:
    return len(data) if isinstance(data, (str, LatinText)) else len(_raw(data))


def _raw(data: object) -> bytes | memoryview:
    if isinstance(data, (bytes, memoryview)):
        return data
    if isinstance(data, LatinText):
        return data.decode()
    if isinstance(data, str):
        # A string of Python 2 that is ASCII.
        return data.encode("latin-1")
    raise Damaged("a pickled array has no bytes")


def _dtype(_machine: Machine, args: tuple[object, ...]) -> object:
    return PickledType(args[0]) if args else Stub("numpy.dtype")


def _reconstruct(_machine: Machine, _args: tuple[object, ...]) -> object:
    return PickledArray()


def _frombuffer(_machine: Machine, args: tuple[object, ...]) -> object:
    if len(args) != 4:
        raise Damaged("a pickled array has a damaged state")
    data, dtype, shape, order = args
    array = PickledArray()
    array.set(shape, dtype, data, fortran=order == "F")
    return array


def _scalar(machine: Machine, args: tuple[object, ...]) -> object:
    """Return a string, if it is one: vocabularies may hold ``numpy.str_``."""
    if len(args) == 2 and isinstance(args[0], PickledType) and isinstance(args[1], (bytes, str)):
        machine.charge(len(args[1]))
        array = PickledArray()
        array.set((1,), args[0], args[1], fortran=False)
        texts = array.texts()
        if texts:
            return texts[0]
    return Stub("numpy.scalar", args)


NUMPY: dict[str, Constructor] = {"numpy.dtype": _dtype}
for _core in ("numpy.core", "numpy._core"):
    NUMPY[f"{_core}.multiarray._reconstruct"] = _reconstruct
    NUMPY[f"{_core}.multiarray.scalar"] = _scalar
    NUMPY[f"{_core}.numeric._frombuffer"] = _frombuffer

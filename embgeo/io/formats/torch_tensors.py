"""Storages and tensors of torch in a pickle, without torch.

The names and arguments are those of ``torch._utils._rebuild_tensor_v2`` and its relatives.
"""

from collections.abc import Callable
from dataclasses import dataclass

from embgeo.files import maps
from embgeo.files.guard import Damaged, short
from embgeo.io.formats.pickle.machine import Constructor, Machine
from embgeo.io.formats.pickle.objects import Global, Leaf, Stub, UnreadLeaf

#: Names of types in torch, and in numpy or ml_dtypes.
DTYPES = {
    name: name
    for name in (
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool"),
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
        *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    )
} | {
    "half": "float16", "float": "float32", "double": "float64",
    "short": "int16", "int": "int32", "long": "int64",
    "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
#: Types of storage classes.
_STORAGES = {
    "HalfStorage": "float16", "BFloat16Storage": "bfloat16", "FloatStorage": "float32",
    "DoubleStorage": "float64", "ByteStorage": "uint8", "CharStorage": "int8",
    "ShortStorage": "int16", "IntStorage": "int32", "LongStorage": "int64", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
}  # fmt: skip
_UNTYPED = "UntypedStorage"
#: The class of the tensors of one rank among several, and how ranks are joined.
_OF_RANKS = "DTensor"
_JOIN = (
    "join the ranks with the tool of the trainer, such as verl's model merger: "
    "python -m verl.model_merger merge"
)

#: Bytes of an element of storages that are not read but skipped.
_QUANTIZED = {
    "QInt8Storage": 1, "QUInt8Storage": 1, "QInt32Storage": 4,
    "QUInt4x2Storage": 1, "QUInt2x4Storage": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Storage:
    """Consecutive bytes in the checkpoint."""

    key: str  # the same for all tensors over these bytes
    kind: str  # name of the storage class of torch
    size: int  # in bytes
    load: Callable[[], maps.Bytes]
    swapped: bool = maps.SWAPPED  # whether the byte order is not native

    @property
    def dtype(self) -> str:
        """The type of the storage class; empty for untyped and quantized ones."""
        return _STORAGES.get(self.kind, "")


def storage_bytes(kind: str, elements: int) -> int | None:
    """Return the bytes of `elements` elements of a storage class; None for unknown classes."""
    if kind == _UNTYPED:
        return elements
    if kind in _QUANTIZED:
        return elements * _QUANTIZED[kind]
    name = _STORAGES.get(kind)
    return None if name is None else elements * maps.number_type(name).itemsize


class TorchTensor(Leaf):
    """A tensor over a storage; strides and offset are counted in elements."""

    __slots__ = ("dtype", "offset", "shape", "storage", "strides")
    dtype: str
    shape: tuple[int, ...]

    def __init__(
        self, storage: Storage, dtype: str, offset: object, shape: object, strides: object
    ) -> None:
        self.storage, self.dtype = storage, dtype
        self.offset = maps.whole_numbers((offset,), "a tensor's offset")[0]
        self.shape = maps.whole_numbers(shape, "a tensor's shape")
        self.strides = maps.whole_numbers(strides, "a tensor's strides")

    @property
    def key(self) -> tuple[str, str, int, tuple[int, ...], tuple[int, ...]]:
        return self.storage.key, self.dtype, self.offset, self.shape, self.strides

    def check(self) -> None:
        elements = self.storage.size // maps.number_type(self.dtype).itemsize
        maps.check_view(self.shape, self.strides, self.offset, elements)

    def open(self) -> maps.Array:
        raw, dtype = self.storage.load()[: self.storage.size], maps.number_type(self.dtype)
        swapped = self.storage.swapped
        return maps.view(raw, dtype, self.shape, self.strides, self.offset, swapped=swapped)


def _rebuild(args: tuple[object, ...], dtype: object = None, metadata: object = None) -> Leaf:
    if len(args) < 4:
        raise Damaged("a tensor lacks its storage, offset, shape or strides")
    storage, offset, shape, strides = args[:4]
    if not isinstance(storage, Storage):
        return UnreadLeaf("has a storage that is not part of this file", _shape(shape))
    if isinstance(metadata, dict) and any(metadata.values()):
        return UnreadLeaf("is a lazily negated or conjugated view", _shape(shape))
    name = storage.dtype
    if dtype is not None:
        text = dtype.name if isinstance(dtype, Global) else ""
        name = DTYPES.get(text.removeprefix("torch."), "") if text.startswith("torch.") else ""
        if not name:
            problem = f"is of type {short(text or '?')}, which is not known"
            return UnreadLeaf(problem, _shape(shape))
    if not name:
        return UnreadLeaf(f"has a storage of the kind {short(storage.kind)}", _shape(shape))
    return TorchTensor(storage, name, offset, shape, strides)


def _rebuild_v2(_machine: Machine, args: tuple[object, ...]) -> object:
    # (storage, offset, shape, strides[, requires_grad, hooks[, metadata]])
    return _rebuild(args, metadata=args[6] if len(args) > 6 else None)


def _rebuild_v3(_machine: Machine, args: tuple[object, ...]) -> object:
    # (storage, offset, shape, strides, requires_grad, hooks, dtype[, metadata])
    if len(args) < 7:
        raise Damaged("a tensor lacks its type")
    return _rebuild(args, dtype=args[6], metadata=args[7] if len(args) > 7 else None)


def _first(_machine: Machine, args: tuple[object, ...]) -> object:
    return args[0] if args else None


def _rebuild_subclass(machine: Machine, args: tuple[object, ...]) -> object:
    # (function, class, arguments of the function, state)
    if len(args) < 3:
        raise Damaged("a tensor subclass lacks its arguments")
    return machine.make(args[0], args[2])


def _not_read(kind: str, shape_at: int = -1) -> Constructor:
    """Return a constructor for tensors of a kind that is not read; their shape is an argument."""

    def constructor(_machine: Machine, args: tuple[object, ...]) -> object:
        shape = args[shape_at] if len(args) > shape_at >= 0 else None
        return UnreadLeaf(f"is a {kind} tensor of torch", _shape(shape))

    return constructor


def _rebuild_sparse(_machine: Machine, args: tuple[object, ...]) -> object:
    # (layout, (indices, values, shape, …)), of rows (layout, (starts, columns, values, shape))
    data = args[1] if len(args) > 1 and isinstance(args[1], tuple) else ()
    shape = next((part for part in data if isinstance(part, tuple)), None)
    return UnreadLeaf("is a sparse tensor of torch", _shape(shape))


def _rebuild_wrapper(_machine: Machine, args: tuple[object, ...]) -> object:
    # (class, dtype, shape, …): a tensor that code of another package holds
    cls, shape = (args[0] if args else None), (args[2] if len(args) > 2 else None)
    name = cls.name.rpartition(".")[2] if isinstance(cls, Global) else "subclass"
    if name == _OF_RANKS:
        return UnreadLeaf(f"is a {name}, of which this file holds one rank", _shape(shape), _JOIN)
    package = cls.name.partition(".")[0] if isinstance(cls, Global) else "torch"
    return UnreadLeaf(f"is a {short(name)} of {short(package)}, not a plain tensor", _shape(shape))


def _shape(given: object) -> tuple[int, ...]:
    """Return the shape of a tensor that is not read; empty if it is not a shape."""
    try:
        return maps.whole_numbers(given, "a shape")
    except Damaged:
        return ()


def _size(_machine: Machine, args: tuple[object, ...]) -> object:
    return args[0] if args and isinstance(args[0], tuple) else Stub("torch.Size", args)


TORCH: dict[str, Constructor] = {
    "torch._utils._rebuild_tensor": _rebuild_v2,
    "torch._utils._rebuild_tensor_v2": _rebuild_v2,
    "torch._utils._rebuild_tensor_v3": _rebuild_v3,
    "torch._utils._rebuild_parameter": _first,
    "torch._utils._rebuild_parameter_with_state": _first,
    "torch._tensor._rebuild_from_type": _rebuild_subclass,
    "torch._tensor._rebuild_from_type_v2": _rebuild_subclass,
    "torch.tensor._rebuild_from_type": _rebuild_subclass,
    # An XLA or other device tensor, written as a numpy array.
    "torch._utils._rebuild_device_tensor_from_numpy": _first,
    "torch._utils._rebuild_xla_tensor": _first,
    "torch._utils._rebuild_qtensor": _not_read("quantized", 2),
    "torch._utils._rebuild_sparse_tensor": _rebuild_sparse,
    "torch._utils._rebuild_nested_tensor": _not_read("nested"),
    "torch._utils._rebuild_meta_tensor_no_storage": _not_read("meta", 1),
    "torch._utils._rebuild_wrapper_subclass": _rebuild_wrapper,
    "torch.Size": _size,
}
# TorchScript wraps lists and dicts with their types.
for _tag in ("restore_type_tag", "build_intlist", "build_doublelist", "build_boollist"):
    TORCH[f"torch.jit._pickle.{_tag}"] = _first
TORCH["torch.jit._pickle.build_tensorlist"] = _first

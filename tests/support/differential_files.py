"""Sound files of the formats that other libraries define, other structures of them, and readers."""

from __future__ import annotations

import io
import json
import random
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from embgeo.io.bounded.guard import plain
from embgeo.io.mapped.safetensors import DTYPES
from tests.support.binary_files import archive_of, as_numpy, header_of, npy, safetensors_of
from tests.support.framework_files import gguf_bytes, gguf_tensor
from tests.support.fuzz import mutant

#: Type, shape and bytes of an array; no bytes where it is too large to be read.
Numbers = tuple[str, tuple[int, ...], bytes | None]
Arrays = dict[str, Numbers]

W = np.arange(12, dtype="<f4").reshape(4, 3) + 0.5
SIZES = (0, 1, 2, 3, 4, 6, 12, 2**31, 2**32 + 1, 2**62, 2**63 - 1)


@dataclass(frozen=True)
class Official:
    """A format and the library that defines it.

    Attributes
    ----------
    name, package : str
    sound : callable
        Small sound files.
    restructure : callable
        A file whose structure, other than its bytes, is wrong or unusual.
    read : callable
        The library's arrays; whatever it raises is a refusal.
    suffix : str
        Of a file's name, where the library asks for it.
    """

    name: str
    package: str
    sound: Callable[[], list[bytes]]
    restructure: Callable[[random.Random], bytes]
    read: Callable[[Path], Arrays]
    suffix: str = ""


def numbers_of(array: Any) -> Numbers:
    """In this machine's byte order."""
    array = np.asarray(array)
    if array.dtype.kind in "iufc":
        array = array.astype(array.dtype.newbyteorder("="))
    return array.dtype.name, array.shape, array.tobytes()


def is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biufc"


# safetensors


def _safetensors_sound() -> list[bytes]:
    from safetensors.numpy import save

    many = {"a": W, "b": W.astype("<f2"), "c": np.arange(6, dtype="<i8"), "d": W[:0]}
    scalar = {"x": np.array(1.5, dtype="<f8"), "y": W > 3, "w.é": W}
    return [save({"w": W}), save(many, {"format": "pt"}), save(scalar)]


def _safetensors_other(chance: random.Random) -> bytes:
    kinds = [*DTYPES, "F4", "F6_E2M3", "F128", "f32"]
    entries: list[tuple[str, Any]] = []
    end = 0
    for name in ("a", "b", "c")[: chance.randint(1, 3)]:
        shape = [chance.choice((1, 2, 3, 4)) for _ in range(chance.randint(0, 3))]
        dtype = chance.choice(kinds) if chance.random() < 0.5 else "F32"
        item = ml_dtypes.bfloat16 if dtype == "BF16" else DTYPES.get(dtype, "float32")
        width = 1 if dtype.startswith("F8") else np.dtype(item).itemsize
        start, end = end, end + int(np.prod(shape, dtype=object)) * width
        entries.append((name, {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}))
    content = bytes(range(256))[:end] if end <= 256 else bytes(end)
    facts = chance.choice(entries)[1]
    way = chance.randrange(9)
    if way == 0:
        facts["shape"] = chance.choice((facts["shape"][::-1], [], [-1], [1.0], "2", None, [True]))
    elif way == 1:
        facts["shape"] = [chance.choice(SIZES) for _ in range(chance.randint(0, 3))]
    elif way == 2:
        facts["data_offsets"] = [chance.choice((*SIZES, end)) for _ in range(2)]
    elif way == 3:
        facts["data_offsets"][chance.randrange(2)] += chance.choice((-1, 1, 4))
    elif way == 4:
        entries.append((chance.choice(("a", "b", "__metadata__", "", "a\\u0000")), facts))
    elif way == 5:
        content += bytes(chance.choice((1, 8)))
    elif way == 6:
        facts[chance.choice(("extra", "shape ", "name"))] = 1
    elif way == 7:
        chance.shuffle(entries)
        entries.append(("__metadata__", chance.choice(({}, {"a": "b"}, {"a": 1}, None, []))))
    text = ",".join(f"{json.dumps(name)}:{json.dumps(entry)}" for name, entry in entries)
    header = ("{" + text + "}" + " " * chance.choice((0, 0, 1, 7))).encode()
    length = len(header) + chance.choice((0,) * 12 + (-1, 1, 2**31, 2**63))
    return safetensors_of(header, content, length)


def _safetensors_read(path: Path) -> Arrays:
    import safetensors

    found = {}
    for name, facts in safetensors.deserialize(path.read_bytes()):
        dtype = DTYPES.get(facts["dtype"], facts["dtype"])
        found[plain(name)] = (dtype, tuple(facts["shape"]), bytes(facts["data"]))
    return found


# numpy


def _save_npy(array: Any, version: tuple[int, int] | None = None) -> bytes:
    target = io.BytesIO()
    np.lib.format.write_array(target, np.asanyarray(array), version)
    return target.getvalue()


def _npy_sound() -> list[bytes]:
    arrays = (W, np.asfortranarray(W), W.astype(">f8"), W[0] > 1, np.array(2.5), W * 1j)
    return [*map(_save_npy, arrays), _save_npy(W, (2, 0)), _save_npy(W, (3, 0))]


def _npy_other(chance: random.Random) -> bytes:
    codes = ("f4", "f2", "f8", "f16", "i1", "u8", "b1", "c8", "S3", "U2", "O", "V4", "M8[s]", "i3")
    descr = f"'{chance.choice('<>|=')}{chance.choice((*codes, *codes[:8]))}'"
    sizes = [chance.choice((0, 1, 2, 3, 4, 4, 3, 12, 2**31, 2**62, -1)) for _ in range(3)]
    shape = tuple(sizes[: chance.randint(0, 3)])
    header = header_of(descr, repr(shape) if chance.random() < 0.8 else chance.choice(
        ("(4)", "4", "(4, 3, )", "(4L, 3L)", "[4, 3]", "( 4 ,3)", "(4,,3)", "(0x4, 3)", "(+4, 3)",
         "(4_0,)", "(04,)", "(True, 3)", "(4.0, 3)", "( )", "(,)")
    ))  # fmt: skip
    way = chance.randrange(8)
    if way == 0:
        header = header.replace("False", chance.choice(("True", "0", "1", "None", "false")))
    elif way == 1:
        header = header.replace("'", '"')
    elif way == 2:
        header = header.replace("'shape'", chance.choice(("'descr'", "'form'", "b'shape'")))
    elif way == 3:
        header = header[:-1] + chance.choice(("'x': 1}", "'shape': (2,)}", "} #", "", "}}", " }\n"))
    version = chance.choice((1, 1, 1, 2, 3, 4, 0))
    return npy(header + " " * chance.choice((0, 0, 3, 20_000)), W.tobytes() * 2, version)


def _npy_read(path: Path) -> Arrays:
    found = np.load(path, allow_pickle=False)
    if not isinstance(found, np.ndarray) or not is_number(found.dtype):
        raise TypeError("not an array of numbers")
    return {"": numbers_of(found)}


def _members(chance: random.Random, members: dict[str, bytes]) -> bytes:
    """An archive with these members, one of them damaged, doubled, renamed or left out."""
    names = list(members)
    name = chance.choice(names)
    way = chance.randrange(8)
    if way < 3:
        members = {**members, name: mutant(members[name], chance)}
    elif way == 3:
        members = {**members, name: members[chance.choice(names)]}
    elif way == 4:
        del members[name]
    elif way == 5:
        members[chance.choice((f"{name}x", f"x/{name}", f"{name[:-1]}\\", "é"))] = members.pop(name)
    method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    if way != 6:
        return archive_of(members, method)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for key in (*names, "twice"):
            member = zipfile.ZipInfo(key)
            content = members.get(key, b"")
            archive.writestr(member, content)
        doubled = archive.getinfo(name)
        other = archive.getinfo(chance.choice(names))
        doubled.header_offset = chance.choice((other.header_offset, doubled.header_offset + 1))
        doubled.CRC ^= chance.choice((0, 1))
    return target.getvalue()


def _npz_members() -> dict[str, bytes]:
    arrays = {"a": W, "b.c": W.T.copy(), "d": W.astype(">i2"), "words": np.array(["x", "y"])}
    return {f"{name}.npy": _save_npy(array) for name, array in arrays.items()}


def _npz_sound() -> list[bytes]:
    return [archive_of(_npz_members()), archive_of(_npz_members(), zipfile.ZIP_DEFLATED)]


def _npz_read(path: Path) -> Arrays:
    found = {}
    # Of a damaged archive numpy leaves a file that it opened itself open.
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
        for name in archive.files:
            array = archive[name]
            if isinstance(array, np.ndarray) and is_number(array.dtype):
                found[plain(name)] = numbers_of(array)
    return found


# torch


def _torch_states() -> list[Any]:
    import torch

    w, base = torch.from_numpy(W.copy()), torch.arange(24.0)
    parameter = torch.nn.Parameter(w.double())
    views = {"t": w.t(), "v": base[12:].view(4, 3), "e": base[:1].expand(2, 5), "w": w}
    kinds = {
        "h": w.half(),
        "b": w.bfloat16(),
        "i": w.long(),
        "o": w > 3,
        "f": w.to(torch.float8_e5m2),
    }
    return [{"w": w}, views, {"m": kinds, "l": [w, {"p": parameter}], "n": 3, "x": None}]


def _save_with_torch() -> list[bytes]:
    import torch

    saved = []
    for state in _torch_states():
        target = io.BytesIO()
        torch.save(state, target)
        saved.append(target.getvalue())
    return saved


def _torch_other(chance: random.Random) -> bytes:
    if not _TORCH:
        _TORCH.extend(_save_with_torch())
    with zipfile.ZipFile(io.BytesIO(chance.choice(_TORCH))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    root = next(iter(members)).split("/")[0]
    way = chance.randrange(4)
    if way == 0:
        members[f"{root}/byteorder"] = chance.choice((b"big", b"little", b"", b"pdp"))
    elif way < 3:  # small numbers of the program: sizes, strides, offsets, counts of elements
        program = bytearray(members[f"{root}/data.pkl"])
        for at in chance.sample([k for k, byte in enumerate(program[:-1]) if byte == 75], k=1):
            program[at + 1] = chance.choice((0, 1, 2, 3, 4, 6, 12, 24, 255))
        members[f"{root}/data.pkl"] = bytes(program)
        if chance.random() < 0.8:
            return archive_of(members)
    return _members(chance, members)


_TORCH: list[bytes] = []


def _torch_read(path: Path) -> Arrays:
    import torch

    with zipfile.ZipFile(path) as archive:
        marked = [info.filename for info in archive.infolist() if info.external_attr & _FOLDER]
    found = dict(_flat("", torch.load(path, map_location="cpu", weights_only=True)))
    if marked:  # torch 2.13 gives memory that it has read nothing into
        raise ValueError("a member that is marked as a folder")
    return found


#: Of a member's external attributes.
_FOLDER = 0x10


def _flat(name: str, value: Any) -> Iterator[tuple[str, Numbers]]:
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_quantized or value.is_meta:
            return
        many = value.numel() * value.element_size() > 2**24
        dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
        yield name, (dtype, shape, None) if many else numbers_of(as_numpy(torch, value))
    elif isinstance(value, (dict, list, tuple)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            part = key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else str(key)
            yield from _flat(f"{name}.{plain(part)}" if name else plain(part), inner)


# GGUF


def _gguf_sound() -> list[bytes]:
    plain_ones = [gguf_tensor("w", [3, 4], 0, 0), gguf_tensor("h", [12], 1, 64)]
    blocks = [gguf_tensor("q", [32, 2], 2, 0), gguf_tensor("k", [32], 8, 64)]
    words = {"tokenizer.ggml.tokens": ["a", "b"], "general.architecture": "gpt2"}
    return [
        gguf_bytes(words, plain_ones, W.tobytes() + bytes(16) + W.astype("<f2").tobytes()),
        gguf_bytes({"general.alignment": 32}, blocks, bytes(range(98))),
    ]


def _gguf_other(chance: random.Random) -> bytes:
    kinds = (0, 0, 1, 24, 25, 26, 27, 28, 30, 2, 8, 12, 39, 5, 99)
    tensors, place = [], 0
    for name in ("w", "v", chance.choice(("w", "x", "é")))[: chance.randint(1, 3)]:
        sizes = [chance.choice((1, 2, 3, 4, 32, 32)) for _ in range(chance.randint(0, 4))]
        if chance.random() < 0.1:
            sizes = [chance.choice(SIZES) for _ in range(chance.choice((1, 2, 5)))]
        tensors.append(gguf_tensor(name, sizes, chance.choice(kinds), place))
        place += chance.choice((32, 64, 128, 256, 1, 0))
    alignment = chance.choice((32, 32, 32, 64, 8, 1, 0, 33))
    metadata: dict[str, Any] = {"general.alignment": alignment} if chance.random() < 0.4 else {}
    metadata["general.name"] = chance.choice(("a", ["a", "b"], [1, 2]))
    content = bytes(k % 251 for k in range(chance.choice((300, 2000, 40))))
    whole = gguf_bytes(metadata, tensors, content, version=chance.choice((3, 3, 3, 2, 1, 4)))
    return whole if chance.random() < 0.8 else mutant(whole, chance)


def _gguf_read(path: Path) -> Arrays:
    from gguf import GGUFReader
    from gguf.quants import dequantize

    found = {}
    for tensor in GGUFReader(path, "r").tensors:
        shape, data = tuple(int(size) for size in reversed(tensor.shape)), tensor.data
        if tensor.tensor_type.name == "BF16":
            data = np.ascontiguousarray(data).view(np.uint8).view(ml_dtypes.bfloat16)
        elif data.dtype == np.uint8:
            data = dequantize(data, tensor.tensor_type)
        found[plain(tensor.name)] = numbers_of(np.asarray(data).reshape(shape))
    return found


# HDF5


def _hdf5_file(fill: Callable[[Any], None], **more: Any) -> bytes:
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(Path(folder) / "made", "w", **more) as file:
            fill(file)
        return (Path(folder) / "made").read_bytes()


def _hdf5_sound() -> list[bytes]:
    def simple(file: Any) -> None:
        file["w"], file["g/v"] = W, W.astype(">f8")

    def packed(file: Any) -> None:
        file.create_dataset("w", data=W, chunks=(2, 3), compression="gzip", shuffle=True)
        file.create_dataset("v", data=W.astype("<i2"), chunks=(4, 1), fletcher32=True)

    return [_hdf5_file(simple), _hdf5_file(packed), _hdf5_file(simple, libver="latest")]


def _hdf5_other(chance: random.Random) -> bytes:
    def fill(file: Any) -> None:
        for name in ("a", "g/b", "g/h/c")[: chance.randint(1, 3)]:
            shape = tuple(chance.choice((0, 1, 2, 5)) for _ in range(chance.randint(0, 3)))
            dtype = chance.choice(("<f4", ">f4", "<f2", "<i8", "|u1", ">u2", "?", "S3", "<c8"))
            more: dict[str, Any] = {}
            if shape and 0 not in shape and chance.random() < 0.5:
                more["chunks"] = tuple(chance.randint(1, size) for size in shape)
                more["compression"] = chance.choice((None, "gzip", "lzf"))
                more["scaleoffset"] = chance.choice((None, None, 2)) if dtype == "<i8" else None
                more["fillvalue"] = (
                    None if dtype in ("?", "S3", "<c8") else chance.choice((None, 1))
                )
            made = file.create_dataset(name, shape, dtype, **more)
            if shape and 0 not in shape and chance.random() < 0.8:
                made[:1] = np.ones((1, *shape[1:])).astype(dtype)
        file["soft"] = h5py.SoftLink("/a")
        file["hard"] = file["a"]

    import h5py

    whole = _hdf5_file(fill, libver=chance.choice(("earliest", "latest")))
    return whole if chance.random() < 0.3 else mutant(whole, chance)


def _hdf5_read(path: Path) -> Arrays:
    import h5py

    found: Arrays = {}

    def walk(above: str, group: Any, seen: tuple[Any, ...]) -> None:
        for key in group:
            name = f"{above}/{key}" if above else key
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                continue
            item = group[key]
            address = h5py.h5o.get_info(item.id).addr
            if isinstance(item, h5py.Dataset):
                if item.shape is not None and is_number(item.dtype):
                    found[plain(name)] = numbers_of(item[()])
            elif isinstance(item, h5py.Group) and address not in seen:
                walk(name, item, (*seen, address))

    with h5py.File(path, "r") as file:
        walk("", file, (h5py.h5o.get_info(file.id).addr,))
    return found


# Parquet


def _parquet_file(columns: dict[str, Any], **more: Any) -> bytes:
    import pyarrow
    from pyarrow import parquet

    target = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), target, **more)
    return target.getvalue()


def _vectors(values: Any, width: int = 3) -> Any:
    import pyarrow

    return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values), width)


def _parquet_sound() -> list[bytes]:
    import pyarrow

    flat = W.ravel()
    lists = pyarrow.array(W.astype("f8").tolist(), pyarrow.list_(pyarrow.float64()))
    return [
        _parquet_file({"word": ["a", "b", "c", "d"], "e": _vectors(flat)}),
        _parquet_file({"e": lists, "n": [4, 3, 2, 1]}, compression="gzip", use_dictionary=False),
        _parquet_file({"x": W[:, 0], "y": W[:, 1]}, row_group_size=2, compression="none"),
    ]


def _parquet_other(chance: random.Random) -> bytes:
    import pyarrow

    dtype = chance.choice(("f2", "f4", "f8", "i4"))
    rows = chance.choice((0, 1, 4))
    values = (np.arange(3 * rows) + 0.5).astype(dtype)
    lists: list[Any] = values.reshape(rows, 3).tolist()
    if rows and chance.random() < 0.3:
        lists[chance.randrange(rows)] = chance.choice((None, [], [1.0], [1.0, None, 3.0]))
    inner = pyarrow.from_numpy_dtype(np.dtype(dtype))
    made = pyarrow.list_(inner, chance.choice((-1, 3))) if dtype != "f2" else pyarrow.list_(inner)
    try:
        column = pyarrow.array(lists, made)
    except pyarrow.ArrowInvalid:
        column = pyarrow.array(lists, pyarrow.list_(inner))
    more = {
        "compression": chance.choice(("none", "snappy", "gzip", "zstd")),
        "data_page_version": chance.choice(("1.0", "2.0")),
        "use_dictionary": chance.random() < 0.5,
        "row_group_size": chance.choice((1, 2, 100)),
    }
    whole = _parquet_file({"e": column, "n": list(range(rows))}, **more)
    return whole if chance.random() < 0.3 else mutant(whole, chance)


def _parquet_read(path: Path) -> Arrays:
    """Columns of lists of floats, of one length; or all columns of floats together."""
    from pyarrow import compute, parquet, types

    table = parquet.read_table(path, use_threads=False)
    table.validate(full=True)
    found, floats = {}, []
    for field, column in zip(table.schema, table.columns, strict=True):
        if types.is_floating(field.type):
            floats.append(column)
        kind = getattr(field.type, "value_type", None)
        if kind is None or not types.is_floating(kind) or not hasattr(field.type, "value_field"):
            continue
        rows = column.to_pylist()
        width = getattr(field.type, "list_size", len(rows[0]) if rows and rows[0] else 0)
        if any(row is None or len(row) != width or None in row for row in rows):
            raise ValueError("no matrix")
        # Not of `rows`: Python's floats do not keep every bit of a NaN.
        array = compute.list_flatten(column).to_numpy().reshape(len(rows), width)
        found[plain(field.name)] = numbers_of(array)
    if not found and len(floats) > 1:
        if any(column.null_count for column in floats):
            raise ValueError("no matrix")
        wide = any(types.is_float64(column.type) for column in floats)
        block = np.column_stack([column.to_numpy() for column in floats])
        found["columns"] = numbers_of(block.astype("f8" if wide else "f4"))
    return found


_SAFETENSORS = (_safetensors_sound, _safetensors_other, _safetensors_read)
OFFICIAL = {
    official.name: official
    for official in (
        Official("safetensors", "safetensors", *_SAFETENSORS),
        Official("npy", "numpy", _npy_sound, _npy_other, _npy_read),
        Official("npz", "numpy", _npz_sound, lambda c: _members(c, _npz_members()), _npz_read),
        Official("torch", "torch", _save_with_torch, _torch_other, _torch_read),
        Official("gguf", "gguf", _gguf_sound, _gguf_other, _gguf_read),
        Official("hdf5", "h5py", _hdf5_sound, _hdf5_other, _hdf5_read),
        Official("parquet", "pyarrow", _parquet_sound, _parquet_other, _parquet_read, ".parquet"),
    )
}  # fmt: skip

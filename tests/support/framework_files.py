"""Files of other frameworks for tests, written by hand so that every number in them can lie."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

N, D = 40, 8
W = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)


def needs(package: str) -> Any:
    return pytest.importorskip(package, reason=f"{package} is not installed")


# GGUF


def gguf_text(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def gguf_value(value: Any) -> bytes:
    """A text, a number, or a list of either, with its type."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_text(value)
    if isinstance(value, int):
        return struct.pack("<IQ", 10, value) if value >= 2**32 else struct.pack("<II", 4, value)
    inner = [gguf_value(item) for item in value]
    kind = inner[0][:4] if inner else struct.pack("<I", 4)
    return (
        struct.pack("<I", 9)
        + kind
        + struct.pack("<Q", len(inner))
        + b"".join(item[4:] for item in inner)
    )


def gguf_tensor(name: str, sizes: Iterable[int], kind: int, offset: int) -> bytes:
    """A tensor's description; `sizes` with the fastest dimension first, as in the file."""
    sizes = list(sizes)
    return (
        gguf_text(name)
        + struct.pack("<I", len(sizes))
        + b"".join(struct.pack("<Q", size % 2**64) for size in sizes)
        + struct.pack("<IQ", kind, offset)
    )


def gguf_bytes(
    metadata: dict[str, Any],
    tensors: list[bytes],
    data: bytes,
    *,
    version: int = 3,
    promised: int | None = None,
) -> bytes:
    """A file; `promised` tensors instead of those that are there."""
    count = len(tensors) if promised is None else promised
    head = b"GGUF" + struct.pack("<IQQ", version, count, len(metadata))
    for key, value in metadata.items():
        head += gguf_text(key) + gguf_value(value)
    head += b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


def write_gguf(path: Path, tensors: dict[str, Any], *added: tuple[Any, ...], **how: Any) -> Path:
    """As the package writes it: arrays, or pairs with their type, and what else is added."""
    writer = needs("gguf").GGUFWriter(path, "llama", **how)
    for kind, *arguments in added:
        getattr(writer, f"add_{kind}")(*arguments)
    for name, held in tensors.items():
        array, kind = held if isinstance(held, tuple) else (held, None)
        writer.add_tensor(name, array.copy(), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


# Protocol buffers


def varint(value: int) -> bytes:
    value %= 2**64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(place: int, value: int | bytes | str) -> bytes:
    """A field that holds a number, or else bytes."""
    if isinstance(value, int):
        return varint(place << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(place << 3 | 2) + varint(len(raw)) + raw


def onnx_tensor(
    name: str, dims: Iterable[int], raw: bytes | None, kind: int = 1, **external: str
) -> bytes:
    made = b"".join(field(1, size) for size in dims) + field(2, kind) + field(8, name)
    if raw is not None:
        made += field(9, raw)
    for key, value in external.items():
        made += field(13, field(1, key) + field(2, value))
    return made + (field(14, 1) if external else b"")


def onnx_bytes(tensors: Iterable[bytes]) -> bytes:
    graph = b"".join(field(5, tensor) for tensor in tensors)
    return field(1, 8) + field(2, "pytorch") + field(7, graph)


# HDF5


def hdf5(tmp_path: Path, fill: Callable[[Any], None]) -> Path:
    """A file that `fill` has filled."""
    h5py = needs("h5py")
    path = tmp_path / "a"
    with h5py.File(path, "w") as file:
        fill(file)
    return path

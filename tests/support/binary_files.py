"""Binary files for tests: written by hand where every number in them must be able to lie."""

from __future__ import annotations

import io
import json
import mmap
import os
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from embgeo.core.errors import UnreadableFile
from embgeo.files.guard import reading
from embgeo.io.formats import find_format
from embgeo.io.formats.format import Beside, Format, open_with
from embgeo.io.model.checkpoint import Checkpoint
from embgeo.io.places.local import LocalFolder
from tests.support.refusals import refusal


def head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4096)


def open_as(known: Format, path: Path) -> Checkpoint:
    """As one of a format."""
    beside = Beside(LocalFolder(path.parent), path.name)
    with reading(path, known.NAME):
        data = beside.folder.open(path.name)
    return open_with(known, data, beside)


def open_file(path: Path) -> Checkpoint:
    """By the first format that recognizes the file."""
    found = find_format(head(path))
    assert found is not None
    return open_as(found, path)


def arrays(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    read = [tensor for tensor in checkpoint.tensors if not tensor.problem]
    made = {tensor.name: tensor.open() for tensor in read}
    for tensor in read:
        assert made[tensor.name].shape == tensor.shape
        assert made[tensor.name].dtype.name == tensor.dtype
        assert not made[tensor.name].flags.writeable
    return made


def is_mapped(array: Any) -> bool:
    while array is not None:
        if isinstance(array, mmap.mmap):
            return True
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return False


@contextmanager
def quick(seconds: float = 5) -> Iterator[None]:
    """Limit the seconds of computing, in this process and those it has waited for.

    A busy machine may take longer for them.
    """
    started = sum(os.times()[:4])
    yield
    assert sum(os.times()[:4]) - started < seconds


def open_all(module: ModuleType, path: Path) -> None:
    for tensor in open_as(module, path).tensors:
        if tensor.problem:
            continue
        assert tensor.open().shape == tensor.shape
        assert tensor.nbytes >= 0


def check_refused(module: ModuleType, path: Path) -> None:
    """Opening the file, or a tensor in it, ends in one line that names the file."""
    with quick(), refusal(UnreadableFile):
        open_all(module, path)


def npy(header: str, body: bytes = b"", version: int = 1) -> bytes:
    text = header.encode("latin-1") + b"\n"
    size = 2 if version == 1 else 4
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(size, "little") + text + body


def header_of(descr: str, shape: str) -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def archive_of(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target.getvalue()


def tensor_program(
    *,
    elements: int = 6,
    offset: bytes = b"K\x00",
    shape: bytes = b"K\x02K\x03\x86",
    strides: bytes = b"K\x03K\x01\x86",
    storage: bytes = b"ctorch\nFloatStorage\n",
    key: bytes = b"0",
) -> bytes:
    return (
        b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n("
        b"(X\x07\x00\x00\x00storage" + storage + b"X" + struct.pack("<I", len(key)) + key
        + b"X\x03\x00\x00\x00cpu\x8a\x08" + struct.pack("<q", elements) + b"tQ"
        + offset + shape + strides + b"\x89}tRs."
    )  # fmt: skip


def checkpoint(program: bytes, data: bytes = bytes(24), **extra: bytes) -> bytes:
    members = {"a/data.pkl": program, "a/data/0": data, **{f"a/{k}": v for k, v in extra.items()}}
    return archive_of(members)


def number(value: int) -> bytes:
    return b"\x8a\x08" + struct.pack("<q", value)


def safetensors_of(header: object, body: bytes = bytes(8), length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + body


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


TORCH_DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "bool",
    "complex64",
    "complex128",
]


def as_numpy(torch: Any, tensor: Any) -> np.ndarray:
    """By torch, bit for bit: types that numpy lacks pass as integers of their width."""
    name = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.detach()
    if not hasattr(ml_dtypes, name):
        return np.asarray(tensor.numpy())
    bits = {1: torch.uint8, 2: torch.int16}[tensor.element_size()]
    return np.asarray(tensor.contiguous().view(bits).numpy().view(getattr(ml_dtypes, name)))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()

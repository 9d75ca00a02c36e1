"""Broken and malicious GGUF and ONNX files."""

from __future__ import annotations

import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from embgeo.io.formats import gguf as gguf_file
from embgeo.io.formats import onnx as onnx_file
from tests.support.binary_files import check_refused, open_as
from tests.support.framework_files import (
    field,
    gguf_bytes,
    gguf_tensor,
    gguf_text,
    needs,
    onnx_bytes,
    onnx_tensor,
    varint,
)
from tests.support.sampling import each_folder

W = np.arange(12, dtype="<f4").reshape(4, 3)
RAW = W.tobytes()


def check(module: ModuleType, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    assert module.sniff(content[:4096])
    check_refused(module, path)


# GGUF


def tensor(sizes: Any = (3, 4), kind: int = 0, offset: int = 0, name: str = "w") -> bytes:
    return gguf_tensor(name, sizes, kind, offset)


def list_of(kind: int, length: int, content: bytes = b"") -> bytes:
    """A file whose one entry is a list with a length that may lie."""
    value = struct.pack("<IIQ", 9, kind, length) + content
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_text("k") + value


def nested_lists(depth: int) -> bytes:
    inner = struct.pack("<IQ", 9, 1) * depth + struct.pack("<IQ", 4, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_text("k") + struct.pack("<I", 9) + inner


GGUF: list[bytes] = [
    gguf_bytes({}, [tensor()], RAW, version=9),
    gguf_bytes({}, [tensor()], RAW, promised=2**63),
    gguf_bytes({}, [tensor()], RAW[:-1]),
    gguf_bytes({}, [tensor((2**62, 4))], RAW),
    gguf_bytes({}, [tensor((1,) * 5)], RAW),
    gguf_bytes({}, [tensor((33, 4), 8)], bytes(200)),
    gguf_bytes({}, [tensor(kind=77)], RAW),
    gguf_bytes({}, [tensor(), tensor()], RAW * 2),
    gguf_bytes({}, [tensor(), tensor(name="v", offset=32)], RAW * 2),
    gguf_bytes({"general.alignment": 0}, [tensor()], RAW),
    gguf_bytes({"general.alignment": "x"}, [tensor()], RAW),
    gguf_bytes({"tokenizer.ggml.tokens": [1, 2]}, [], b""),
    list_of(8, 2**62),
    list_of(8, 1000, b"\xff" * 8),
    list_of(99, 1),
    nested_lists(3000),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**40),
]


def test_gguf(tmp_path: Path) -> None:
    for folder, content in each_folder(tmp_path, GGUF):
        check(gguf_file, folder, content)


def test_gguf_with_lists_of_millions(tmp_path: Path) -> None:
    check(gguf_file, tmp_path, list_of(8, 4_000_001, bytes(4_000_001 * 8)))


def test_scales_beyond_half_precision_warn_nobody(tmp_path: Path) -> None:
    needs("gguf")
    path = tmp_path / "a"
    blocks = np.random.default_rng(0).integers(0, 256, (50, 144), dtype=np.uint8)
    blocks[:, :4] = 0xFF
    path.write_bytes(gguf_bytes({}, [gguf_tensor("w", [256, 50], 12, 0)], blocks.tobytes()))
    (found,) = open_as(gguf_file, path).tensors
    assert not np.isfinite(found.open()).all()


def test_token_types_of_another_length_say_nothing(tmp_path: Path) -> None:
    metadata = {"tokenizer.ggml.tokens": list("abcd"), "tokenizer.ggml.token_type": [3]}
    path = tmp_path / "a"
    path.write_bytes(gguf_bytes(metadata, [tensor()], RAW))
    assert open_as(gguf_file, path).tokens == tuple("abcd")


# ONNX


def nested_messages(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = field(1, inner)
    return inner


ONNX: list[bytes] = [
    onnx_bytes([]),
    onnx_bytes([onnx_tensor("w", [4, 3], RAW[:-4])]),
    onnx_bytes([onnx_tensor("w", [-4, 3], RAW)]),
    onnx_bytes([onnx_tensor("w", [2**62, 4], RAW)]),
    onnx_bytes([onnx_tensor("w", [1] * 40, RAW[:4])]),
    onnx_bytes([onnx_tensor("w", [4, 3], RAW, kind=99)]),
    onnx_bytes([onnx_tensor("w", [4, 3], None)]),
    onnx_bytes([onnx_tensor("w", [4, 3], RAW)] * 2),
    onnx_bytes([onnx_tensor("w", [4, 3], RAW) + field(4, RAW)]),
    onnx_bytes([onnx_tensor("w", [12], None, kind=11) + field(4, RAW)]),
    onnx_bytes([onnx_tensor("w" * 5000, [4, 3], RAW)]),
    onnx_bytes([field(9, 5)]),
    onnx_bytes([varint(1 << 3 | 2) + varint(2**63)]),
    onnx_bytes([b"\x0b"]),
    onnx_bytes([b"\xff" * 11]),
    onnx_bytes([b"\xff"]),
    onnx_bytes([nested_messages(3000)]),
]


def test_onnx(tmp_path: Path) -> None:
    for folder, content in each_folder(tmp_path, ONNX):
        check(onnx_file, folder, content)


def external(location: str, **more: str) -> bytes:
    return onnx_bytes([onnx_tensor("w", [4, 3], None, location=location, **more)])


@pytest.mark.parametrize(
    "place",
    [
        {"location": "../secret"},
        {"location": "missing"},
        {"location": "link"},
        {"location": "data", "offset": "40"},
        {"location": "data", "offset": "-4"},
        {"location": "data", "offset": "9" * 5000},
        {"location": "data", "length": "4"},
    ],
)
def test_onnx_external_data(tmp_path: Path, place: dict[str, str]) -> None:
    (tmp_path / "secret").write_bytes(RAW)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "data").write_bytes(RAW)
    (folder / "link").symlink_to(tmp_path / "secret")
    path = folder / "a"
    path.write_bytes(external(**place))
    check_refused(onnx_file, path)


def test_onnx_external_data_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"1234" + RAW)
    path = tmp_path / "a"
    path.write_bytes(external("data", offset="4", length="48", checksum="x"))
    (found,) = open_as(onnx_file, path).tensors
    np.testing.assert_array_equal(found.open(), W)


@pytest.mark.slow
def test_onnx_with_too_many_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = field(1, 8) + field(2, "p") + field(7, b"\x48\x01" * 20_000)
    monkeypatch.setattr(onnx_file, "_MOST_FIELDS", 20_000)
    check(onnx_file, tmp_path, content)
    monkeypatch.setattr(onnx_file, "MOST_TENSORS", 2)
    check(
        onnx_file,
        tmp_path,
        onnx_bytes([onnx_tensor(f"w{i}", [], b"") for i in range(3)]),
    )

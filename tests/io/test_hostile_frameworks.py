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

W = np.arange(12, dtype="<f4").reshape(4, 3)
RAW = W.tobytes()


def check(module: ModuleType, tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    assert module.sniff(content[:4096])
    check_refused(module, path, expected)


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


GGUF: list[tuple[bytes, str]] = [
    (gguf_bytes({}, [tensor()], RAW, version=9), "version 9"),
    (gguf_bytes({}, [tensor()], RAW, promised=2**63), "implausibly many"),
    (gguf_bytes({}, [tensor()], RAW, promised=900_000), "dimensions|header"),
    (gguf_bytes({}, [tensor()], RAW[:-1]), "beyond the end"),
    (gguf_bytes({}, [tensor(offset=2**64 - 32)], RAW), "beyond the end"),
    (gguf_bytes({}, [tensor((2**62, 4))], RAW), "beyond any file"),
    (gguf_bytes({}, [tensor((-1, 4))], RAW), "beyond any file"),
    (gguf_bytes({}, [tensor((2**40, 2**40))], RAW), "beyond the end"),
    (gguf_bytes({}, [tensor((1,) * 5)], RAW), "5 dimensions"),
    (gguf_bytes({}, [tensor((33, 4), 8)], bytes(200)), "do not fill its blocks"),
    (gguf_bytes({}, [tensor(kind=77)], RAW), "w is of type 77 of ggml"),
    (gguf_bytes({}, [tensor(), tensor()], RAW * 2), "two tensors of one name"),
    (gguf_bytes({}, [tensor(), tensor(name="v", offset=32)], RAW * 2), "v overlaps"),
    (gguf_bytes({"general.alignment": 0}, [tensor()], RAW), "alignment"),
    (gguf_bytes({"general.alignment": 2**31}, [tensor()], RAW), "alignment"),
    (gguf_bytes({"general.alignment": "x"}, [tensor()], RAW), "alignment"),
    (gguf_bytes({"tokenizer.ggml.tokens": [1, 2]}, [], b""), "no array of numbers"),
    (gguf_bytes({}, [], b""), "no array of numbers"),
    (list_of(4, 2**62), "ends inside its header"),
    (list_of(8, 2**62), "implausibly many entries"),
    (list_of(8, 1000, b"\xff" * 8), "ends inside its header"),
    (list_of(99, 1), "unknown type 99"),
    (nested_lists(3000), "nested too deeply"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**40), "much text"),
    (b"GGUF", "ends inside its header"),
]


@pytest.mark.parametrize(("content", "expected"), GGUF)
def test_gguf(tmp_path: Path, content: bytes, expected: str) -> None:
    check(gguf_file, tmp_path, content, expected)


def test_gguf_with_lists_of_millions(tmp_path: Path) -> None:
    check(
        gguf_file, tmp_path, list_of(8, 4_000_001, bytes(4_000_001 * 8)), "implausibly many entries"
    )


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


ONNX: list[tuple[bytes, str]] = [
    (onnx_bytes([]), "no array of numbers"),
    (onnx_bytes([onnx_tensor("w", [4, 3], RAW[:-4])]), "other than the bytes"),
    (onnx_bytes([onnx_tensor("w", [-4, 3], RAW)]), "negative number"),
    (onnx_bytes([onnx_tensor("w", [2**62, 4], RAW)]), "beyond any file"),
    (onnx_bytes([onnx_tensor("w", [2**40, 2**40], RAW)]), "other than the bytes"),
    (onnx_bytes([onnx_tensor("w", [1] * 40, RAW[:4])]), "at most 32 sizes"),
    (onnx_bytes([onnx_tensor("w", [4, 3], RAW, kind=99)]), "w holds numbers of type 99"),
    (onnx_bytes([onnx_tensor("w", [4, 3], None)]), "one by one, as integers"),
    (onnx_bytes([onnx_tensor("w", [4, 3], RAW)] * 2), "two initializers named w"),
    (onnx_bytes([onnx_tensor("w", [4, 3], RAW) + field(4, RAW)]), "several pieces"),
    (onnx_bytes([onnx_tensor("w", [12], None, kind=11) + field(4, RAW)]), "another type"),
    (onnx_bytes([onnx_tensor("w" * 5000, [4, 3], RAW)]), "implausibly long"),
    (onnx_bytes([field(9, 5)]), "another kind"),
    (onnx_bytes([field(8, 5)]), "another kind"),
    (onnx_bytes([varint(1 << 3 | 2) + varint(2**63)]), "beyond its message"),
    (onnx_bytes([b"\x0b"]), "unknown kind 3"),
    (onnx_bytes([b"\xff" * 11]), "longer than any"),
    (onnx_bytes([b"\xff"]), "cut off"),
    (onnx_bytes([nested_messages(3000)]), "more than 32 numbers"),
    (onnx_bytes([field(1, b"\x80" * 3)]), "cut off"),
]


@pytest.mark.parametrize(("content", "expected"), ONNX)
def test_onnx(tmp_path: Path, content: bytes, expected: str) -> None:
    check(onnx_file, tmp_path, content, expected)


def external(location: str, **more: str) -> bytes:
    return onnx_bytes([onnx_tensor("w", [4, 3], None, location=location, **more)])


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"location": "../secret"}, "not a plain file name"),
        ({"location": "/etc/passwd"}, "not a plain file name"),
        ({"location": "..\\secret"}, "not a plain file name"),
        ({"location": "C:secret"}, "not a plain file name"),
        ({"location": ""}, "not a plain file name"),
        ({"location": "missing"}, "missing"),
        ({"location": "link"}, "leads out of the folder"),
        ({"location": "data", "offset": "40"}, "beyond the end|other than the bytes"),
        ({"location": "data", "offset": "-4"}, "damaged place"),
        ({"location": "data", "offset": "9" * 18}, "beyond the end"),
        ({"location": "data", "offset": "9" * 5000}, "implausibly long"),
        ({"location": "data", "offset": "٣"}, "damaged place"),
        ({"location": "data", "length": "4"}, "other than the bytes"),
        ({"location": "data", "length": ""}, "damaged place"),
    ],
)
def test_onnx_external_data(tmp_path: Path, place: dict[str, str], expected: str) -> None:
    (tmp_path / "secret").write_bytes(RAW)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "data").write_bytes(RAW)
    (folder / "link").symlink_to(tmp_path / "secret")
    path = folder / "a"
    path.write_bytes(external(**place))
    check_refused(onnx_file, path, expected)


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
    check(onnx_file, tmp_path, content, "implausibly many fields")
    monkeypatch.setattr(onnx_file, "MOST_TENSORS", 2)
    check(
        onnx_file,
        tmp_path,
        onnx_bytes([onnx_tensor(f"w{i}", [], b"") for i in range(3)]),
        "many initializers",
    )

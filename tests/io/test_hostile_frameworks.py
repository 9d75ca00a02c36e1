"""Broken and malicious GGUF, ONNX, Flax and TensorFlow files."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from embgeo.io.formats import flax as flax_msgpack
from embgeo.io.formats import gguf as gguf_file
from embgeo.io.formats import onnx as onnx_file
from embgeo.io.formats import tensorflow as tensorflow_checkpoint
from embgeo.io.formats.format import open_with
from tests.support.binary_files import check_refused
from tests.support.framework_files import (
    bundle_header,
    field,
    flax_array,
    flax_bytes,
    gguf_bytes,
    gguf_tensor,
    gguf_text,
    needs,
    onnx_bytes,
    onnx_tensor,
    slice_name,
    table_block,
    table_of,
    variable,
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
    (gguf_bytes({}, [tensor(kind=77)], RAW), "its type is not known: w"),
    (gguf_bytes({}, [tensor(), tensor()], RAW * 2), "two tensors of one name"),
    (gguf_bytes({}, [tensor(), tensor(name="v", offset=32)], RAW * 2), "v overlaps"),
    (gguf_bytes({"general.alignment": 0}, [tensor()], RAW), "alignment"),
    (gguf_bytes({"general.alignment": 2**31}, [tensor()], RAW), "alignment"),
    (gguf_bytes({"general.alignment": "x"}, [tensor()], RAW), "alignment"),
    (gguf_bytes({"tokenizer.ggml.tokens": [1, 2]}, [], b""), "no tensor"),
    (gguf_bytes({}, [], b""), "no tensor"),
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
    (found,) = open_with(gguf_file, path).tensors
    assert not np.isfinite(found.open()).all()


def test_token_types_of_another_length_say_nothing(tmp_path: Path) -> None:
    metadata = {"tokenizer.ggml.tokens": list("abcd"), "tokenizer.ggml.token_type": [3]}
    path = tmp_path / "a"
    path.write_bytes(gguf_bytes(metadata, [tensor()], RAW))
    assert open_with(gguf_file, path).tokens == tuple("abcd")


# ONNX


def nested_messages(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = field(1, inner)
    return inner


ONNX: list[tuple[bytes, str]] = [
    (onnx_bytes([]), "no tensor"),
    (onnx_bytes([onnx_tensor("w", [4, 3], RAW[:-4])]), "other than the bytes"),
    (onnx_bytes([onnx_tensor("w", [-4, 3], RAW)]), "negative number"),
    (onnx_bytes([onnx_tensor("w", [2**62, 4], RAW)]), "beyond any file"),
    (onnx_bytes([onnx_tensor("w", [2**40, 2**40], RAW)]), "other than the bytes"),
    (onnx_bytes([onnx_tensor("w", [1] * 40, RAW[:4])]), "at most 32 sizes"),
    (onnx_bytes([onnx_tensor("w", [4, 3], RAW, kind=99)]), "numbers of type 99: w"),
    (onnx_bytes([onnx_tensor("w", [4, 3], None)]), "one by one as integers"),
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
    (found,) = open_with(onnx_file, path).tensors
    np.testing.assert_array_equal(found.open(), W)


@pytest.mark.slow
def test_onnx_with_too_many_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = field(1, 8) + field(2, "p") + field(7, b"\x08\x01" * 20_000)
    monkeypatch.setattr(onnx_file, "_MOST_FIELDS", 20_000)
    check(onnx_file, tmp_path, content, "implausibly many fields")
    monkeypatch.setattr(onnx_file, "_MOST_TENSORS", 2)
    check(onnx_file, tmp_path, onnx_bytes([onnx_tensor("w", [], b"")] * 3), "many initializers")


# Flax


def flax_case(make: Callable[[], Any]) -> bytes:
    needs("msgpack")
    made = make()
    return made if isinstance(made, bytes) else flax_bytes(made)


def described(*description: Any) -> Any:
    import msgpack

    return {"w": msgpack.ExtType(1, msgpack.packb(list(description), use_bin_type=True))}


def chunked(**changes: Any) -> Any:
    chunks = {"0": flax_array(W[:2].reshape(-1)), "1": flax_array(W[2:].reshape(-1))}
    whole = {"__msgpack_chunked_array__": True, "shape": {"0": 4, "1": 3}, "chunks": chunks}
    return {"a": flax_array(W[:0]), "w": {**whole, **changes}}


FLAX: list[tuple[Callable[[], Any], str]] = [
    (lambda: described([4, 3], "float32", RAW[:-1]), "other than the bytes"),
    (lambda: described([-4, -3], "float32", RAW), "negative"),
    (lambda: described([2**62, 4], "float32", b""), "beyond any file"),
    (lambda: described([4, 3], "object", RAW * 2), "it holds no numbers: w"),
    (lambda: described([4, 3], "no such type", RAW), "unknown type"),
    (lambda: described([4, 3], "U100000000", RAW), "unknown type"),
    (lambda: described([0], "O,O", b""), "other than the bytes|unknown type"),
    (lambda: described([4, 3], "float32"), "no description"),
    (lambda: described([4, 3], 5, RAW), "damaged description"),
    (lambda: described([1] * 40, "float32", RAW[:4]), "at most 32"),
    (lambda: described([2], "datetime64[s]", bytes(16)), "it holds no numbers: w"),
    (lambda: chunked(shape={"0": 4, "1": 4}), "do not fill"),
    (lambda: chunked(shape={"0": 4, "2": 3}), "not numbered"),
    (lambda: chunked(shape=5), "not a list"),
    (lambda: b"\x82" + flax_bytes({"w": flax_array(W)})[1:] + b"\xa1v\xd4", "cut off"),
    (lambda: chunked(chunks={}), "damaged chunks"),
    (lambda: chunked(chunks=None), "not a list"),
    (lambda: flax_bytes({"w": flax_array(W)})[:-1], "cut off"),
    (lambda: flax_bytes({"w": flax_array(W)}) + b"\0", "follow the end"),
    (lambda: b"\x81\xa1w" * 3000 + flax_bytes({"w": flax_array(W)}), "nested too deeply"),
    (lambda: b"\x82\xa1w" + flax_bytes({"w": flax_array(W)}) + b"\x91" * 5000, "too deeply"),
    (lambda: b"\x82" + 2 * flax_bytes({"w": flax_array(W)})[1:], "key twice"),
    (lambda: b"\x82" + flax_bytes({"w": flax_array(W)})[1:] + b"\x01\x01", "not a name"),
    (lambda: b"\xdf\xff\xff\xff\xff" + flax_bytes({"w": flax_array(W)})[1:], "cut off"),
    (lambda: b"\x81\xa1w\xc9\xff\xff\xff\xff\x01", "cut off"),
    (lambda: b"\x82" + flax_bytes({"w": flax_array(W)})[1:] + b"\xa1v\xc1", "no msgpack value"),
]


@pytest.mark.parametrize(("make", "expected"), FLAX)
def test_flax(tmp_path: Path, make: Callable[[], Any], expected: str) -> None:
    content = flax_case(make)
    path = tmp_path / "a"
    path.write_bytes(content)
    check_refused(flax_msgpack, path, expected)


def test_flax_extensions_of_other_kinds_are_no_arrays(tmp_path: Path) -> None:
    sound = flax_case(lambda: {"w": flax_array(W)})
    path = tmp_path / "a"
    for more in (b"\xd4\x05x", b"\xd8\x05" + b"x" * 16, b"\xc7\x03\x05xyz", b"\xda\x00\x02ab"):
        path.write_bytes(b"\x82" + sound[1:] + b"\xa1v" + more)
        (tensor,) = open_with(flax_msgpack, path).tensors
        np.testing.assert_array_equal(tensor.open(), W)


def test_flax_lists_may_be_lists(tmp_path: Path) -> None:
    made = flax_case(lambda: {"w": chunked(shape=[4, 3])["w"]})
    (tmp_path / "a").write_bytes(made)
    (tensor,) = open_with(flax_msgpack, tmp_path / "a").tensors
    np.testing.assert_array_equal(tensor.open(), W)


def test_flax_text_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = flax_case(lambda: {"w": flax_array(W), "v": "text" * 20})
    (tmp_path / "a").write_bytes(content)
    monkeypatch.setattr(flax_msgpack, "_LONGEST_TEXT", 50)
    assert len(open_with(flax_msgpack, tmp_path / "a").tensors) == 1
    monkeypatch.setattr(flax_msgpack, "_LONGEST_TEXT", 1000)
    monkeypatch.setattr(flax_msgpack, "_MOST_TEXT", 50)
    check_refused(flax_msgpack, tmp_path / "a", "implausibly much text")


@pytest.mark.slow
def test_flax_with_too_many_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flax_msgpack, "_MOST_VALUES", 20_000)
    content = flax_case(lambda: {"w": flax_array(W)})
    many = b"\x82" + content[1:] + b"\xa1v\xdd" + struct.pack(">I", 2**31) + b"\0" * 30_000
    check(flax_msgpack, tmp_path, many, "implausibly many values")


# TensorFlow


def bundle(tmp_path: Path, index: bytes) -> Path:
    (tmp_path / "a.data-00000-of-00001").write_bytes(RAW)
    path = tmp_path / "a.index"
    path.write_bytes(index)
    return path


def one(entry: bytes, header: bytes | None = None) -> bytes:
    return table_of([(b"", header or bundle_header()), (b"w", entry)])


SOUND = one(variable([4, 3], 0, 48))


def with_footer(*numbers: int) -> bytes:
    places = b"".join(map(varint, numbers))
    return SOUND[:-48] + places + bytes(40 - len(places)) + SOUND[-8:]


TENSORFLOW: list[tuple[bytes, str]] = [
    (one(variable([4, 3], 4, 48)), "beyond the end"),
    (one(variable([4, 3], 2**63, 48)), "beyond the end"),
    (one(variable([4, 4], 0, 48)), "other than the bytes"),
    (one(variable([-4, -3], 0, 48)), "negative"),
    (one(variable([2**62], 0, 48)), "beyond any file"),
    (one(variable([1] * 40, 0, 4)), "at most 32"),
    (one(variable([4, 3], 0, 48, shard=1)), "beyond the last"),
    (one(variable([4, 3], 0, 48), bundle_header(2)), "missing"),
    (one(variable([4, 3], 0, 48), bundle_header(2**40)), "promises"),
    (one(variable([4, 3], 0, 48, kind=7)), "it holds no numbers"),
    (one(variable([4, 3], 0, 48, more=field(7, b""))), "slices of w do not fill"),
    (one(b"\xff"), "cut off"),
    (table_of([(b"", bundle_header())]), "no tensor"),
    (table_of([(b"", bundle_header()), (b"w", b"")], compression=1), "snappy"),
    (table_of([(b"", bundle_header()), (b"w", b"")], compression=9), "method 9"),
    (SOUND[:-1], "end is missing"),
    (SOUND[:20], "end is missing"),
    (with_footer(0, 8, 2**63, 8), "beyond the end of the file"),
    (with_footer(0, 8, 0, 2**63), "beyond the end of the file"),
    (with_footer(0, 8, 0, 3), "method 8"),
    (table_of([(b"", bundle_header()), (b"w" * 5000, b"")]), "damaged"),
]


def sliced(*entries: tuple[bytes, bytes], kind: int = 1) -> bytes:
    """An index of a variable w of shape (4, 3) and its slices."""
    whole = variable([4, 3], 0, 0, kind=kind, more=field(7, b""))
    return table_of([(b"", bundle_header()), *entries, (b"w", whole)])


TOP = (slice_name("w", (0, 2), (0, 3)), variable([2, 3], 0, 24))
BOTTOM = (slice_name("w", (2, 2), (0, 3)), variable([2, 3], 24, 24))
SLICES: list[tuple[bytes, str]] = [
    (sliced(), "slices of w do not fill"),
    (sliced(TOP), "slices of w do not fill"),
    (sliced(TOP, TOP), "slices of w do not fill"),
    (sliced(TOP, BOTTOM, BOTTOM), "slices of w do not fill"),
    (sliced(TOP, (slice_name("w", (3, 2)), BOTTOM[1])), "slices of w do not fill"),
    (sliced(TOP, (slice_name("w", (-2, 2), (0, 3)), BOTTOM[1])), "negative"),
    (sliced(TOP, (slice_name("w", (2**50, 2), (0, 3)), BOTTOM[1])), "do not fill"),
    (sliced(TOP, (slice_name("w", (2**62, 2), (0, 3)), BOTTOM[1])), "is damaged"),
    (sliced(TOP, BOTTOM, kind=2), "another type"),
    (sliced((b"\0", TOP[1])), "name of a slice is damaged"),
    (sliced((b"\0w\0\1", TOP[1])), "is damaged"),
    (sliced((b"\0w\0\1\2\xff\xff", TOP[1])), "implausibly many dimensions"),
    (sliced((b"\0w\0\1\1\2" + b"\xff" * 40, TOP[1])), "is damaged"),
    (sliced((TOP[0][:-1], TOP[1])), "is damaged"),
    (sliced((slice_name("v", (0, 2), (0, 3)), TOP[1]), kind=7), "holds no numbers"),
    (
        table_of(
            [
                (b"", bundle_header()),
                *[(slice_name("w", (k, 1), (0, 3)), variable([1, 3], 0, 12)) for k in range(40)],
                (b"w", variable([40, 3], 0, 0, more=field(7, b""))),
            ]
        ),
        "same bytes over and over",
    ),
]


@pytest.mark.parametrize(("index", "expected"), SLICES)
def test_slices(tmp_path: Path, index: bytes, expected: str) -> None:
    check_refused(tensorflow_checkpoint, bundle(tmp_path, index), expected)


@pytest.mark.parametrize(("index", "expected"), TENSORFLOW)
def test_tensorflow(tmp_path: Path, index: bytes, expected: str) -> None:
    path = bundle(tmp_path, index)
    check_refused(tensorflow_checkpoint, path, expected)


def test_tables_of_absurd_length_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bundle(tmp_path, SOUND)
    for name, value, expected in (
        ("_LARGEST_INDEX", 10, f"an index of {len(SOUND):,} bytes is not an index"),
        ("_MOST_ENTRIES", 1, "implausibly many entries"),
        ("_MOST_KEY_BYTES", 0, "implausibly many entries"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(tensorflow_checkpoint, name, value)
            check_refused(tensorflow_checkpoint, path, expected)
    # Each name adds to the one before.
    longest = tensorflow_checkpoint._LONGEST_KEY
    names = [(b"", bundle_header()), (b"w" * longest, b""), (b"w" * (longest + 9), b"")]
    check_refused(
        tensorflow_checkpoint, bundle(tmp_path, table_of(names)), "implausibly long|is damaged"
    )


@pytest.mark.slow
def test_blocks_that_point_at_blocks_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorflow_checkpoint, "_MOST_BLOCKS", 1000)
    empty = table_block([])
    place = varint(0) + varint(len(empty) - 5)
    index = table_block([(b"", place)] * 2000)
    footer = varint(0) + varint(8) + varint(len(empty)) + varint(len(index) - 5)
    content = empty + index + footer + bytes(40 - len(footer)) + SOUND[-8:]
    check_refused(tensorflow_checkpoint, bundle(tmp_path, content), "implausibly many blocks")

"""Files whose numbers lie, one for each limit of a reader: refused in one line, and quickly.

``test_mutants.py`` damages sound files at random; these are what chance does not find.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from embgeo.core.errors import UnreadableFile
from embgeo.files import zip_members
from embgeo.io.formats import (
    fasttext,
    gguf,
    hdf5,
    npz,
    onnx,
    safetensors,
    sharded,
    subwords,
    text_table,
    torch_legacy,
    torch_zip,
    word_lists,
)
from embgeo.io.formats import npy as npy_file
from embgeo.io.formats.word_lists import room_for_words
from embgeo.io.labels.counts_file import LARGEST_COUNT
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import (
    archive_of,
    check_refused,
    checkpoint,
    entry,
    header_of,
    is_mapped,
    npy,
    number,
    open_all,
    open_as,
    quick,
    safetensors_of,
    tensor_program,
)
from tests.support.embedding_files import fasttext_bytes, matrix_bytes
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
from tests.support.framework_files import hdf5 as write_hdf5
from tests.support.refusals import refusal
from tests.support.sampling import each_folder
from tests.support.torch_files import (
    MAGIC,
    SYSTEM,
    Called,
    Named,
    Stored,
    legacy,
    pickle_value,
    storage,
    tensor,
)

W = np.arange(12, dtype="<f4").reshape(4, 3)
RAW = W.tobytes()
M = 10**6


NPY = {
    "terabytes": npy(header_of("'<f4'", "(1000000000, 1000)"), b"abcd"),
    "overflow": npy(header_of("'<f8'", "(4611686018427387904, 4)"), b"abcd"),
    "negative": npy(header_of("'<f4'", "(-1, 4)"), b"abcd"),
    "33 dimensions": npy(header_of("'<f4'", "(" + "1," * 33 + ")"), b"abcd"),
    "objects": npy(header_of("'|O'", "(1,)"), pickle.dumps([1])),
    "structured": npy(header_of("[('a', '<f4')]", "(1,)"), b"abcd"),
    "void": npy(header_of("'<V2'", "(1,)"), b"ab"),
    "text": npy(header_of("'<U1'", "(1,)"), bytes(4)),
    "unknown type": npy(header_of("'<f3'", "(1,)"), bytes(4)),
    "two shapes": npy("{'shape': (1,), " + header_of("'<f4'", "(2,)")[1:], bytes(8)),
    "long header": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
    "version 9": npy(header_of("'<f4'", "(1,)"), bytes(4), version=9),
    "cut in the magic": b"\x93NUMPY",
    "cut in the numbers": npy(header_of("'<f4'", "(2,)"), bytes(7)),
    "cut in the header": npy(header_of("'<f4'", "(1,)"))[:40],
    "empty": b"",
}


# Archives


def one(shape: str = "(2,)", size: int = 8) -> bytes:
    return npy(header_of("'<f4'", shape), bytes(size))


def with_size(archive: bytes, size: int) -> bytes:
    """The directory's first entry says that its member has this many bytes once inflated."""
    at = archive.index(b"PK\x01\x02")
    return archive[: at + 24] + struct.pack("<I", size) + archive[at + 28 :]


def overlapping() -> bytes:
    """Two entries of the directory over one member."""
    archive = archive_of({"a.npy": one(), "b.npy": one()})
    second = archive.rindex(b"PK\x01\x02")
    # The local header that an entry points to is 42 bytes into it.
    return archive[: second + 42] + struct.pack("<I", 0) + archive[second + 46 :]


def deflated_bomb() -> bytes:
    """100 MiB of zeros behind an honest header: a ratio of a thousand."""
    return archive_of({"a.npy": one(f"({25 * 2**20},)", 100 * 2**20)}, zipfile.ZIP_DEFLATED)


def _noise(size: int) -> bytes:
    return random.Random(1).randbytes(size)


NPZ: dict[str, Callable[[], bytes]] = {
    "bomb": deflated_bomb,
    "inflates to more than it says": lambda: with_size(
        archive_of({"a.npy": one("(10,)", 80)}, zipfile.ZIP_DEFLATED), len(one("(10,)", 40))
    ),
    "inflates to less than it says": lambda: with_size(
        archive_of({"a.npy": one("(20,)", 80)}, zipfile.ZIP_DEFLATED), 9999
    ),
    "stored with two sizes": lambda: with_size(archive_of({"a.npy": one()}), 2**31),
    "terabytes inside": lambda: archive_of({"a.npy": one("(1000000, 1000000)")}),
    "overlap": overlapping,
    "bzip2": lambda: archive_of({"a.npy": one()}, zipfile.ZIP_BZIP2),
    "lzma": lambda: archive_of({"a.npy": one()}, zipfile.ZIP_LZMA),
    "objects only": lambda: archive_of(
        {"a.npy": npy(header_of("'|O'", "(1,)"), pickle.dumps([1]))}
    ),
    "no array": lambda: archive_of({"a.npy": npy(header_of("'<U1'", "(1,)"), bytes(4))}),
    "garbage": lambda: archive_of({"a.npy": _noise(100)}),
    "directory gone": lambda: archive_of({"a.npy": one()})[:-30],
    "broken stream": lambda: archive_of(
        {"a.npy": one("(5000,)", 20000)}, zipfile.ZIP_DEFLATED
    ).replace(zlib.compress(one("(5000,)", 20000))[2:20], bytes(18)),
}


TORCH = {
    "longer than its storage": tensor_program(shape=b"K\x02K\x04\x86"),
    "strides leave the storage": tensor_program(strides=b"K\x04K\x01\x86"),
    "negative stride": tensor_program(strides=b"K\x03" + number(-1) + b"\x86"),
    "negative shape": tensor_program(shape=b"K\x02" + number(-3) + b"\x86"),
    "negative offset": tensor_program(offset=number(-1)),
    "offset leaves the storage": tensor_program(offset=b"K\x01"),
    "strides that wrap around": tensor_program(strides=number(2**62 - 1) + number(2**61) + b"\x86"),
    "shape that wraps around": tensor_program(
        shape=number(2**61) + number(8) + b"\x86", strides=b"K\x00K\x00\x86"
    ),
    "terabytes by repetition": tensor_program(
        shape=number(10**9) + number(10**9) + b"\x86", strides=b"K\x00K\x00\x86"
    ),
    "strides of other length": tensor_program(strides=b"K\x03\x85"),
    "shape of text": tensor_program(shape=b"X\x01\x00\x00\x00aK\x01\x86"),
    "storage of terabytes": tensor_program(elements=10**12),
    "storage of negative size": tensor_program(elements=-6),
    "storage that is missing": tensor_program(key=b"7"),
    "storage outside": tensor_program(key=b"../../../etc/passwd"),
    "storage of a strange class": tensor_program(storage=b"cos\nsystem\n"),
    "too few arguments": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.",
    "a call": b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.",
    "not a pickle": b"\xff\xfe",
    "empty pickle": b"",
    "nested": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
}


# Torch before 1.6


SIX = storage(0, 1, 2, 3, 4, 5)
SOUND = legacy({"w": tensor()})


def stored(pid: object) -> object:
    return Called("torch._utils._rebuild_tensor", Stored(pid), 0, (2, 3), (3, 1))


FLOATS = Named("torch.FloatStorage")

LEGACY = {
    "cut in the numbers": SOUND[:-1],
    "cut before the count": SOUND[:-30],
    "cut in the object": SOUND[:160],
    "cut behind the magic": pickle_value(MAGIC),
    "shorter than promised": legacy({"w": tensor(elements=7)}, storages=SIX),
    "negative elements": legacy({"w": tensor(elements=-1)}),
    "negative shape": legacy({"w": tensor(shape=(-2, 3))}),
    "repeated into absurdity": legacy({"w": tensor(shape=(2**40, 3), strides=(0, 1))}),
    "33 dimensions": legacy({"w": tensor(shape=(1,) * 33, strides=(1,) * 33)}),
    "part outside": legacy({"w": tensor(part=("1", 1, 6))}),
    "part too short": legacy({"w": tensor(part=("1", 1, 5))}),
    "part of three": legacy({"w": tensor(part=("1", 1))}),
    "unknown storage": legacy({"w": tensor(kind="torch.EvilStorage")}),
    "storage of no class": legacy(
        {"w": stored(("storage", "torch.FloatStorage", "0", "cpu", 6, None))}
    ),
    "pid of five": legacy({"w": stored(("storage", FLOATS, "0", "cpu", 6))}, (), b""),
    "keys missing": legacy({"w": tensor()}, ()),
    "key of nobody": legacy({"w": tensor()}, ("1",)),
    "key twice": legacy({"w": tensor()}, ("0", "0"), SIX * 2),
    "keys of text": legacy({"w": tensor()}, "0"),
    "keys of numbers": legacy({"w": tensor()}, (2.5,)),
    "other version": legacy({"w": tensor()}, version=1002),
    "no tensor": legacy({"w": 1}, (), b""),
    "command": legacy(Called("os.system", "touch CANARY"), (), b""),
}


SAFETENSORS = {
    "terabytes": safetensors_of({"w": entry(shape=[M, M], offsets=[0, 4 * M**2])}),
    "wraps to zero": safetensors_of({"w": entry(shape=[2**61, 8], offsets=[0, 0])}, b""),
    "backwards": safetensors_of({"w": entry(offsets=[8, 0])}),
    "negative": safetensors_of({"w": entry(offsets=[-8, 0])}),
    "overlap": safetensors_of({"a": entry(), "b": entry(offsets=[4, 12])}, bytes(12)),
    "bytes before": safetensors_of({"a": entry(offsets=[4, 12])}, bytes(12)),
    "bytes behind": safetensors_of({"a": entry()}, bytes(12)),
    "one name twice": safetensors_of(b'{"a":%b,"a":%b}' % ((json.dumps(entry()).encode(),) * 2)),
    "fractions": safetensors_of({"w": entry(shape=[1.5])}),
    "no offsets": safetensors_of({"w": {"dtype": "F32", "shape": [2]}}),
    "no description": safetensors_of({"w": 3}),
    "no tensors": safetensors_of({"__metadata__": {"a": "b"}}, b""),
    "a list": safetensors_of([1, 2]),
    "no JSON": safetensors_of(b'{"a": '),
    "header beyond the file": safetensors_of({"w": entry()}, length=10**6),
    "header beyond the limit": safetensors_of({"w": entry()}, length=2**62),
    "cut in the length": b"\x10\x00",
    "name of controls": safetensors_of({"\x1b[2J\n": entry(dtype="?")}),
}  # fmt: skip


# GGUF


def of_gguf(sizes: Any = (3, 4), kind: int = 0, offset: int = 0, name: str = "w") -> bytes:
    return gguf_tensor(name, sizes, kind, offset)


def list_of(kind: int, length: int, content: bytes = b"") -> bytes:
    """A file whose one entry is a list with a length that may lie."""
    value = struct.pack("<IIQ", 9, kind, length) + content
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_text("k") + value


def nested_lists(depth: int) -> bytes:
    inner = struct.pack("<IQ", 9, 1) * depth + struct.pack("<IQ", 4, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_text("k") + struct.pack("<I", 9) + inner


GGUF: list[bytes] = [
    gguf_bytes({}, [of_gguf()], RAW, version=9),
    gguf_bytes({}, [of_gguf()], RAW, promised=2**63),
    gguf_bytes({}, [of_gguf()], RAW[:-1]),
    gguf_bytes({}, [of_gguf((2**62, 4))], RAW),
    gguf_bytes({}, [of_gguf((1,) * 5)], RAW),
    gguf_bytes({}, [of_gguf((33, 4), 8)], bytes(200)),
    gguf_bytes({}, [of_gguf(kind=77)], RAW),
    gguf_bytes({}, [of_gguf(), of_gguf()], RAW * 2),
    gguf_bytes({}, [of_gguf(), of_gguf(name="v", offset=32)], RAW * 2),
    gguf_bytes({"general.alignment": 0}, [of_gguf()], RAW),
    gguf_bytes({"general.alignment": 2**21}, [of_gguf()], RAW),
    gguf_bytes({"general.alignment": "x"}, [of_gguf()], RAW),
    gguf_bytes({"tokenizer.ggml.tokens": [1, 2]}, [], b""),
    list_of(8, 2**62),
    list_of(8, 1000, b"\xff" * 8),
    list_of(99, 1),
    nested_lists(3000),
    b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**27 + 1),
    b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 30) + b"a" * 10,
]


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


# fastText


TABLE = np.arange(18, dtype="f4").reshape(6, 3)
ENTRIES = ((b"cat", 5, 0), (b"dog", 3, 0))


FASTTEXT_SOUND: dict[str, bytes] = {
    "current": fasttext_bytes(),
    "labels": fasttext_bytes(
        (*ENTRIES, (b"__label__x", 2, 1)), model=3, outputs=matrix_bytes(TABLE[:1])
    ),
    "without n-grams or labels": fasttext_bytes(
        model=3, bucket=0, inputs=matrix_bytes(TABLE[:2]), outputs=matrix_bytes(TABLE[:0])
    ),
}


FASTTEXT = {
    "version": fasttext_bytes(version=13),
    "dim 0": fasttext_bytes(dim=0),
    "bucket huge": fasttext_bytes(bucket=2**31 - 1),
    "n-grams without end": fasttext_bytes(maxn=2**31 - 1),
    "words 2^31": fasttext_bytes(sizes=(-(2**31), -(2**31), 0)),
    "words 2^31-1": fasttext_bytes(sizes=(2**31 - 1, 2**31 - 1, 0)),
    "labels before words": fasttext_bytes(((b"a", 1, 1), (b"b", 1, 0))),
    "empty words": fasttext_bytes(((b"", 1, 0), (b"", 1, 0))),
    "endless word": fasttext_bytes(((b"a" * 70000, 1, 0), (b"b", 1, 0))),
    "pruned": fasttext_bytes(pruned=1, pairs=[(0, 0)]),
    "quantized": fasttext_bytes(quantized=1),
    "flag": fasttext_bytes(quantized=7),
    "rows negative": fasttext_bytes(inputs=matrix_bytes(TABLE, rows=-6)),
    "rows huge": fasttext_bytes(inputs=matrix_bytes(TABLE, rows=2**62)),
}


# Of all formats

INDEX = (b'{"weight_map": {}}', b'{"weight_map": {"a": 3}}', b'{"weight_map": ' + b"[" * M)
CASES: tuple[tuple[ModuleType, Mapping[str, bytes] | Sequence[bytes]], ...] = (
    (npy_file, NPY),
    (
        torch_zip,
        [*map(checkpoint, TORCH.values()), checkpoint(tensor_program(), byteorder=b"middle")],
    ),
    (torch_legacy, LEGACY),
    (safetensors, SAFETENSORS),
    (sharded, INDEX),
    (gguf, GGUF),
    (onnx, ONNX),
    (fasttext, FASTTEXT),
)


@pytest.mark.slow
def test_files_that_lie_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for module, contents in CASES:
        held = contents.values() if isinstance(contents, Mapping) else contents
        place = tmp_path / module.__name__
        place.mkdir(exist_ok=True)
        for folder, content in each_folder(place, held):
            (folder / "a").write_bytes(content)
            check_refused(module, folder / "a")
    assert not (tmp_path / "CANARY").exists()


@pytest.mark.slow
def test_archives_that_lie_are_refused(tmp_path: Path) -> None:
    for folder, case in each_folder(tmp_path, NPZ):
        (folder / "a.npz").write_bytes(NPZ[case]())
        check_refused(npz, folder / "a.npz")


def test_missing_folder_and_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "missing", tmp_path, tmp_path / "pipe"):
        check_refused(npy_file, path)


# Archives of zip


def with_checksum(archive: bytes, member: bytes) -> bytes:
    """The directory says another checksum of the member than its bytes have."""
    at = archive.index(b"PK\x01\x02")
    while archive[at + 46 : at + 46 + len(member)] != member:
        at = archive.index(b"PK\x01\x02", at + 1)
    return archive[: at + 16] + bytes([archive[at + 16] ^ 1]) + archive[at + 17 :]


def test_checksums_of_members(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        packed = archive_of({"a.npy": one("(50,)", 200)}, method)
        (tmp_path / "a.npz").write_bytes(with_checksum(packed, b"a.npy"))
        check_refused(npz, tmp_path / "a.npz")
    packed = archive_of({"a/data.pkl": tensor_program(), "a/data/0": bytes(24)}, method)
    (tmp_path / "a.pt").write_bytes(with_checksum(packed, b"a/data/0"))
    check_refused(torch_zip, tmp_path / "a.pt")


@pytest.mark.parametrize("wide", [False, True], ids=["plain", "zip64"])
def test_the_longest_directory_is_bounded(tmp_path: Path, wide: bool) -> None:
    """Whichever record gives its size: that of zip64 counts, where there is one, as for zipfile."""
    size = 8 * 2**20 + 1
    archive = archive_of({"a.npy": one()})
    end = archive.index(b"PK\x05\x06")
    record = bytearray(archive[end:])
    if wide:
        before = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, size, 0)
        before += struct.pack("<4sLQL", b"PK\x06\x07", 0, size, 1)
    else:
        before = b""
        record[12:20] = struct.pack("<2L", size, 0)
    (tmp_path / "a.npz").write_bytes(archive[:end].ljust(size, b"\0") + before + record)
    check_refused(npz, tmp_path / "a.npz")


def test_large_compressed_members_are_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.arange(600, dtype="<f4").reshape(20, 30)
    np.savez_compressed(tmp_path / "a.npz", w=numbers)
    assert not is_mapped(open_as(npz, tmp_path / "a.npz").tensors[0].open())
    monkeypatch.setattr(zip_members, "MEMORY_BYTES", 100)
    made = open_as(npz, tmp_path / "a.npz").tensors[0].open()
    assert is_mapped(made)
    np.testing.assert_array_equal(made, numbers)
    (tmp_path / "a.npz").write_bytes(with_checksum((tmp_path / "a.npz").read_bytes(), b"w.npy"))
    check_refused(npz, tmp_path / "a.npz")


def test_empty_members_overlap_nothing(tmp_path: Path) -> None:
    """One whose header lies among the bytes of another member has no bytes to share."""
    header = archive_of({"e.txt": b""})[: 30 + len("e.txt")]
    archive = archive_of({"a.npy": one() + header + bytes(8), "e.txt": b""})
    entry_of_empty = archive.rindex(b"PK\x01\x02")
    place = struct.pack("<I", archive.index(header))
    (tmp_path / "a.npz").write_bytes(
        archive[: entry_of_empty + 42] + place + archive[entry_of_empty + 46 :]
    )
    tensors = open_as(npz, tmp_path / "a.npz").tensors
    assert [t.name for t in tensors if not t.problem] == ["a"]


def test_two_members_of_one_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", one())
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.npy", one())
    check_refused(npz, tmp_path / "a.npz")


@pytest.mark.parametrize("place", [b"PK\x01\x02" + bytes(4), b"PK\x03"], ids=["bit", "header"])
def test_members_that_are_encrypted_or_begin_elsewhere(tmp_path: Path, place: bytes) -> None:
    content = bytearray(archive_of({"a.npy": one(), "b.npy": one()}))
    content[content.rindex(place[:4]) + len(place)] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    check_refused(npz, tmp_path / "a.npz")


# Limits that chance does not reach


def test_safetensors_with_an_absurd_length_is_still_called_so() -> None:
    assert safetensors.sniff(SAFETENSORS["header beyond the limit"])
    assert not safetensors.sniff(b'some tex{"a": 1}')
    assert not safetensors.sniff(bytes(8) + b"{\x00\x00\x00")


def test_gguf_with_lists_of_millions(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(list_of(8, 4_000_001, bytes(4_000_001 * 8)))
    check_refused(gguf, tmp_path / "a")


def test_scales_beyond_half_precision_warn_nobody(tmp_path: Path) -> None:
    needs("gguf")
    path = tmp_path / "a"
    blocks = np.random.default_rng(0).integers(0, 256, (50, 144), dtype=np.uint8)
    blocks[:, :4] = 0xFF
    path.write_bytes(gguf_bytes({}, [gguf_tensor("w", [256, 50], 12, 0)], blocks.tobytes()))
    (found,) = open_as(gguf, path).tensors
    assert not np.isfinite(found.open()).all()


def test_token_types_of_another_length_say_nothing(tmp_path: Path) -> None:
    metadata = {"tokenizer.ggml.tokens": list("abcd"), "tokenizer.ggml.token_type": [3]}
    path = tmp_path / "a"
    path.write_bytes(gguf_bytes(metadata, [of_gguf()], RAW))
    assert open_as(gguf, path).tokens == tuple("abcd")


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
    check_refused(onnx, path)


def test_onnx_external_data_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"1234" + RAW)
    path = tmp_path / "a"
    path.write_bytes(external("data", offset="4", length="48", checksum="x"))
    (found,) = open_as(onnx, path).tensors
    np.testing.assert_array_equal(found.open(), W)


@pytest.mark.slow
def test_onnx_with_too_many_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(field(1, 8) + field(2, "p") + field(7, b"\x48\x01" * 20_000))
    monkeypatch.setattr(onnx, "_MOST_FIELDS", 20_000)
    check_refused(onnx, path)
    monkeypatch.setattr(onnx, "MOST_TENSORS", 2)
    path.write_bytes(onnx_bytes([onnx_tensor(f"w{i}", [], b"") for i in range(3)]))
    check_refused(onnx, path)


@pytest.mark.parametrize("name", FASTTEXT_SOUND)
def test_the_sound_files_open(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(FASTTEXT_SOUND[name])
    open_all(fasttext, path)
    assert open_checkpoint(path).tokens == ("cat", "dog")


def test_ngrams_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of 65,000 letters have 6,500,000 of them each."""
    path = tmp_path / "a"
    path.write_bytes(FASTTEXT_SOUND["current"])
    monkeypatch.setattr(subwords, "_MOST_OF_A_WORD", 1)
    open_all(fasttext, path)
    monkeypatch.setattr(subwords, "_MOST_NGRAMS", 1)
    check_refused(fasttext, path)


def test_bytes_behind_a_current_model_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(fasttext_bytes(end=bytes(5)))
    assert open_checkpoint(path).notes == ("5 bytes after the model were not read",)


@pytest.mark.slow
def test_a_long_word_of_stray_continuation_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(fasttext_bytes(((b"\x80" * 6_000, 2, 0), (b"x" * 6_000, 1, 0)), maxn=5))
    with quick(10):
        open_all(fasttext, path)


@pytest.mark.slow
def test_hostile_tsv(tmp_path: Path) -> None:
    for folder, text in each_folder(
        tmp_path,
        (
            "0.5\t1\n1\t2\n" * 9 + "1\t2\t3\n",
            "0.5\t1\n" * 3000 + "x\t2\n",
            "0.5\t1\n" * 3000 + "2\n",
            "0.5" + "\t1" * 1_000_001 + "\n",
        ),
    ):
        path = folder / "tensors.tsv"
        path.write_text(text)
        check_refused(text_table, path)


def test_what_is_no_table_of_numbers_between_tabs() -> None:
    texts = [b"", b"0.5", b"a\t1\n", b"0.5\t\n", b"\n"]
    assert not any(text_table.sniff(text) for text in texts)
    assert text_table.sniff(b"0.5\t1\r\n2\t3\r\n")
    assert text_table.sniff(b"\t".join([b"0.125"] * 700)[:4096])


# Torch


def test_torchscript_code_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    evil = pickle.dumps(None)[:2] + b"cos\nsystem\nX\x0c\x00\x00\x00touch CANARY\x85R."
    members = {
        "s/data.pkl": tensor_program(),
        "s/data/0": bytes(24),
        "s/constants.pkl": evil,
        "s/code/__torch__.py": b"import os; os.system('touch CANARY')",
    }
    (tmp_path / "a.pt").write_bytes(archive_of(members))
    checkpoint = open_as(torch_zip, tmp_path / "a.pt")
    assert checkpoint.format == "TorchScript archive"
    assert [t.name for t in checkpoint.tensors] == ["w"]
    assert os.listdir(tmp_path) == ["a.pt"]


def test_system_description_is_only_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(legacy({"w": tensor()}, system={**SYSTEM, "type_sizes": "odd"}))
    assert open_as(torch_legacy, path).tensors[0].shape == (2, 3)


# HDF5


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_hdf5_reads_no_other_file(tmp_path: Path) -> None:
    h5py = needs("h5py")
    secret = tmp_path / "secret"
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["w"] = W
    secret.write_bytes(W.tobytes())

    def fill(file: Any) -> None:
        file["own"] = W
        file["external link"] = h5py.ExternalLink("secret.h5", "/w")
        file["soft link"] = h5py.SoftLink("/external link")
        file.create_dataset("external", (4, 3), "f4", external=[(str(secret), 0, 48)])
        layout = h5py.VirtualLayout((4, 3), "f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "secret.h5"), "w", (4, 3))
        file.create_virtual_dataset("virtual", layout)
        file["packed"] = W
        file["packed"].attrs["scale_factor"] = 0.01

    checkpoint = open_as(hdf5, write_hdf5(tmp_path, fill))
    unread = {found.name: found.problem for found in checkpoint.tensors if found.problem}
    assert [found.name for found in checkpoint.tensors if not found.problem] == ["own"]
    assert "link" in unread["external link"]
    assert "link" in unread["soft link"]
    assert "in another file" in unread["external"]
    assert "virtual" in unread["virtual"]
    assert "scale_factor" in unread["packed"]


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_hdf5_names_that_are_paths(tmp_path: Path) -> None:
    """A link called ``a/b`` must not lead through the group ``a``; the library writes none."""
    h5py = needs("h5py")

    def fill(file: Any) -> None:
        file["own"] = W
        file["xxxyzzz"] = W

    path = write_hdf5(tmp_path, fill)
    content = path.read_bytes()
    assert content.count(b"xxxyzzz\0") == 1
    path.write_bytes(content.replace(b"xxxyzzz\0", b"own/zzz\0"))
    with h5py.File(path) as file:
        assert "own/zzz" in list(file)
    own, other = open_as(hdf5, path).tensors
    assert (own.name, own.problem) == ("own", "")
    assert "link" in other.problem


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_hdf5_groups_in_a_circle(tmp_path: Path) -> None:
    def fill(file: Any) -> None:
        file["a/b/w"] = W
        file["a/b/again"] = file["a"]
        file["a/root"] = file["/"]

    names = [t.name for t in open_as(hdf5, write_hdf5(tmp_path, fill)).tensors]
    assert names == ["a/b/w"]


def deep(file: Any) -> None:
    file["/".join("a" * 100)] = W


def huge(file: Any) -> None:
    file.create_dataset("w", (10**9, 10**6), "f4", chunks=(100, 100))


def bomb(file: Any) -> None:
    zeros = np.zeros((5000, 2000), "f4")
    file.create_dataset("w", data=zeros, compression="gzip", compression_opts=9)


@pytest.mark.parametrize("fill", [lambda _: None, deep, huge, bomb])
@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_hdf5(tmp_path: Path, fill: Callable[[Any], None]) -> None:
    check_refused(hdf5, write_hdf5(tmp_path, fill))


@pytest.mark.usefixtures("workers_here")
@pytest.mark.parametrize(
    ("filters", "packed"),
    [
        ({}, bytes(44)),
        ({"compression": "gzip"}, zlib.compress(bytes(48))[:-6]),
    ],
)
def test_chunks_of_another_size(tmp_path: Path, filters: dict[str, Any], packed: bytes) -> None:
    """HDF5 would take what is missing from memory that nothing was written to."""
    needs("h5py")

    def fill(file: Any) -> None:
        dataset = file.create_dataset("w", (4, 3), "f4", chunks=(4, 3), **filters)
        dataset.id.write_direct_chunk((0, 0), packed)

    check_refused(hdf5, write_hdf5(tmp_path, fill))


@pytest.mark.usefixtures("workers_here")
def test_filters_in_an_unusual_order(tmp_path: Path) -> None:
    h5py = needs("h5py")

    def fill(file: Any) -> None:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4, 3))
        properties.set_fletcher32()
        properties.set_deflate(6)
        space = h5py.h5s.create_simple((4, 3))
        made = h5py.h5d.create(file.id, b"w", h5py.h5t.IEEE_F32LE, space, properties)
        h5py.Dataset(made)[...] = W

    check_refused(hdf5, write_hdf5(tmp_path, fill))


@pytest.mark.usefixtures("workers_here")
def test_filters_that_read_beyond_damaged_data(tmp_path: Path) -> None:
    h5py = needs("h5py")
    filters: dict[str, Any] = {
        "szip": lambda own: own.set_szip(h5py.h5z.SZIP_NN_OPTION_MASK, 4),
        "nbit": lambda own: own.set_filter(h5py.h5z.FILTER_NBIT, 0, ()),
        "scale-offset": lambda own: own.set_scaleoffset(h5py.h5z.SO_INT, 0),
    }

    def fill(file: Any) -> None:
        file["sound"] = W
        file.create_dataset("lzf", data=W, compression="lzf")
        for name, add in filters.items():
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_chunk((4, 3))
            add(properties)
            space = h5py.h5s.create_simple((4, 3))
            made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_I32LE, space, properties)
            h5py.Dataset(made)[...] = np.arange(12).reshape(4, 3)

    checkpoint = open_as(hdf5, write_hdf5(tmp_path, fill))
    unread = {tensor.name: tensor.problem for tensor in checkpoint.tensors if tensor.problem}
    assert unread.keys() == {"lzf", *filters}
    assert set(unread.values()) == {"is compressed by a filter that is not read"}


# Both sides of limits


def test_limits_of_a_dictionary_of_fasttext(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, longest = tmp_path / "a", b"x" * fasttext._LONGEST_WORD
    sound = ((b"", 0, 0), (longest, LARGEST_COUNT, 0))
    path.write_bytes(fasttext_bytes(sound))
    found = open_as(fasttext, path)
    assert found.tokens == ("", longest.decode())
    assert found.counts is not None
    assert found.counts.tolist() == [0, LARGEST_COUNT]
    room = 2 * len(longest) + 2 * fasttext._WORD_COST
    for name, value in (("room_for_words", room), ("MOST_ENTRIES", 2)):
        for more in (0, -1):
            limit = value + more
            kept = (lambda _, room=limit: room) if name == "room_for_words" else limit
            with monkeypatch.context() as changed:
                changed.setattr(fasttext, name, kept)
                open_as(fasttext, path) if not more else check_refused(fasttext, path)
    for entries in (
        ((b"", 1, 0), (longest + b"x", 1, 0)),
        ((b"a", LARGEST_COUNT + 1, 0), (b"b", 1, 0)),
        ((b"a", -1, 0), (b"b", 1, 0)),
    ):
        path.write_bytes(fasttext_bytes(entries))
        check_refused(fasttext, path)


def test_what_a_gguf_file_says_of_its_sizes(tmp_path: Path) -> None:
    path = tmp_path / "a"

    def facts_of(**metadata: Any) -> Any:
        data = {key.replace("__", "."): value for key, value in metadata.items()}
        path.write_bytes(gguf_bytes(data, [of_gguf()], RAW))
        return open_as(gguf, path).facts

    facts = facts_of(a__vocab_size=4, a__embedding_length=3, a__block_count=9, split__count=2)
    assert (facts.vocabulary, facts.columns, facts.layers, facts.pieces) == (4, 3, 9, 2)
    assert facts_of(a__block_count=9, a__nextn_predict_layers=2).layers == 7
    tokens = {"tokenizer.ggml.tokens": ["a", "b"]}
    assert facts_of(**tokens, a__vocab_size=4).vocabulary == 2
    for wrong in (0, 2**40, "4"):
        facts = facts_of(a__vocab_size=wrong, a__embedding_length=1, split__count="2")
        assert (facts.vocabulary, facts.columns, facts.layers, facts.pieces) == (None, 1, None, 1)
    assert facts_of(a__vocab_size=2**40 - 1).vocabulary == 2**40 - 1


def test_limits_of_the_words_of_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, words=np.array(["a", "b"]), vocab=np.array(["c"]), w=W[:2])
    sizes = {"MOST_WORDS": 3, "MOST_WORD_BYTES": sum(m.size for m in members_of(path)[:2])}
    for name, most in sizes.items():
        with monkeypatch.context() as changed:
            changed.setattr(npz, name, most)
            assert open_as(npz, path).tokens == ("a", "b")
            changed.setattr(npz, name, most - 1)
            check_refused(npz, path)


def members_of(path: Path) -> list[Any]:
    return list(zip_members.open_archive(path).members.values())


def test_a_view_beyond_its_storage_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(checkpoint(TORCH["strides leave the storage"]))
    with refusal(UnreadableFile):
        open_as(torch_zip, tmp_path / "a.pt")


def test_room_for_words_grows_with_large_files() -> None:
    least = word_lists.MOST_MEMORY
    assert [room_for_words(size) for size in (0, 4 * least, 8 * least)] == [least, least, 2 * least]

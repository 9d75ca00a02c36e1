"""Damaged and hostile binary files: one line, quickly, and never anything but UnreadableFile."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from embgeo.files import zip_members
from embgeo.io.formats import npy as numpy_npy
from embgeo.io.formats import npz as numpy_npz
from embgeo.io.formats import pickled as pickle_arrays
from embgeo.io.formats import safetensors as safetensors_file
from embgeo.io.formats import sharded as safetensors_index
from embgeo.io.formats import torch_zip
from tests.support.binary_files import (
    FORMATS,
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
    safetensors_of,
    tensor_program,
)
from tests.support.sampling import each_folder

# npy


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
    "cut in the header": npy(header_of("'<f4'", "(1,)"))[:40],
    "empty": b"",
}


def test_npy(tmp_path: Path) -> None:
    for folder, case in each_folder(tmp_path, NPY):
        content = NPY[case]
        (folder / "a.npy").write_bytes(content)
        check_refused(numpy_npy, folder / "a.npy")


# zip archives


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


NPZ: dict[str, tuple[Callable[[], bytes], str]] = {
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


def with_checksum(archive: bytes, member: bytes) -> bytes:
    """The directory says another checksum of the member than its bytes have."""
    at = archive.index(b"PK\x01\x02")
    while archive[at + 46 : at + 46 + len(member)] != member:
        at = archive.index(b"PK\x01\x02", at + 1)
    return archive[: at + 16] + bytes([archive[at + 16] ^ 1]) + archive[at + 17 :]


def test_checksum_of_a_stored_array(tmp_path: Path) -> None:
    sound = archive_of({"a.npy": one()})
    (tmp_path / "a.npz").write_bytes(with_checksum(sound, b"a.npy"))
    check_refused(numpy_npz, tmp_path / "a.npz")


def test_checksums_of_deflated_members(tmp_path: Path) -> None:
    deflated = archive_of({"a.npy": one("(50,)", 200)}, zipfile.ZIP_DEFLATED)
    (tmp_path / "a.npz").write_bytes(with_checksum(deflated, b"a.npy"))
    check_refused(numpy_npz, tmp_path / "a.npz")
    members = {"a/data.pkl": tensor_program(), "a/data/0": bytes(24)}
    packed = archive_of(members, zipfile.ZIP_DEFLATED)
    (tmp_path / "a.pt").write_bytes(with_checksum(packed, b"a/data/0"))
    check_refused(torch_zip, tmp_path / "a.pt")


def test_directories_of_absurd_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    archive = archive_of({"a.npy": one(), "b.npy": one()})
    size = struct.unpack_from("<I", archive, archive.index(b"PK\x05\x06") + 12)[0]
    path.write_bytes(archive)
    monkeypatch.setattr("embgeo.files.zip_members.LARGEST_DIRECTORY", size)
    open_all(numpy_npz, path)
    monkeypatch.setattr("embgeo.files.zip_members.LARGEST_DIRECTORY", size - 1)
    check_refused(numpy_npz, path)


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
    check_refused(numpy_npz, tmp_path / "a.npz")


def test_large_compressed_members_are_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.arange(600, dtype="<f4").reshape(20, 30)
    np.savez_compressed(tmp_path / "a.npz", w=numbers)
    assert not is_mapped(open_as(numpy_npz, tmp_path / "a.npz").tensors[0].open())
    monkeypatch.setattr(zip_members, "MEMORY_BYTES", 100)
    made = open_as(numpy_npz, tmp_path / "a.npz").tensors[0].open()
    assert is_mapped(made)
    np.testing.assert_array_equal(made, numbers)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[content.rindex(b"PK\x01\x02") + 16] ^= 1  # the checksum in the directory
    (tmp_path / "a.npz").write_bytes(content)
    check_refused(numpy_npz, tmp_path / "a.npz")


def test_names_of_archives_without_a_member() -> None:
    archive = archive_of({"né": b"abc"})
    assert zip_members.first_name(archive) == "né"
    for head in (archive[:20], b"X" + archive):
        assert zip_members.first_name(head) == ""


def test_empty_members_overlap_nothing(tmp_path: Path) -> None:
    """One whose header lies among the bytes of another member has no bytes to share."""
    header = archive_of({"e.txt": b""})[: 30 + len("e.txt")]
    archive = archive_of({"a.npy": one() + header + bytes(8), "e.txt": b""})
    entry_of_empty = archive.rindex(b"PK\x01\x02")
    place = struct.pack("<I", archive.index(header))
    (tmp_path / "a.npz").write_bytes(
        archive[: entry_of_empty + 42] + place + archive[entry_of_empty + 46 :]
    )
    tensors = open_as(numpy_npz, tmp_path / "a.npz").tensors
    assert [t.name for t in tensors if not t.problem] == ["a"]


@pytest.mark.slow
def test_npz(tmp_path: Path) -> None:
    for folder, case in each_folder(tmp_path, NPZ):
        content = NPZ[case]
        (folder / "a.npz").write_bytes(content())
        check_refused(numpy_npz, folder / "a.npz")


def test_two_members_of_one_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", one())
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.npy", one())
    check_refused(numpy_npz, tmp_path / "a.npz")


def test_encrypted_member(tmp_path: Path) -> None:
    content = bytearray(archive_of({"a.npy": one()}))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.npz").write_bytes(content)
    check_refused(numpy_npz, tmp_path / "a.npz")


def test_a_directory_of_absurd_size(tmp_path: Path) -> None:
    content = bytearray(archive_of({"a.npy": one()}))
    at = content.index(b"PK\x05\x06")
    content[at + 12 : at + 16] = struct.pack("<I", 2**30)
    (tmp_path / "a.npz").write_bytes(content)
    check_refused(numpy_npz, tmp_path / "a.npz")


def test_the_handmade_checkpoint_is_sound(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(
        checkpoint(tensor_program(), np.arange(6, dtype="<f4").tobytes())
    )
    tensor = open_as(torch_zip, tmp_path / "a.pt").tensors[0]
    assert tensor.open().tolist() == [[0, 1, 2], [3, 4, 5]]


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


@pytest.mark.slow
def test_torch(tmp_path: Path) -> None:
    for folder, case in each_folder(tmp_path, TORCH):
        program = TORCH[case]
        (folder / "a.pt").write_bytes(checkpoint(program))
        check_refused(torch_zip, folder / "a.pt")


def test_torch_byte_order_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(checkpoint(tensor_program(), byteorder=b"middle"))
    check_refused(torch_zip, tmp_path / "a.pt")


def test_torch_pickle_that_fails_its_checksum(tmp_path: Path) -> None:
    content = checkpoint(tensor_program()).replace(b"FloatStorage", b"HalfStorages")
    (tmp_path / "a.pt").write_bytes(content)
    check_refused(torch_zip, tmp_path / "a.pt")


@pytest.mark.slow
def test_torch_compressed_bomb(tmp_path: Path) -> None:
    size = 100 * 2**20
    members = {"a/data.pkl": tensor_program(elements=size // 4), "a/data/0": bytes(size)}
    (tmp_path / "a.pt").write_bytes(archive_of(members, zipfile.ZIP_DEFLATED))
    check_refused(torch_zip, tmp_path / "a.pt")


def test_system_call_in_every_format_that_holds_pickles(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    command = f"touch {canary}".encode()
    program = b"cos\nsystem\n(S'" + command + b"'\ntR."
    (tmp_path / "a.pkl").write_bytes(program)
    assert pickle_arrays.sniff(program)
    check_refused(pickle_arrays, tmp_path / "a.pkl")
    (tmp_path / "a.pt").write_bytes(checkpoint(program))
    check_refused(torch_zip, tmp_path / "a.pt")
    objects = npy(header_of("'|O'", "(1,)"), program)
    (tmp_path / "a.npy").write_bytes(objects)
    check_refused(numpy_npy, tmp_path / "a.npy")
    (tmp_path / "a.npz").write_bytes(archive_of({"a.npy": objects}))
    check_refused(numpy_npz, tmp_path / "a.npz")
    assert not canary.exists()


# safetensors


M = 10**6

SAFETENSORS = {
    "terabytes": safetensors_of({"w": entry(shape=[M, M], offsets=[0, 4 * M**2])}),
    "wraps to zero": safetensors_of({"w": entry(shape=[2**61, 8], offsets=[0, 0])}),
    "backwards": safetensors_of({"w": entry(offsets=[8, 0])}),
    "negative": safetensors_of({"w": entry(offsets=[-8, 0])}),
    "overlap": safetensors_of({"a": entry(), "b": entry(offsets=[4, 12])}, bytes(12)),
    "one name twice": safetensors_of(b'{"a":%b,"a":%b}' % ((json.dumps(entry()).encode(),) * 2)),
    "fractions": safetensors_of({"w": entry(shape=[1.5])}),
    "no offsets": safetensors_of({"w": {"dtype": "F32", "shape": [2]}}),
    "no description": safetensors_of({"w": 3}),
    "no tensors": safetensors_of({"__metadata__": {"a": "b"}}),
    "a list": safetensors_of([1, 2]),
    "no JSON": safetensors_of(b'{"a": '),
    "header beyond the file": safetensors_of({"w": entry()}, length=10**6),
    "header beyond the limit": safetensors_of({"w": entry()}, length=2**62),
    "cut in the length": b"\x10\x00",
    "name of controls": safetensors_of({"\x1b[2J\n": entry(dtype="?")}),
}  # fmt: skip


def test_safetensors(tmp_path: Path) -> None:
    for folder, case in each_folder(tmp_path, SAFETENSORS):
        content = SAFETENSORS[case]
        (folder / "a").write_bytes(content)
        check_refused(safetensors_file, folder / "a")


def test_safetensors_with_an_absurd_length_is_still_called_so() -> None:
    assert safetensors_file.sniff(SAFETENSORS["header beyond the limit"])
    assert not safetensors_file.sniff(b'some tex{"a": 1}')
    assert not safetensors_file.sniff(bytes(8) + b"{\x00\x00\x00")


def test_index(tmp_path: Path) -> None:
    for folder, text in each_folder(
        tmp_path, ('{"weight_map": {}}', '{"weight_map": {"a": 3}}', "{", "[" * 10**6)
    ):
        (folder / "a.json").write_text(text)
        check_refused(safetensors_index, folder / "a.json")


# Every format


def test_missing_folder_and_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for module in FORMATS:
        check_refused(module, tmp_path / "missing")
        check_refused(module, tmp_path)
        check_refused(module, tmp_path / "pipe")

"""Archives and compressed files that escape, overlap, repeat themselves and explode."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.io.test_hostile_binary import NPZ
from tests.support.binary_files import archive_of, header_of, npy
from tests.support.hostile_cases import Case, from_table, hold_content

GLOVE = b"".join(b"t%d %d.5 2 3\n" % (row, row) for row in range(6))
MEBI = 2**20

#: Names that lead out of the folder, if anybody follows them.
SLIPS = (
    "../../evil.txt", "/absolute/evil.txt", "..\\evil.txt", "C:\\evil.txt", "a/../../evil.txt", "~",
)  # fmt: skip


def zip_link(target: str) -> bytes:
    """An archive with a symbolic link next to the vectors."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("link.txt")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        archive.writestr(info, target)
        archive.writestr("a.txt", GLOVE)
    return out.getvalue()


def tar_of(entries: list[tuple[str, bytes, dict[str, Any]]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content, more in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in more.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def tar_link(kind: bytes, target: str) -> bytes:
    link = {"type": kind, "linkname": target}
    return tar_of([("a.txt", b"", link), ("a.txt/evil.txt", b"", link), ("b.txt", GLOVE, {})])


def tar_header(**fields: bytes) -> bytes:
    """A header of one member with fields as they are given; its checksum is right."""
    header = bytearray(tar_of([("a.txt", GLOVE, {})])[:512])
    places = {"size": (124, 12), "kind": (156, 1), "name": (0, 100), "magic": (257, 8)}
    for name, value in fields.items():
        at, length = places[name]
        header[at : at + length] = value.ljust(length, b"\0")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def base256(value: int) -> bytes:
    return b"\x80" + value.to_bytes(11, "big")


def pax(records: bytes) -> bytes:
    padded = records + bytes(-len(records) % 512)
    head = tar_header(kind=b"x", size=b"%011o" % len(records))
    return head + padded + tar_header() + GLOVE + bytes(-len(GLOVE) % 512)


TARS: dict[str, Callable[[], bytes]] = {
    "size near 2^63": lambda: tar_header(size=base256(2**63 - 1)) + GLOVE,
    "size 2^88": lambda: tar_header(size=b"\x80" + b"\xff" * 11) + GLOVE,
    "negative size": lambda: tar_header(size=b"\xff" * 12) + GLOVE,
    "size that is not a number": lambda: tar_header(size=b"99999999999") + GLOVE,
    "pax size near 2^63": lambda: pax(b"28 size=9223372036854775807\n"),
    "negative pax size": lambda: pax(b"12 size=-99\n"),
    "pax record of 10^18 bytes": lambda: pax(b"1000000000000000000 path=a\n"),
    "pax record of no length": lambda: pax(b"0 path=a\n" * 50),
    "endless long names": lambda: (tar_header(kind=b"L", size=b"%011o" % 512) + b"n" * 512) * 9000,
    "long name beyond the file": lambda: tar_header(kind=b"L", size=base256(2**40)),
    "sparse": lambda: tar_header(kind=b"S") + GLOVE,
    "a hundred thousand empty members": lambda: tar_header(size=b"0") * 100_000,
    "a header only": lambda: tar_header(),
}


def with_directory(at: int, value: bytes) -> Callable[[], bytes]:
    """An archive with bytes of its first directory entry replaced."""

    def build() -> bytes:
        content = bytearray(archive_of({"a.txt": GLOVE}, zipfile.ZIP_DEFLATED))
        start = content.index(b"PK\x01\x02") + at
        content[start : start + len(value)] = value
        return bytes(content)

    return build


def zip64(size: int) -> bytes:
    """A member whose sizes stand in an extra field of 64 bits."""
    content = bytearray(archive_of({"a.txt": GLOVE}))
    start = content.index(b"PK\x01\x02")
    content[start + 20 : start + 28] = b"\xff" * 8
    extra = struct.pack("<HHQQ", 1, 16, size, size)
    content[start + 30 : start + 32] = struct.pack("<H", len(extra))
    name_end = start + 46 + 5
    content[name_end:name_end] = extra
    end = content.rindex(b"PK\x05\x06")
    length = struct.unpack_from("<I", content, end + 12)[0] + len(extra)
    struct.pack_into("<I", content, end + 12, length)
    return bytes(content)


def overlapping(count: int) -> bytes:
    """A better zip bomb: `count` entries of the directory over the same bytes."""
    body = archive_of({"0.txt": bytes(10 * MEBI)}, zipfile.ZIP_DEFLATED)
    start, end = body.index(b"PK\x01\x02"), body.rindex(b"PK\x05\x06")
    entry = body[start:end]
    names = [b"%05d" % number for number in range(count)]
    directory = b"".join(entry.replace(b"0.txt", name) for name in names)
    tail = bytearray(body[end:])
    struct.pack_into("<HHI", tail, 8, count, count, len(directory))
    return body[:start] + directory + bytes(tail)


def nest_zip(depth: int) -> bytes:
    """Zip in zip in zip, each of ten, as in the bomb of 42 kilobytes."""
    content = archive_of({"0": bytes(MEBI)}, zipfile.ZIP_DEFLATED)
    for _ in range(depth):
        content = archive_of({f"{k}.zip": content for k in range(10)}, zipfile.ZIP_DEFLATED)
    return content


def words_bomb() -> bytes:
    """Arrays of words, each of sixteen mebibytes of zeros, under names of vocabularies."""
    words = npy(header_of("'|S1'", f"({16 * MEBI - 500},)"), bytes(16 * MEBI - 500))
    matrix = npy(header_of("'<f4'", "(2, 2)"), bytes(16))
    names = [f"{'_' * k}words.npy" for k in range(60)]
    return archive_of({"w.npy": matrix, **dict.fromkeys(names, words)}, zipfile.ZIP_DEFLATED)


def large_then_wrong() -> bytes:
    """A member of 1.5 GiB that unfolds as promised and fails its checksum at the end."""
    machine = zlib_machine()
    packed = machine.compress(npy(header_of("'<f4'", f"({384 * MEBI},)")))
    block = random.Random(0).randbytes(16384) * 64  # compresses by less than a hundred
    packed += b"".join(machine.compress(block) for _ in range(1536)) + machine.flush()
    size = len(npy(header_of("'<f4'", f"({384 * MEBI},)"))) + 1536 * len(block)
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 0, 7, len(packed), size, 5, 0)
    entry = struct.pack(
        "<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, 7, len(packed), size, 5, 0, 0, 0, 0, 0, 0
    )
    body = local + b"w.npy" + packed
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(entry) + 5, len(body), 0)
    return body + entry + b"w.npy" + end


def zlib_machine() -> Any:
    import zlib

    return zlib.compressobj(1, zlib.DEFLATED, -15)


ZIPS: dict[str, Callable[[], bytes]] = {
    "header offset outside": with_directory(42, struct.pack("<I", 2**31)),
    "packed size outside": with_directory(20, struct.pack("<I", 2**31)),
    "size of 4 GB": with_directory(24, struct.pack("<I", 2**32 - 2)),
    "size near 2^63": lambda: zip64(2**63 - 1),
    "size 2^64-1": lambda: zip64(2**64 - 1),
    "encrypted": with_directory(8, b"\x01"),
    "name of 65,535 bytes": with_directory(28, b"\xff\xff"),
    "unknown method": with_directory(10, b"\x62\x00"),
    "a thousand members over the same bytes": lambda: overlapping(1000),
    "zip in zip in zip": lambda: nest_zip(3),
    "a directory of 200,000 members": lambda: archive_of(
        dict.fromkeys(map(str, range(200_000)), b"")
    ),
    "a comment that is an archive": lambda: archive_of({"a.md": b""})[:-2] + b"\xff\xff" + GLOVE,
}  # fmt: skip


#: What Python's zipfile, and so this reader, takes for a name only.
ODD_NAMES = ("name of 65,535 bytes",)


def zstd(data: bytes) -> bytes:
    import zstandard

    packed: bytes = zstandard.ZstdCompressor().compress(data)
    return packed


COMPRESSORS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "gzip": (gzip.compress, ""),
    "zstd": (zstd, "zstandard"),
}


def list_compressed(codec: str) -> list[Case]:
    pack, needs = COMPRESSORS[codec]
    shapes: dict[str, Callable[[], bytes]] = {
        # Streams may follow each other: 320 MiB of zeros take no time to compress.
        "bomb": lambda: pack(bytes(MEBI)) * 320,
        "bomb in a bomb": lambda: pack(pack(bytes(MEBI)) * 50_000),
        "endless line": lambda: pack(b"the" + b" 0" * MEBI) * 20,
        "empty streams": lambda: pack(b"") * 100_000,
        "cut off": lambda: pack(random.Random(1).randbytes(5000))[:-9],
        "garbage": lambda: pack(b"")[:6] + random.Random(1).randbytes(5000),
        "twice wrapped": lambda: pack(pack(GLOVE)),
    }
    return [Case(name, codec, hold_content(make), needs=needs) for name, make in shapes.items()]


def repeat_line(line: bytes, end: bytes = b"", start: bytes = b"") -> Callable[[], bytes]:
    """A small file that unfolds to 60 MiB of one line, and ends otherwise."""

    def build() -> bytes:
        block = gzip.compress(line * (MEBI // len(line)), 1)
        return gzip.compress(start) + block * 60 + gzip.compress(end)

    return build


#: Each stays within what may be unfolded.
ROWS: dict[str, Callable[[], bytes]] = {
    "ten million words": repeat_line(b"a 1 2\n", b"a 1\n"),
    "ten million different bytes": repeat_line(b"\xff\xfe 1 2\n", b"a 1\n"),
    "ten million words in binary": repeat_line(b"a \0\0\0\0", start=b"99999999 1\n"),
    "ten million rows, the last of text": repeat_line(b"0.5\t1\n", b"x\t2\n"),
    "wide rows, the last of text": repeat_line(b"a" + b" 0.5" * 300 + b"\n", b"a" + b" x" * 300),
}


def cases() -> list[Case]:
    made = from_table("npz", NPZ, lambda make: make())
    made += [
        Case(name, "zip", hold_content(make), name in ODD_NAMES) for name, make in ZIPS.items()
    ]
    made += [Case(name, "tar", hold_content(make)) for name, make in TARS.items()]
    for slip in SLIPS:
        # Files whose names begin with a dot are left out, as hidden ones.
        opens = ".." not in slip
        made.append(Case(slip, "zip", hold_content(archive_of({slip: GLOVE})), opens))
        made.append(Case(slip, "tar", hold_content(tar_of([(slip, GLOVE, {})])), opens))
    # The text of the link is a file like others: two files, of which one can be read.
    made.append(Case("link", "zip", hold_content(zip_link("../../secret")), opens=True))
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        name = f"member of type {kind.decode()}"
        made.append(Case(name, "tar", hold_content(tar_link(kind, "/etc/passwd")), opens=True))
    for codec in COMPRESSORS:
        made += list_compressed(codec)
    made.append(Case("sixty lists of words of zeros", "npz", hold_content(words_bomb)))
    made.append(
        Case("1.5 GiB that fail their checksum", "npz", hold_content(large_then_wrong), dense=True)
    )
    made += [Case(name, "gzip", hold_content(make), dense=True) for name, make in ROWS.items()]
    zeros = np.zeros((4, 3), "f4").tobytes()
    made.append(Case("numbers only", "zip", hold_content(archive_of({"a.bin": zeros}))))
    return made

"""Archives and compressed files that escape, overlap, repeat themselves and explode."""

from __future__ import annotations

import gzip
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

from tests.io.test_hostile_binary import NPZ
from tests.support.binary_files import archive_of, header_of, npy
from tests.support.hostile_cases import Case, from_table, hold_content

GLOVE = b"".join(b"t%d %d.5 2 3\n" % (row, row) for row in range(6))
MEBI = 2**20


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
    for codec in COMPRESSORS:
        made += list_compressed(codec)
    made.append(Case("sixty lists of words of zeros", "npz", hold_content(words_bomb)))
    made.append(
        Case("1.5 GiB that fail their checksum", "npz", hold_content(large_then_wrong), dense=True)
    )
    made += [Case(name, "gzip", hold_content(make), dense=True) for name, make in ROWS.items()]
    return made

"""HDF5, Parquet and Arrow files: bytes that their libraries in C read in a process of their own."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.io.test_hostile_hdf5 import bomb, deep, huge
from tests.support.hostile_cases import Build, Case, hold_content

W = np.arange(12, dtype="<f4").reshape(4, 3)


def hdf5(fill: Callable[[Any], None], change: Callable[[bytes], bytes] = bytes) -> Build:
    def build(folder: Path) -> Path:
        import h5py

        with h5py.File(folder / "a.h5", "w") as file:
            fill(file)
        content = (folder / "a.h5").read_bytes()
        (folder / "a.h5").write_bytes(change(content))
        return folder / "a.h5"

    return build


def plain(file: Any) -> None:
    file["w"] = W


def links(file: Any) -> None:
    import h5py

    file["w"] = h5py.ExternalLink("/etc/passwd", "/w")
    file["soft"] = h5py.SoftLink("/soft")
    layout = h5py.VirtualLayout((4, 3), "f4")
    layout[:] = h5py.VirtualSource("../secret.h5", "w", (4, 3))
    file.create_virtual_dataset("virtual", layout)
    file.create_dataset("external", (4, 3), "f4", external=[("/etc/passwd", 0, 48)])


def chunks(file: Any) -> None:
    file.create_dataset("w", (2**40, 2**20), "f4", chunks=(64, 64), compression="gzip")


def many(file: Any) -> None:
    for number in range(20_000):
        file.create_group(str(number))


def everywhere(word: bytes) -> Callable[[bytes], bytes]:
    """Every eight bytes that are an address inside the file become `word`."""

    def change(content: bytes) -> bytes:
        words = [content[k : k + 8] for k in range(0, len(content) - 7, 8)]
        changed = [
            word if 96 <= struct.unpack("<Q", w)[0] < len(content) else w for w in words[12:]
        ]
        return b"".join(words[:12] + changed)

    return change


HDF5: dict[str, Build] = {
    "deeply nested groups": hdf5(deep),
    "petabytes": hdf5(huge),
    "2^60 numbers in chunks": hdf5(chunks),
    "a gzip bomb": hdf5(bomb),
    "links to other files": hdf5(links),
    "twenty thousand groups": hdf5(many),
    "addresses that point at themselves": hdf5(plain, everywhere(struct.pack("<Q", 96))),
    "addresses near 2^63": hdf5(plain, everywhere(struct.pack("<Q", 2**63 - 1))),
    "cut in the middle": hdf5(plain, lambda content: content[: len(content) // 2]),
    "a superblock only": hold_content(b"\x89HDF\r\n\x1a\n" + bytes(88)),
    "a superblock of version 255": hold_content(b"\x89HDF\r\n\x1a\n\xff" + bytes(88)),
}


def arrow_table(**columns: Any) -> Any:
    import pyarrow

    return pyarrow.table(columns)


def vectors(rows: int = 100, columns: int = 4) -> Any:
    import pyarrow

    numbers = pyarrow.array(np.zeros(rows * columns, "f4"))
    return pyarrow.FixedSizeListArray.from_arrays(numbers, columns)


def parquet(make: Callable[[], Any], change: Callable[[bytes], bytes] = bytes) -> Build:
    def build(folder: Path) -> Path:
        from pyarrow import parquet as library

        library.write_table(make(), folder / "a.parquet", compression="zstd")
        content = (folder / "a.parquet").read_bytes()
        (folder / "a.parquet").write_bytes(change(content))
        return folder / "a.parquet"

    return build


def feather(change: Callable[[bytes], bytes]) -> Build:
    def build(folder: Path) -> Path:
        from pyarrow import feather as library

        library.write_feather(arrow_table(e=vectors()), str(folder / "a"), "uncompressed")
        (folder / "a").write_bytes(change((folder / "a").read_bytes()))
        return folder / "a"

    return build


def one_row() -> Any:
    """A single row of a hundred million zeros."""
    import pyarrow

    zeros = np.zeros(100_000_000, dtype="f4")
    return arrow_table(e=pyarrow.ListArray.from_arrays([0, len(zeros)], zeros))


def with_footer(length: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:-8] + struct.pack("<I", length) + content[-4:]


def thrift_deep(_content: bytes) -> bytes:
    footer = b"\x1c" * 100_000
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def thrift_wide(_content: bytes) -> bytes:
    footer = b"\x15\x02\x19\xfc\xff\xff\xff\xff\x07" + bytes(1000)
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


PARQUET: dict[str, Build] = {
    "a footer of 2^32 bytes": parquet(lambda: arrow_table(e=vectors()), with_footer(2**32 - 1)),
    "a footer of no bytes": parquet(lambda: arrow_table(e=vectors()), with_footer(0)),
    "a footer nested 100,000 deep": parquet(lambda: arrow_table(e=vectors()), thrift_deep),
    "a schema of 2^31 columns": parquet(lambda: arrow_table(e=vectors()), thrift_wide),
    "one row of a hundred million zeros": parquet(one_row),
    "a hundred million rows of zeros": parquet(lambda: arrow_table(e=vectors(25_000_000, 4))),
    "cut in the middle": parquet(
        lambda: arrow_table(e=vectors()), lambda content: content[: len(content) // 2]
    ),
    "ten thousand columns of text": parquet(
        lambda: arrow_table(**{str(k): ["a"] for k in range(10_000)})
    ),
    "magic numbers only": hold_content(b"PAR1PAR1"),
}

ARROW: dict[str, Build] = {
    "metadata of 2^31 bytes": feather(
        lambda content: content[:12] + struct.pack("<I", 2**31 - 1) + content[16:]
    ),
    "a footer of 2^31 bytes": feather(
        lambda content: content[:-10] + struct.pack("<i", 2**31 - 1) + content[-6:]
    ),
    "a negative footer": feather(
        lambda content: content[:-10] + struct.pack("<i", -1) + content[-6:]
    ),
    "offsets of 0": feather(lambda content: content[:64] + bytes(64) + content[128:]),
    "offsets of -1": feather(lambda content: content[:64] + b"\xff" * 64 + content[128:]),
    "cut in the middle": feather(lambda content: content[: len(content) // 2]),
    "magic numbers only": hold_content(b"ARROW1\0\0ARROW1"),
    "a stream of 2^31 bytes": hold_content(
        b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1) + bytes(100)
    ),
}


def cases() -> list[Case]:
    made = [Case(name, "hdf5", build, needs="h5py") for name, build in HDF5.items()]
    made += [
        Case(name, "parquet", build, needs="pyarrow", dense="million" in name)
        for name, build in PARQUET.items()
    ]
    made += [Case(name, "arrow", build, needs="pyarrow") for name, build in ARROW.items()]
    return made

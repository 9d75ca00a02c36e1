"""Text files read in bounded memory: plain or compressed UTF-8, block by block."""

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.files.compressed import BoundedStream, codec_of
from embgeo.files.guard import cannot_read
from embgeo.files.records import digest_of
from embgeo.files.small_files import read_head

#: Endings of compressed files.
COMPRESSED = (".gz", ".zst")
#: A tag in angle brackets, such as ``<br />`` and ``<unk>``.
TAG = re.compile(r"<[^>]{0,40}>")
_BLOCK = 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def pieces(path: Path) -> Iterator[str]:
    """Yield the text of a file in pieces that end after a line or, within a long line, at a space.

    `path`: UTF-8, plain or compressed by gzip or zstd, as its first bytes tell.
    """
    line = 1
    for block in _whole_lines(path):
        try:
            yield block.decode("utf-8")
        except UnicodeDecodeError as error:
            line += block.count(b"\n", 0, error.start)
            cause, way_out = f"line {line:,} is not UTF-8", "convert it with iconv -t UTF-8"
            raise UnreadableFile(cause, where=path, way_out=way_out) from error
        line += block.count(b"\n")


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file with their line feeds, which alone end a line."""
    for piece in pieces(path):
        yield from io.StringIO(piece, newline="\n")


def find_ending(path: Path) -> str:
    """Find the suffix of the name in lower case, without the suffix of a compression."""
    suffixes = [one.lower() for one in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def is_folder(path: Path) -> bool:
    """Tell whether a path is a folder; `UnreadableFile` if the operating system cannot tell."""
    try:
        return path.is_dir()
    except OSError as error:
        raise cannot_read(path, error) from error


def list_folder(folder: Path) -> list[Path]:
    """List the files of a folder that are not hidden, in the order of their names."""
    try:
        return sorted(
            file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")
        )
    except OSError as error:
        raise cannot_read(folder, error) from error


def sha256(path: Path) -> str:
    """Return SHA-256 of a file as it is stored, compressed or not."""
    try:
        return digest_of(path)
    except OSError as error:
        raise cannot_read(path, error) from error


def hash_files(path: Path, files: Iterable[Path]) -> dict[str, str]:
    """Return SHA-256 of each file of a data set by its path below `path`, or next to it."""
    folder = path if is_folder(path) else path.parent
    return {file.relative_to(folder).as_posix(): sha256(file) for file in files}


def _whole_lines(path: Path) -> Iterator[bytes]:
    rest = b""
    for number, block in enumerate(read_blocks(path)):
        if number == 0:
            if block.startswith(_UTF16_MARKS):
                way_out = "convert it with iconv -f UTF-16 -t UTF-8"
                raise UnreadableFile("it is UTF-16, not UTF-8", where=path, way_out=way_out)
            block = block.removeprefix(BYTE_ORDER_MARK)
        if b"\0" in block:
            raise UnreadableFile("it is binary, not text", where=path)
        whole, rest = _cut(rest + block)
        if len(rest) > _BLOCK:
            raise UnreadableFile("it has more than a MiB without white space", where=path)
        if whole:
            yield whole
    if rest:
        yield rest


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in blocks."""
    codec, empty = codec_of(read_head(path)), True
    try:
        with path.open("rb") if codec is None else BoundedStream(path, codec) as stream:
            while block := stream.read(_BLOCK):
                empty = False
                yield block
    except OSError as error:
        raise cannot_read(path, error) from error
    if empty:
        raise UnreadableFile("the file is empty", where=path)


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """Split after the last line feed or, without one, before the last blank."""
    at = data.rfind(b"\n") + 1 or max(data.rfind(b" "), data.rfind(b"\t"), 0)
    return data[:at], data[at:]

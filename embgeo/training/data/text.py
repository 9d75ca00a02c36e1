"""The files of a text: which there are, their lines, and their hashes."""

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_ISDIR

from embgeo.core.errors import UnreadableFile
from embgeo.files.guard import cannot_read
from embgeo.files.long_texts import read_pieces
from embgeo.files.records import digest_of

#: Endings of the names of compressed files, and of texts.
COMPRESSED = (".gz", ".zst")
TEXTS = (".txt", ".text", ".tokens", ".raw")
#: A tag in angle brackets, such as ``<br />`` and ``<unk>``.
TAG = re.compile(r"<[^>]{0,40}>")


def pieces(path: Path) -> Iterator[str]:
    """Yield a text in pieces that end after a line or, within a long line, before a space.

    Bytes that are not UTF-8 are refused: a model would learn whatever took their place.
    """
    line = 1
    for block in read_pieces(path):
        if b"\0" in block:
            raise UnreadableFile("it is binary, not text", where=path)
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
    """Tell whether a path is a folder; `UnreadableFile` if there is nothing."""
    try:
        return S_ISDIR(path.stat().st_mode)
    except OSError as error:
        raise cannot_read(path, error) from error


def hash_files(path: Path, files: Iterable[Path]) -> dict[str, str]:
    """Return SHA-256 of files as they are stored, each by its path below `path`, or next to it."""
    folder = path if is_folder(path) else path.parent
    found = {}
    for file in files:
        try:
            found[file.relative_to(folder).as_posix()] = digest_of(file)
        except OSError as error:
            raise cannot_read(file, error) from error
    return found

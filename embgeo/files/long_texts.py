"""Texts of any length, plain or compressed by gzip or zstd, read in pieces of bounded memory."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.files.compressed import BoundedStream, codec_of
from embgeo.files.guard import cannot_read, refuse
from embgeo.files.links import open_file
from embgeo.files.small_files import UTF16_MARKS, read_head

_BLOCK = 2**18
# Without white space no place to cut is known; a MiB without any is not text of words.
_LONGEST_WORD = 2**20
_MARK = b"\xef\xbb\xbf"
#: Largest share of invalid UTF-8 at the beginning; text in an older Latin encoding has less.
_MOST_INVALID = 0.1
_LAST_SPACE = re.compile(rb"[ \t\r\f\v](?=[^ \t\r\f\v]*\Z)")
_INVALID = re.compile("[\udc80-\udcff]")


class NotText(UnreadableFile):
    """A file that does not begin as UTF-8 text does."""


def read_pieces(
    path: Path, *, cut_words: bool = False, advance: Callable[[int], None] = lambda _bytes: None
) -> Iterator[bytes]:
    """Yield a text without its byte order mark, cut after line ends or else before white space.

    A MiB without white space is refused, or with `cut_words` cut between characters. `advance` gets
    the bytes of each block that is read. Raises `NotText` before the first piece, or not at all.
    """
    codec, rest, is_first = codec_of(read_head(path)), b"", True
    try:
        with open_file(path) as file:
            stream = file if codec is None else BoundedStream(path, file, codec)
            while block := stream.read(_BLOCK):
                if is_first:
                    check_start(block, path)
                    block, is_first = block.removeprefix(_MARK), False
                advance(len(block))
                whole, rest = _cut(rest + block)
                if len(rest) > _LONGEST_WORD:
                    if not cut_words:
                        raise refuse(path, "it has more than a MiB without white space")
                    at = _between_characters(rest)
                    whole, rest = whole + rest[:at], rest[at:]
                if whole:
                    yield whole
    except OSError as error:
        raise cannot_read(path, error) from error
    if is_first:
        raise NotText("the file is empty", where=path)
    if rest:
        yield rest


def check_start(start: bytes, path: Path) -> None:
    """Refuse a file by the first block of its content."""
    if start.startswith(UTF16_MARKS):
        way_out = "convert it with iconv -f UTF-16 -t UTF-8"
        raise NotText("it is UTF-16, not UTF-8", where=path, way_out=way_out)
    if b"\0" in start:
        raise NotText("it is binary, not text", where=path)
    # A character may be cut off at the end.
    invalid = count_invalid(start[: _between_characters(start)])
    if invalid > _MOST_INVALID * len(start):
        cause = f"{invalid:,} of its first {len(start):,} bytes are not UTF-8"
        raise NotText(cause, where=path, way_out="convert it with iconv -t UTF-8")


def count_invalid(piece: bytes) -> int:
    """Count the bytes that are not UTF-8."""
    return len(_INVALID.findall(piece.decode("utf-8", "surrogateescape")))


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """Split after the last line end or else before the last white space."""
    at = data.rfind(b"\n") + 1
    if at == 0:
        found = _LAST_SPACE.search(data)
        at = found.start() if found else 0
    return data[:at], data[at:]


def _between_characters(data: bytes) -> int:
    """Return the last place at which no UTF-8 character is cut."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            return len(data) - back
    return len(data)

"""Small files read whole, with limits: first bytes, text, JSON; files that nobody named."""

import json
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

from embgeo.core.errors import UnreadableFile
from embgeo.files.compressed import BoundedStream, codec_of
from embgeo.files.guard import Damaged, cannot_read, reading, refuse
from embgeo.files.links import COPY_IT, FOREIGN_LINK, is_foreign_link, open_file

#: Number of first bytes for every format's ``sniff``.
HEAD_BYTES = 4096
#: Largest vocabulary, table of counts or configuration.
SIDE_FILE_BYTES = 128 * 2**20
#: The largest tokenizer.json has less than half of this.
JSON_BYTES = 128 * 2**20
#: Memory for a text with its lines, or with the values of its JSON.
_MOST_MEMORY = 850 * 2**20
#: Bytes of CPython for a line and its parts.
_LINE_COST = 150
#: Bytes of CPython by sign: an empty list or dict, an entry of a list, a key.
_COST = {"[": 88, "{": 88, ",": 72, ":": 110}

#: How checkpoints in zip archives, of numpy, in GGUF, HDF5 and Parquet, and pickles begin.
_OF_CHECKPOINTS = (b"PK\x03\x04", b"\x93NUMPY", b"GGUF", b"\x89HDF", b"PAR1", b"\x80")
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_head(path: Path) -> bytes:
    """Read the first `HEAD_BYTES` bytes of a regular, non-empty file."""
    try:
        with open_file(path) as file:
            return _head(file, path)
    except OSError as error:
        raise cannot_read(path, error) from error
    except ValueError as error:  # an embedded NUL in the name
        raise UnreadableFile("is not a file name", where=repr(str(path))) from error


def _head(file: BinaryIO, path: Path) -> bytes:
    head = file.read(HEAD_BYTES)
    if not head:
        raise refuse(path, "the file is empty")
    file.seek(0)
    return head


def read_bytes(path: Path, limit: int = SIDE_FILE_BYTES, *, inside: bool = False) -> bytes:
    """Read a plain or compressed file; refuses content beyond `limit` bytes.

    With `inside` the file has to be in its folder, see :func:`open_file`.
    """
    try:
        with open_file(path, inside=inside) as file:
            codec = codec_of(_head(file, path))
            source = file if codec is None else BoundedStream(path, file, codec)
            data = source.read(limit + 1)
    except OSError as error:
        raise cannot_read(path, error) from error
    if len(data) > limit:
        raise refuse(
            path,
            f"more than {limit // 2**20:,} MiB, too long for a file of this kind",
        )
    return data


def decode_text(data: bytes, path: Path, what: str = "text") -> str:
    """Decode UTF-8, with or without byte order mark, or UTF-16 with one.

    `what` is expected, and named where the file is a checkpoint.
    """
    encoding = "utf-16" if data.startswith(UTF16_MARKS) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if data.startswith(_OF_CHECKPOINTS) or data[7:9] == b"\0{":
            raise refuse(path, f"is a checkpoint, not {what}") from error
        # utf-8-sig counts from behind the mark.
        mark = 3 if encoding == "utf-8-sig" and data.startswith(b"\xef\xbb\xbf") else 0
        raise refuse(
            path,
            f"is not valid {'UTF-16' if encoding == 'utf-16' else 'UTF-8'} "
            f"at byte {error.start + mark:,}",
            "convert it with iconv -t UTF-8",
        ) from error
    lines = text.count("\n")
    # One sign beyond the basic plane makes each sign of the text take four bytes.
    if len(data) + sys.getsizeof(text) + lines * _LINE_COST > _MOST_MEMORY:
        raise refuse(path, f"{lines:,} lines are too many for a file of this kind")
    return text


def read_text(path: Path, what: str = "text", *, inside: bool = False) -> str:
    """Read the text of a vocabulary, counts or configuration file."""
    return decode_text(read_bytes(path, inside=inside), path, what)


def split_lines(text: str) -> list[str]:
    r"""Split at ``\n`` and ``\r\n`` only; at ``\r`` where there are no others.

    ``str.splitlines`` also cuts at U+2028, U+0085 and form feeds, which occur in real tokens.
    """
    lines = text.split("\n" if "\n" in text else "\r")
    if lines[-1] == "":
        lines.pop()
    return [line[:-1] if line.endswith("\r") else line for line in lines]


def check_json(text: str) -> None:
    """Refuse a JSON text whose values might take too much memory, before they are built.

    ``[],[],…`` takes thirty times its length.
    """
    cost = sys.getsizeof(text) + sum(text.count(sign) * cost for sign, cost in _COST.items())
    if cost > _MOST_MEMORY:
        raise Damaged("its JSON holds implausibly many values")


def load_json(text: str, make_object: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Parse a JSON text; raises Damaged for malformed and deeply nested ones.

    `make_object` makes an object of its pairs, in which a key may be repeated; by default a dict.
    """
    check_json(text)
    try:
        return json.loads(text, object_pairs_hook=make_object)
    except json.JSONDecodeError as error:
        cause = f"is not valid JSON at line {error.lineno} column {error.colno} ({error.msg})"
        raise Damaged(cause) from error
    except RecursionError as error:
        raise Damaged("its JSON is nested too deeply to be read") from error
    except ValueError as error:
        cause = f"its JSON holds a value that cannot be read ({str(error)[:80]})"
        raise Damaged(cause) from error


def parse_json(
    text: str, path: Path, make_object: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """Parse the JSON text of the file `path`; see :func:`load_json`."""
    with reading(path, "JSON file"):
        return load_json(text, make_object)


def read_json(path: Path) -> Any:
    """Parse a JSON file in a folder, and none that a link leads to outside."""
    return parse_json(decode_text(read_bytes(path, JSON_BYTES, inside=True), path), path)


def read_object(path: Path, what: str = "") -> dict[str, Any]:
    """Parse the JSON object of a file in a folder; empty without the file.

    `what` says of what it is, in the error for another value.
    """
    if not is_companion(path):
        return {}
    data = read_json(path)
    if not isinstance(data, dict):
        raise refuse(path, f"is not a JSON object{what}")
    return data


def safe_text(token: str) -> str:
    r"""Write lone surrogates, which JSON may hold but UTF-8 cannot, as ``\ud800``."""
    if token.isascii():
        return token
    return token.encode("utf-8", "backslashreplace").decode("utf-8")


def is_plain_name(name: str) -> bool:
    """Tell whether a name from an index or a listing is a file in its own folder on any system."""
    is_whole = PurePosixPath(name).name == name == PureWindowsPath(name).name
    return is_whole and name not in ("", ".", "..") and name.isprintable()


def is_companion(path: Path) -> bool:
    """Tell whether there is such a file.

    Raises UnreadableFile if it is a link out of its folder.
    """
    if not path.is_file():
        return False
    if is_foreign_link(path):
        raise refuse(path, FOREIGN_LINK, COPY_IT)
    return True

"""Settings files: TOML within limits, and tables as dataclasses."""

import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from embgeo.core.errors import UnreadableFile
from embgeo.core.settings import Where, parse_value, refuse_unknown
from embgeo.files.guard import explain
from embgeo.files.saved import require_plain

T = TypeVar("T")
#: The longest file of settings.
MOST_BYTES = 2**20

#: A string of TOML, or a comment, in which quotes and dots mean nothing. An open one reaches
#: to the end of its line or of the text: looking for the end from each quote would be quadratic.
LITERAL = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"{3,5}|\Z)|\'\'\'.*?(?:\'{3,5}|\Z)'
    r'|"(?:[^"\\\n]|\\.)*+"?|\'[^\'\n]*+\'?|\#[^\n]*',
    re.DOTALL,
)
#: A key of more parts: the parser takes time that grows with their square.
_DEEP = re.compile(r"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){32}")


def read_document(path: Path, way_out: str = "") -> str:
    """Read the text of a settings file."""
    try:
        require_plain(path, MOST_BYTES)
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableFile("not UTF-8 text", where=path, way_out=way_out) from error
    except (OSError, ValueError) as error:
        raise UnreadableFile(explain(error)[0], where=path, way_out=way_out) from error


def parse_document(text: str, where: Where, way_out: str) -> dict[str, Any]:
    """Parse a TOML document; raises UnreadableFile if it is not one."""
    if _DEEP.search(LITERAL.sub("x", text)):
        cause = "not settings: a key has more than 32 parts"
        raise UnreadableFile(cause, where=where, way_out=way_out)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"not TOML: {error}", where=where, way_out=way_out) from error


def parse_table(
    kind: type[T], table: Any, name: str, where: Where = None, derived: Collection[str] = ()
) -> T:
    """Parse a table as the dataclass or structure `kind`; `name`, as ``[training]``, is for errors.

    The file cannot set the `derived` fields.

    Raises BadOption for an unknown key, with the nearest known one, or a value of the wrong type.
    """
    if isinstance(table, Mapping):
        refuse_unknown(table, {*list_fields(kind)} - {*derived}, name, where)
    found: T = parse_value(table, kind, name, where)
    return found


def list_fields(kind: Any) -> tuple[str, ...]:
    """List the fields of a dataclass or a structure."""
    return (*getattr(kind, "__struct_fields__", getattr(kind, "__dataclass_fields__", ())),)


def to_toml(value: Any) -> Any:
    """Convert a value to TOML's types: tables without None, and lists."""
    if isinstance(value, Struct):
        return to_toml(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): to_toml(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [to_toml(entry) for entry in value]
    return value

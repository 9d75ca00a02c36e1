"""What a hostile file of the corpus is, and how most of them are written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Build = Callable[[Path], Path]

#: What every payload would leave behind, in the folder of its file.
CANARY = "canary"


@dataclass(frozen=True)
class Case:
    """A malicious or broken file.

    Attributes
    ----------
    name : str
        What is wrong with it.
    format : str
        What it says it is.
    build : callable
        Writes it, and what belongs to it, into a folder; gives the path that is to be analyzed.
    opens : bool
        Sound besides its payload: it is analyzed, and nothing else happens.
    more : tuple of str
        More of the command line; ``{}`` stands for the folder.
    needs : str
        A package without which it cannot be written or is refused for another reason.
    dense : bool
        Takes seconds to be refused.
    """

    name: str
    format: str
    build: Build
    opens: bool = False
    more: tuple[str, ...] = ()
    needs: str = ""
    dense: bool = False

    @property
    def id(self) -> str:
        return f"{self.format}: {self.name}"


def hold_content(content: bytes | str | Callable[[], bytes], name: str = "a") -> Build:
    """A builder of one file."""

    def build(folder: Path) -> Path:
        data = content() if callable(content) else content
        path = folder / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return build


def from_table(
    kind: str, table: Mapping[str, Any], content: Callable[[Any], bytes], **settings: Any
) -> list[Case]:
    """Cases of a table of another test, whose entries begin with what makes the content."""

    def maker(entry: Any) -> Callable[[], bytes]:
        return lambda: content(entry)

    return [
        Case(name, kind, hold_content(maker(entry[0])), **settings) for name, entry in table.items()
    ]


def number_cases(
    kind: str, rows: Iterable[tuple[Any, str]], content: Callable[[Any], bytes], **settings: Any
) -> list[Case]:
    """As :func:`from_table`, for a list of contents with what is said about them."""
    table = {f"{said} ({number})": (made,) for number, (made, said) in enumerate(rows)}
    return from_table(kind, table, content, **settings)

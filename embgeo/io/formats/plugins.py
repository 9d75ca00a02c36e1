"""Formats of other packages, found by the entry-point group ``embgeo.formats``.

A distribution names an object with the attributes of :class:`~embgeo.io.formats.format.Format`,
usually a module:

    [project.entry-points."embgeo.formats"]
    zarr = "embgeo_zarr"
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.formats.format import Format

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "embgeo.formats"

T = TypeVar("T")


def find_plugin(head: bytes) -> Format | None:
    """The first installed plug-in that recognizes a file by its first bytes.

    Raises
    ------
    UnreadableFile
        A plug-in that cannot be imported, is not a format, or fails.
    """
    return next((plugin for plugin in _load_installed(tuple(sys.path)) if plugin.sniff(head)), None)


@cache
def _load_installed(_search_path: tuple[str, ...]) -> tuple[PluginFormat, ...]:
    from importlib.metadata import entry_points  # slow, and needed for unknown files only

    entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return tuple(PluginFormat(entry) for entry in entries)


class PluginFormat:
    """A format of another package, whose failures become one line that names it."""

    def __init__(self, entry: EntryPoint) -> None:
        self._name = entry.name
        self._package = entry.dist.name if entry.dist is not None else entry.value
        found = self._call(entry.load)
        if not isinstance(found, Format):
            raise self._error(f"{entry.value} has not the attributes of a format")
        self._format = found
        self.NAME, self.RECOGNIZED = found.NAME, found.RECOGNIZED
        self.READ, self.EXTRA = found.READ, found.EXTRA

    def sniff(self, head: bytes) -> bool:
        return bool(self._call(lambda: self._format.sniff(head)))

    def open_checkpoint(self, path: Path) -> Checkpoint:
        return self._call(lambda: self._format.open_checkpoint(path))

    def _call(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except EmbgeoError:
            raise
        except Exception as error:  # whatever the other package raises
            raise self._error(f"{type(error).__name__}: {error}") from error

    def _error(self, cause: str) -> UnreadableFile:
        return UnreadableFile(
            f"the format plug-in {self._name!r} of {self._package} cannot be used ({cause})",
            way_out=f"update {self._package}, or uninstall it",
        )

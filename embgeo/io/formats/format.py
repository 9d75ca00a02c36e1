"""The protocol of formats, which are modules or objects of plug-ins; files in several pieces."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from embgeo.core.errors import EmbgeoError
from embgeo.files import scratch
from embgeo.files.guard import Damaged, guard_opening, reading, short
from embgeo.files.maps import Array, Bytes, count, number_type
from embgeo.io.model.checkpoint import Checkpoint, Tensor, note_unread, replace_open
from embgeo.io.model.names import input_rank

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@runtime_checkable
class Format(Protocol):
    """A format that is recognized by the first bytes of its files.

    Attributes
    ----------
    NAME : str
        Name in messages and in the provenance.
    RECOGNIZED : str
        How its files are recognized, for the documentation.
    READ : str
        What is mapped and what is read, for the documentation.
    EXTRA : str
        Extra of embgeo that it needs, or an empty string.
    """

    @property
    def NAME(self) -> str: ...
    @property
    def RECOGNIZED(self) -> str: ...
    @property
    def READ(self) -> str: ...
    @property
    def EXTRA(self) -> str: ...

    def sniff(self, head: bytes, /) -> bool:
        """Tell whether a file that begins with `head` (at most 4,096 bytes) has this format."""

    def open_checkpoint(self, data: Bytes, beside: Beside, /) -> Checkpoint:
        """Open the tensors of a file, not yet read, with its labels and counts.

        Compare every size in the file with the file before using it, and execute nothing. The
        caller, :func:`open_with`, names the file in errors. The bytes may lie elsewhere and be
        fetched when they are read: slice first. :func:`embgeo.files.maps.stamp_of` opens
        the whole file again for a library that reads files itself.

        Raises
        ------
        Damaged
            The file is damaged, hostile or cut off, or a package is missing.
        """


class Folder(Protocol):
    """The files of a folder, on this machine or elsewhere."""

    #: Of a folder that lies elsewhere that of its configuration and tokenizer.
    path: Path
    is_here: bool

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of its files by name."""

    def open(self, name: str) -> Bytes:
        """Open a file of the folder, or one that is linked from it."""

    def open_named(self, name: str, what: str) -> Bytes:
        """Open a file that another one names.

        Raises Missing, or Damaged if the name leads out of the folder.
        """

    def siblings(self) -> Mapping[str, Folder]:
        """Return the folders beside it, and itself, by name."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The folder of an opened file, whose other files may hold its tensors."""

    folder: Folder
    #: Name of the opened file.
    name: str

    @property
    def path(self) -> Path:
        return self.folder.path / self.name

    def open(self, name: str, what: str = "shard") -> Bytes:
        return self.folder.open_named(name, what)

    def open_with(self, known: Format, name: str) -> Checkpoint:
        return open_with(known, self.open(name), Beside(self.folder, name))


def open_with(known: Format, data: Bytes, beside: Beside) -> Checkpoint:
    """Open a file of this format.

    Errors of a bad file, now or when a tensor of it is opened, become one line that names it.
    """
    path = beside.path
    with reading(path, known.NAME):
        checkpoint = known.open_checkpoint(data, beside)
        if not checkpoint.tensors:
            raise Damaged("it holds no array of numbers")
        if all(tensor.problem for tensor in checkpoint.tensors):
            raise _nothing_read(checkpoint.tensors)
    guarded = tuple(_guard_tensor(path, known.NAME, tensor) for tensor in checkpoint.tensors)
    notes = (*checkpoint.notes, *note_unread(checkpoint.tensors))
    files = tuple(path.with_name(name) if name else path for name in checkpoint.holders)
    return replace(checkpoint, tensors=guarded, notes=notes, path=path, files=files)


def _nothing_read(tensors: Sequence[Tensor]) -> Damaged:
    """Return the error for a file without a tensor that can be read; embeddings come first."""
    ordered = sorted(tensors, key=lambda t: input_rank(t.name) is None)
    causes = [f"{short(t.name) or 'it'} {t.problem}" for t in ordered[:_LISTED]]
    more = f" and {len(tensors) - _LISTED:,} more" if len(tensors) > _LISTED else ""
    return Damaged(f"nothing in it can be read: {'; '.join(causes)}{more}", ordered[0].way_out)


def _guard_tensor(path: Path, name: str, tensor: Tensor) -> Tensor:
    if tensor.problem:
        return tensor
    guarded = replace_open(tensor, guard_opening(path, name, tensor.open))
    if (ranges := tensor.ranges) is None:
        return guarded
    return replace(guarded, ranges=replace(ranges, read=guard_opening(path, name, ranges.read)))


GROUP = "embgeo.formats"
_LISTED = 3

T = TypeVar("T")


def find_plugin(head: bytes) -> Format | None:
    """Find the first installed plug-in that recognizes a file; a plug-in that fails is an error."""
    return next((plugin for plugin in _load_installed(tuple(sys.path)) if plugin.sniff(head)), None)


@cache
def _load_installed(_search_path: tuple[str, ...]) -> tuple[PluginFormat, ...]:
    from importlib.metadata import entry_points  # slow; needed for unknown files only

    entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return tuple(PluginFormat(entry) for entry in entries)


class PluginFormat:
    """A format of another package; its failures become one line that names the package."""

    def __init__(self, entry: EntryPoint) -> None:
        self._name = entry.name
        self._package = entry.dist.name if entry.dist is not None else entry.value
        found = self._call(entry.load)
        if not isinstance(found, Format):
            raise self._error(f"{entry.value} lacks attributes of a format")
        self._format = found
        self.NAME, self.RECOGNIZED = found.NAME, found.RECOGNIZED
        self.READ, self.EXTRA = found.READ, found.EXTRA

    def sniff(self, head: bytes) -> bool:
        return bool(self._call(lambda: self._format.sniff(head)))

    def open_checkpoint(self, data: Bytes, beside: Beside) -> Checkpoint:
        return self._call(lambda: self._format.open_checkpoint(data, beside))

    def _call(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except EmbgeoError:
            raise
        except Exception as error:  # whatever the other package raises
            raise self._error(f"{type(error).__name__}: {error}") from error

    def _error(self, cause: str) -> EmbgeoError:
        return EmbgeoError(
            f"the format plug-in {self._name!r} of {self._package} cannot be used ({cause})",
            way_out=f"pip install --upgrade {self._package}",
        )


#: Index of the first element of a piece, and its shape.
Box = tuple[tuple[int, ...], tuple[int, ...]]


def is_grid(boxes: Sequence[Box], shape: tuple[int, ...]) -> bool:
    """Tell whether the boxes are the cells of a grid, so that each element is in exactly one."""
    if not count(shape):
        return not boxes
    if not boxes or any(not len(first) == len(part) == len(shape) for first, part in boxes):
        return False
    fields = 1
    for axis, size in enumerate(shape):
        starts = sorted({first[axis] for first, _ in boxes})
        ends = dict(zip(starts, [*starts[1:], size], strict=True))
        if starts[0] != 0:
            return False
        if any(first[axis] + part[axis] != ends[first[axis]] for first, part in boxes):
            return False
        fields *= len(starts)
    return fields == len(boxes)


def join_grid(
    pieces: Iterable[tuple[Box, Callable[[], Array]]],
    shape: tuple[int, ...],
    dtype: str,
) -> Array:
    """Return the read-only tensor of pieces that make up a grid.

    A large one is in a temporary file.
    """
    whole: Array = scratch.empty(shape, number_type(dtype))
    for (first, part), read in pieces:
        whole[tuple(slice(a, a + n) for a, n in zip(first, part, strict=True))] = read()
    whole.flags.writeable = False
    return whole

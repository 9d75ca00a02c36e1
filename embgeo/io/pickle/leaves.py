"""What the walk over a pickled object looks for, and the named tensors it becomes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from embgeo.io.bounded.guard import guard_opening
from embgeo.io.bounded.maps import Array
from embgeo.io.checkpoint import Tensor

_MOST_NOTES = 20


class Leaf:
    """Something in a pickle that holds numbers, or would."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def dtype(self) -> str:
        """numpy's or ml_dtypes' name."""
        raise NotImplementedError

    @property
    def key(self) -> object:
        """Equal for leaves over the same bytes, seen the same way."""
        raise NotImplementedError

    @property
    def unread(self) -> str:
        """Why it is not read; empty where it is."""
        return ""

    def check(self) -> None:
        """Raise Damaged where the bytes do not suffice."""

    def open(self) -> Array:
        raise NotImplementedError


class Unread(Leaf):
    """A tensor of a kind that is named and left out."""

    __slots__ = ("_reason",)

    def __init__(self, reason: str) -> None:
        self._reason = reason

    @property
    def key(self) -> object:
        return id(self)

    @property
    def unread(self) -> str:
        return self._reason


def tensors_of(
    leaves: Iterable[tuple[str, Leaf]], path: Path, what: str
) -> tuple[tuple[Tensor, ...], tuple[str, ...]]:
    """Tensors, and a note for each leaf that is not read.

    Parameters
    ----------
    leaves : iterable of (name, leaf)
    path : Path
        Named where opening fails later.
    what : str
        Name of the format, likewise.

    Raises
    ------
    Damaged
        Where a leaf reaches beyond its bytes.
    """
    tensors: list[Tensor] = []
    notes: list[str] = []
    first: dict[object, str] = {}
    for name, leaf in leaves:
        reason = leaf.unread
        if reason:
            notes.append(f"{name or 'the array'} is not read: {reason}")
            continue
        leaf.check()
        alias = first.setdefault(leaf.key, name)
        tensors.append(
            Tensor(
                name=name,
                shape=leaf.shape,
                dtype=leaf.dtype,
                open=guard_opening(path, what, leaf.open),
                alias_of="" if alias == name else alias,
            )
        )
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES:] = [f"{len(notes) - _MOST_NOTES:,} more are not read"]
    return tuple(tensors), tuple(notes)

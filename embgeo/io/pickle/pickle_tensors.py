"""From the leaves of an unpickled object to named tensors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from embgeo.io.bounded.guard import guarded
from embgeo.io.checkpoint import Tensor
from embgeo.io.pickle.leaves import Leaf

_MOST_NOTES = 20


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
                open=guarded(path, what, leaf.open),
                alias_of="" if alias == name else alias,
            )
        )
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES:] = [f"{len(notes) - _MOST_NOTES:,} more are not read"]
    return tuple(tensors), tuple(notes)

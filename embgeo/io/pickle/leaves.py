"""What the walk over a pickled object looks for, and the named tensors it becomes."""

from __future__ import annotations

from collections.abc import Iterable

from embgeo.io.bounded.maps import Array
from embgeo.io.checkpoint import Omissions, Tensor


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


def tensors_of(leaves: Iterable[tuple[str, Leaf]], left_out: Omissions) -> tuple[Tensor, ...]:
    """The named leaves as tensors; those that are not read are noted in `left_out`.

    Raises
    ------
    Damaged
        Where a leaf reaches beyond its bytes.
    """
    tensors: list[Tensor] = []
    first: dict[object, str] = {}
    for name, leaf in leaves:
        if leaf.unread:
            left_out.add(name or "the array", leaf.unread)
            continue
        leaf.check()
        alias = first.setdefault(leaf.key, name)
        shared = "" if alias == name else alias
        tensors.append(Tensor(name, leaf.shape, leaf.dtype, leaf.open, shared))
    return tuple(tensors)

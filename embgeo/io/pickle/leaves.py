"""What the walk over a pickled object looks for."""

from __future__ import annotations

from embgeo.io.bounded.maps import Array


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

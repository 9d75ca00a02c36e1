"""The law every statistic obeys, and the fold that feeds it.

A statistic is a monoid over sets of rows: freshly made it is the identity, ``update(block)`` adds
rows in place, ``merge(other)`` joins the rows of two statistics, and any way of cutting the rows
into blocks and joining the parts gives the same answer up to rounding. So passes run in threads,
on a device, on other machines, or are saved and merged later.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from embgeo.stats.backend.backend import Backend
from embgeo.stats.block import Block


class Statistic:
    """A monoid over row sets; equal keys mean equal statistics, which are taken once.

    Attributes
    ----------
    STATE : tuple of str
        Names of the attributes that `clear` sets and rows change. Everything else is what the
        statistic was made with, and is shared by its copies.
    of_left_out : bool
        Whether it also sees the rows that are left out, such as damaged ones; only passes after
        the first one bring these.

    Notes
    -----
    `update` computes with the backend of the block, and may leave arrays of the state there;
    `to_host` fetches them before anything is merged, saved or read. Where the memory of a device
    does not suffice, `update` changes nothing: whatever takes memory comes before the first
    change of the state.
    """

    STATE: ClassVar[tuple[str, ...]] = ()
    of_left_out: ClassVar[bool] = False

    @property
    def key(self) -> Hashable:
        return type(self).__name__

    def clear(self) -> None:
        """Become the identity: forget every row."""
        raise NotImplementedError

    def update(self, block: Block) -> None:
        """Add the rows of a block."""
        raise NotImplementedError

    def merge(self, other: Self) -> None:
        """Add the rows that another statistic of the same key has seen, on the host."""
        raise NotImplementedError

    def blank(self) -> Self:
        """The identity of the same key."""
        other = copy.copy(self)
        other.clear()
        return other

    def state(self) -> dict[str, Any]:
        """What rows have changed, by name."""
        return {name: getattr(self, name) for name in self.STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the state of a statistic of the same key.

        Raises
        ------
        ValueError
            If a part of the state is missing, or is none.
        """
        if set(state) != set(self.STATE):
            raise ValueError(f"{type(self).__name__} has the state {self.STATE}")
        for name, value in state.items():
            setattr(self, name, value)

    def to_host(self, backend: Backend) -> None:
        """Fetch what a backend holds of the state."""
        self.restore({name: backend.to_host(value) for name, value in self.state().items()})


def fold(
    blocks: Iterable[Block],
    statistics: Sequence[Statistic],
    progress: Callable[[int], None] | None = None,
) -> None:
    """Feed every block to every statistic; `progress` gets the number of rows of each."""
    for block in blocks:
        for statistic in statistics:
            statistic.update(block)
        if progress is not None:
            progress(len(block.index))


def concatenate(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The parts one below the other; an empty float64 array where there is none."""
    return np.concatenate(parts) if parts else np.zeros(0)

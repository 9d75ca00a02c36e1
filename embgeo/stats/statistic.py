"""The law that every statistic obeys, and the fold that feeds it.

A statistic is a monoid over sets of rows: a new one is the identity, ``update(block)`` adds rows
in place, ``merge(other)`` joins the rows of two statistics, and every partition of the rows into
blocks and parts gives the same result up to rounding. Passes can therefore run in threads, on a
device or on other machines.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from embgeo.stats.backend.backend import Backend
from embgeo.stats.block import Block


@dataclass(eq=False)
class Statistic:
    """A monoid over sets of rows; statistics of equal key are equal and computed once.

    Its fields are the parameters, which its copies share.

    Notes
    -----
    `update` computes with the backend of the block, and may leave arrays of the state there;
    `to_host` fetches them before anything is merged or read.
    """

    #: Names of the attributes that `clear` sets and rows change.
    STATE: ClassVar[tuple[str, ...]] = ()
    #: Whether it also reads the rows that are left out, such as damaged ones; only passes after the
    #: first one provide them.
    of_left_out: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.clear()

    @property
    def key(self) -> tuple[str, str]:
        """The name of the class, and that of the statistic if there may be several."""
        return type(self).__name__, getattr(self, "name", "")

    def clear(self) -> None:
        """Reset to the identity: forget all rows."""
        raise NotImplementedError

    def update(self, block: Block) -> None:
        """Add the rows of a block."""
        raise NotImplementedError

    def merge(self, other: Self) -> None:
        """Add the rows of another statistic of the same key, on the host.

        By default, every attribute of the state is a sum or a list.
        """
        for name in self.STATE:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def blank(self) -> Self:
        """Return a new identity with the same key."""
        other = copy.copy(self)
        other.clear()
        return other

    def to_host(self, backend: Backend) -> None:
        """Move the state from a backend to the host."""
        for name in self.STATE:
            setattr(self, name, backend.to_host(getattr(self, name)))


def fold(
    blocks: Iterable[Block],
    statistics: Sequence[Statistic],
    progress: Callable[[int], None] | None = None,
) -> None:
    """Feed every block to every statistic; `progress` receives the rows of each block."""
    for block in blocks:
        for statistic in statistics:
            statistic.update(block)
        if progress is not None:
            progress(len(block.index))


def merge_all(statistics: Sequence[Statistic], others: Sequence[Statistic]) -> None:
    """Merge each statistic with the one of the same key, at the same place."""
    for statistic, other in zip(statistics, others, strict=True):
        statistic.merge(other)


def concatenate(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Concatenate the parts; an empty float64 array if there are none."""
    return np.concatenate(parts) if parts else np.zeros(0)

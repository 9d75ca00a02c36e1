"""Numbers over training: curves of checkpoints of one run, and their bends."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from embgeo.core.arrays import SingleArray
from embgeo.core.quantities import track as q
from embgeo.core.text import join_words
from embgeo.core.values import IN_ARCHIVE, INLINE, Quantity, Scalar


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """Where a curve over training changes its slope."""

    #: Where the two segments meet.
    step: float
    #: Slopes of the two segments, per step.
    slope_before: float
    slope_after: float
    #: Sum of squared residuals of the two segments as a share of that of one straight line.
    left: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A number over training."""

    quantity: Quantity = field(metadata=INLINE)
    #: Empty for a number of a single matrix; else the other member of the pair: the first of the
    #: track, or the previous one.
    against: Literal["", "first", "previous"]
    #: One for each member of the track, None if there is none.
    values: tuple[float | None, ...]
    standard_errors: tuple[float | None, ...]
    change_point: ChangePoint | None = None
    #: Why there is no bend.
    no_change_point: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The rows of a checkpoint in the plane of the top two singular directions of the last one."""

    member: int
    #: In the order of the rows that its analysis lists; shape (M, 2).
    xy: SingleArray = field(metadata=IN_ARCHIVE)


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A checkpoint of the run that could not be measured, and is no member."""

    step: float
    reason: str


@dataclass(frozen=True, slots=True)
class Track:
    """Checkpoints of one run in the order of their steps (which is the order of the members)."""

    #: Rising.
    steps: tuple[float, ...]
    #: The origin of the steps, in words.
    source: str
    #: One for every scalar that some member has, then for the numbers of two matrices.
    curves: tuple[Curve, ...] = ()
    #: For each member, the place of the first one that holds the same matrix, byte by byte; None if
    #: that is the member itself. Bends and lines leave duplicates out.
    same_as: tuple[int | None, ...] = ()
    #: Places of members that do not fit their neighbors.
    outliers: tuple[int, ...] = ()
    unmeasured: tuple[Unmeasured, ...] = ()
    #: The rows of each member, without duplicates and the last one, in the plane of the last one;
    #: empty if a matrix was not available.
    places: tuple[Places, ...] = field(default=(), metadata={"later": True})

    @property
    def distinct(self) -> tuple[int, ...]:
        """Places of the members that are not duplicates."""
        return tuple(i for i in range(len(self.steps)) if self.original_of(i) is None)

    def original_of(self, place: int) -> int | None:
        """Place of the member that this one duplicates."""
        return self.same_as[place] if self.same_as else None

    @property
    def unfit(self) -> tuple[float, ...]:
        """Steps that do not fit their neighbors or could not be measured."""
        outliers = [self.steps[place] for place in self.outliers]
        return tuple(sorted([*outliers, *(one.step for one in self.unmeasured)]))

    def scalars(self) -> tuple[Scalar, ...]:
        """Return numbers about the whole run, which rules of a gate may name."""
        duplicates = len(self.steps) - len(self.distinct)
        return (q.DUPLICATES.measured(duplicates), q.OUTLIERS.measured(len(self.unfit)))


def name_steps(steps: Sequence[float]) -> str:
    """Name steps in words.

    >>> name_steps([9.0]), name_steps([0.0, 1000.0, 143000.0])
    ('step 9', 'steps 0, 1,000 and 143,000')
    """
    return f"step{'' if len(steps) == 1 else 's'} {join_words([f'{s:,.10g}' for s in steps])}"

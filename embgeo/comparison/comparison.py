"""The result of a comparison: analyses side by side, and what takes two matrices.

:mod:`embgeo.comparison.files` saves it as a folder and reads it back. A page or a figure needs
nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from embgeo.core.typed import INLINE
from embgeo.core.values import Column, Histogram, Quantity, Scalar, Series, Table, Value
from embgeo.io.bounded.records import in_archive
from embgeo.result.analysis import Analysis

#: What is known of a difference. "beyond error": larger than sampling explains (its 95 % interval
#: leaves out 0); "within error": it may be chance; "not judged": sampled, but without a standard
#: error on some side; "exact": nothing was sampled; "equal": exact, and equal but for rounding;
#: "undefined": one side has no value, or the two are no measurements of the same thing.
Change = Literal["beyond error", "within error", "not judged", "exact", "equal", "undefined"]
Direction = Literal["better", "worse"] | None


@dataclass(frozen=True, slots=True)
class Member:
    """One of the compared matrices.

    Attributes
    ----------
    name : str
        Short, and different for each member; from a file name, so hostile text.
    given : str
        The path as the user named it.
    analysis : Analysis
    from_saved : bool
        Whether `given` was a saved analysis rather than a checkpoint.
    matrix_absent : str
        Why the matrix itself was not at hand for what takes both matrices; empty if it was.
    step : float or None
        Training step, where the comparison is a track.
    """

    name: str
    given: str
    analysis: Analysis
    from_saved: bool = False
    matrix_absent: str = ""
    step: float | None = None

    def folder(self, place: int) -> str:
        """Name of the folder of this member's analysis, as the member at `place`."""
        plain = unicodedata.normalize("NFKD", self.name).encode("ascii", "ignore").decode()
        return f"{place}-{re.sub(r'[^A-Za-z0-9._-]+', '-', plain)[:60]}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Kept rows of one side that are not among the shared ones.

    Attributes
    ----------
    missing : int
        Rows whose token (or row number) the other side does not hold.
    examples : tuple of str
        The first few of those tokens; hostile text.
    ambiguous : int
        Rows left out because their token stands in several rows, not the same ones on both sides.
    ambiguous_examples : tuple of str
    """

    missing: int = 0
    examples: tuple[str, ...] = ()
    ambiguous: int = 0
    ambiguous_examples: tuple[str, ...] = ()


def _no_rows() -> npt.NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Matching:
    """Which row of one matrix is which row of the other.

    Attributes
    ----------
    by : {"token", "row"} or None
        None where rows could not be matched.
    reason : str
        In words: by what rows were matched, and why; or why they could not be.
    first, second : int arrays, shape (S,)
        Positions among the *kept* rows of either analysis (as in ``analysis.tokens`` and
        ``points[].xy``), one pair for each shared token, in the order of the first's rows.
    left_out : tuple of two LeftOut
        Of the first and of the second.
    shared : int
        S, the number of shared tokens.
    """

    by: Literal["token", "row"] | None
    reason: str
    first: npt.NDArray[np.int64] = field(default_factory=_no_rows, metadata=in_archive("first"))
    second: npt.NDArray[np.int64] = field(default_factory=_no_rows, metadata=in_archive("second"))
    left_out: tuple[LeftOut, LeftOut] = (LeftOut(), LeftOut())
    shared: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shared", len(self.first))


@dataclass(frozen=True, slots=True)
class Pair:
    """What takes two matrices, over their shared tokens.

    Attributes
    ----------
    first, second : int
        Places of the two among the members; `first` is the baseline, or in a track also the
        member before.
    matching : Matching
    scalars : tuple of Scalar
        ``compare.subspace_distance``, ``compare.cka``, ``compare.procrustes``,
        ``compare.neighbor_overlap``; all of them, undefined with the reason where a matrix is not
        at hand. `reference` is the chance level.
    series : tuple of Series
        ``compare.principal_angles`` (degrees, smallest first).
    histograms : tuple of Histogram
        ``compare.overlap_histogram``: how many queries keep which share of their neighbors.
    columns : tuple of Column
        One number for each shared token, shape (S,), in the order of `matching`:
        ``compare.token_overlap`` where all of them were asked for their neighbors.
    tables : tuple of Table
        ``compare.moved``: tokens whose neighborhood changed most, the most changed first.
        Columns: ``token``, ``overlap`` (Jaccard), ``before 1`` … ``before k`` (nearest in
        `first`), ``after 1`` … ``after k`` (nearest in `second`); a cell is None where there are
        fewer than k neighbors.
    """

    first: int
    second: int
    matching: Matching
    scalars: tuple[Scalar, ...] = ()
    series: tuple[Series, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    columns: tuple[Column, ...] = ()
    tables: tuple[Table, ...] = ()

    @property
    def name(self) -> str:
        """``"0-1"``."""
        return f"{self.first}-{self.second}"

    def __getitem__(self, name: str) -> Value:
        """The value called ``compare.…``; KeyError if this pair does not hold it."""
        for value in self.values():
            if value.name == name:
                return value
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(value.name == name for value in self.values())

    def values(self) -> tuple[Value, ...]:
        return (*self.scalars, *self.series, *self.histograms, *self.columns, *self.tables)


@dataclass(frozen=True, slots=True)
class Difference:
    """One scalar of the analyses: what a member has beside what the baseline has.

    Attributes
    ----------
    quantity : Quantity
    member : int
        Place of the member; the baseline is 0.
    baseline, value : float or None
    difference : float or None
        ``value − baseline``; None exactly if `undefined` gives a reason.
    standard_error : float or None
        One standard error of the difference, where it was sampled.
    interval : tuple of two floats or None
        95 % interval of the difference, where it was sampled.
    error_note : str
        How error and interval were found; empty where there is neither.
    change : Change
    direction : {"better", "worse"} or None
        None where neither direction is good in itself (nearly everywhere), or nothing changed.
    undefined : str
        Why there is no difference.
    note : str
        What keeps the two from being the same measurement (other conventions, other options).
    """

    quantity: Quantity = field(metadata=INLINE)
    member: int
    baseline: float | None
    value: float | None
    difference: float | None
    standard_error: float | None = None
    interval: tuple[float, float] | None = None
    error_note: str = ""
    change: Change = "exact"
    direction: Direction = None
    undefined: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        return self.quantity.name


@dataclass(frozen=True, slots=True)
class Bend:
    """Where a curve over training changes its slope.

    Attributes
    ----------
    step : float
        Where the two segments meet.
    slope_before, slope_after : float
        Of the two segments, per step.
    left : float
        Sum of squared residuals of the two segments as a share of that of one straight line.
    """

    step: float
    slope_before: float
    slope_after: float
    left: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A number over training.

    Attributes
    ----------
    quantity : Quantity
    against : {"", "first", "previous"}
        Empty for a number of each matrix alone; otherwise with which other member the number is
        taken: the first of the track, or the one before.
    values, standard_errors : tuple of float or None
        One for each member of the track, None where there is none.
    bend : Bend or None
    no_bend : str
        Why there is no bend.
    """

    quantity: Quantity = field(metadata=INLINE)
    against: Literal["", "first", "previous"]
    values: tuple[float | None, ...]
    standard_errors: tuple[float | None, ...]
    bend: Bend | None = None
    no_bend: str = ""


@dataclass(frozen=True, slots=True)
class Track:
    """Checkpoints of one run in the order of their steps (which is the order of the members).

    Attributes
    ----------
    steps : tuple of float
        Rising.
    source : str
        Where the steps come from, in words.
    curves : tuple of Curve
        Of every scalar that some member has, then of what takes two matrices.
    """

    steps: tuple[float, ...]
    source: str
    curves: tuple[Curve, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Analyses side by side.

    Attributes
    ----------
    provenance : dict
        JSON-ready: command, seed, options, versions (``docs/diff.md`` lists the fields).
    members : tuple of Member
        The baseline first; two at least.
    pairs : tuple of Pair
        The baseline with each other member, in order; in a track then each member with the next.
    differences : tuple of Difference
        Of every scalar, quantity by quantity, within one by member.
    sentences : tuple of str
        What stands out, in words, the most important first.
    notes : tuple of str
        What a reader has to know (how rows were matched, what was left out).
    track : Track or None
    timing : dict of str to float
        Seconds by stage: the one part that differs between equal runs.
    """

    provenance: dict[str, Any]
    members: tuple[Member, ...]
    pairs: tuple[Pair, ...] = ()
    differences: tuple[Difference, ...] = ()
    sentences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    track: Track | None = None
    timing: dict[str, float] = field(default_factory=dict)

    @property
    def baseline(self) -> Member:
        return self.members[0]

    @property
    def others(self) -> tuple[Member, ...]:
        return self.members[1:]

    def pair(self, first: int, second: int) -> Pair | None:
        """What was taken of these two members; None if nothing was."""
        return next((p for p in self.pairs if (p.first, p.second) == (first, second)), None)

    def differences_of(self, member: int) -> tuple[Difference, ...]:
        """Every difference of that member from the baseline."""
        return tuple(d for d in self.differences if d.member == member)

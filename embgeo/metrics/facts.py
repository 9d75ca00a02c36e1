"""The facts about a matrix other than its entries, and how it is measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import ml_dtypes
import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.matrix import FinalNorm, Frequency, Matrix
from embgeo.core.options import Options
from embgeo.core.rows import choose_bound, find_listed
from embgeo.core.special import SpecialToken
from embgeo.core.values import Cell
from embgeo.numerics.halves import ROWS_PER_DIMENSION, deal_groups, hash_numbers, hash_stems
from embgeo.numerics.sampling import generator
from embgeo.stats.reader import RowReader

NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)


def _find_without_output(matrix: Matrix, masked: IntArray) -> IntArray:
    """Return the rows that are left out of the output matrix alone."""
    if matrix.output is None:
        return NO_ROWS
    rows = np.concatenate([NO_ROWS, *matrix.output.masked.values()])
    return np.setdiff1d(rows, masked)


def group_rows(matrix: Matrix, masked: IntArray) -> IntArray | None:
    """Put the rows into groups for errors over tokens, all but the masked ones in equal numbers."""
    rows = np.setdiff1d(np.arange(matrix.n), masked)
    if len(rows) < ROWS_PER_DIMENSION * matrix.d:
        return None
    keys = (
        hash_numbers(rows)
        if matrix.tokens is None
        else hash_stems([matrix.tokens[i] for i in rows.tolist()])
    )
    dealt, groups = deal_groups(keys), np.zeros(matrix.n, dtype=np.int64)
    if dealt is None:
        return None
    groups[rows] = dealt
    return groups


#: Above this probability that rows at an end are zero by chance, they are not padding.
PADDING_CHANCE = 0.05


@dataclass(frozen=True)
class Facts:
    """Shape, labels and companions of a matrix, which of its rows are kept, and the options."""

    n: int
    d: int
    options: Options = field(default_factory=Options)
    tokens: Sequence[str] | None = None
    frequency: Frequency | None = None
    #: Columns of the output matrix of an untied model, or why there is none.
    output_width: int | None = None
    output_absent: str = ""
    #: Rows of tokens that the output matrix has no row for.
    without_output: IntArray = field(default_factory=lambda: NO_ROWS)
    final_norm: FinalNorm | None = None
    special: tuple[SpecialToken, ...] = ()
    vocabulary_size: int | None = None
    tied_as_configured: bool | None = None
    unreachable: tuple[int, ...] | str | None = None
    #: Distance of 1 to the next larger number of the stored type.
    rounding: float = 0.0
    #: Rows left out on request, by reason.
    masked: Mapping[str, IntArray] = field(default_factory=dict)
    n_masked: int = 0
    # Known after the first pass: rows left out because they are zero, have a non-finite entry or
    # are far shorter than all others; rows of nearly equal entries; and kept rows. All ascending.
    zero: IntArray = field(default_factory=lambda: NO_ROWS)
    nonfinite: IntArray = field(default_factory=lambda: NO_ROWS)
    small: IntArray = field(default_factory=lambda: NO_ROWS)
    small_norms: FloatArray = field(default_factory=lambda: np.zeros(0))
    flat: IntArray = field(default_factory=lambda: NO_ROWS)
    #: Whether no entry is negative, or none positive.
    nonnegative: bool = False
    nonpositive: bool = False
    kept: IntArray = field(default_factory=lambda: NO_ROWS)
    #: Group of each of the N rows by its stem, for errors over tokens; None where there are too few
    #: rows or stems, or no errors are asked for.
    groups: IntArray | None = None

    @classmethod
    def of(cls, matrix: Matrix, options: Options) -> Self:
        """Return the facts before any row is read."""
        finfo: Callable[[Any], Any] = ml_dtypes.finfo
        masked = np.concatenate([NO_ROWS, *matrix.masked.values()])
        return cls(
            n=matrix.n,
            d=matrix.d,
            options=options,
            tokens=matrix.tokens,
            frequency=matrix.frequency,
            output_width=None if matrix.output is None else matrix.output.d,
            output_absent=explain_no_output(matrix),
            without_output=_find_without_output(matrix, masked),
            final_norm=matrix.final_norm,
            special=matrix.special,
            vocabulary_size=matrix.vocabulary_size,
            tied_as_configured=matrix.tied_as_configured,
            unreachable=matrix.unreachable,
            rounding=float(finfo(matrix.data.dtype).eps),
            masked=matrix.masked,
            n_masked=len(np.unique(masked)),
            groups=group_rows(matrix, masked) if options.row_errors else None,
        )

    def after_sifting(self, rows: RowReader) -> Self:
        """Return the facts after the first pass has sorted the rows."""
        census = rows.census
        return replace(
            self,
            kept=np.flatnonzero(rows.takes_part),
            zero=census.zero,
            nonfinite=census.nonfinite,
            small=census.small,
            small_norms=census.small_norms,
            flat=census.flat,
            nonnegative=census.lowest >= 0.0,
            nonpositive=census.highest <= 0.0,
        )

    def generator(self, purpose: str) -> np.random.Generator:
        """Return the generator of random numbers for one purpose, by the seed of the options."""
        return generator(self.options.seed, purpose)

    @property
    def m(self) -> int:
        """Number of kept rows."""
        return len(self.kept)

    @property
    def kept_groups(self) -> IntArray | None:
        """Group of each kept row; None where there are no errors over tokens."""
        if self.groups is None or self.m < ROWS_PER_DIMENSION * self.d:
            return None
        return self.groups[self.kept]

    @cached_property
    def listed(self) -> IntArray | None:
        """Positions among the kept rows that the result lists; None if it lists all."""
        bound = choose_bound(self.m)
        return None if bound is None else find_listed(self.kept, bound)

    def take_listed(self, values: FloatArray) -> FloatArray:
        """Return the entries of the listed rows, from an array with one entry for each kept row."""
        return values if self.listed is None else values[self.listed]

    @property
    def damaged(self) -> IntArray:
        """Damaged rows, ascending."""
        return np.sort(np.concatenate([self.zero, self.nonfinite, self.small]))

    @property
    def vocabulary(self) -> IntArray:
        """Rows that have a token, ascending: kept and damaged rows."""
        return np.sort(np.concatenate([self.kept, self.damaged]))

    @cached_property
    def _padding(self) -> frozenset[int | None]:
        named = {one.row for one in self.special if "pad" in one.roles}
        if self.tokens is not None:
            return frozenset(named)
        # Row 0 (`padding_idx=0`), row 1 (that of fairseq, RoBERTa and BART) and the tail, where
        # they are zero and no token is known to be there.
        last = np.arange(self.n - len(self.zero), self.n)
        tail = self.zero[np.flatnonzero(np.cumprod((self.zero == last)[::-1])[::-1])]
        counted = self.counts if self.counts is not None else np.zeros(self.n)
        # Where rows between are zero as well, some of them lie at the ends by chance.
        between = np.setdiff1d(self.zero, [0, 1, *tail])
        share = len(between) / max(1, self.n - len(tail) - 2)
        ends = {*tail.tolist()} if share ** len(tail) <= PADDING_CHANCE else set()
        ends |= {0, 1} if share <= PADDING_CHANCE else set()
        idle = {row for row in ends & {*self.zero.tolist()} if not counted[row]}
        return frozenset(named | idle)

    def is_padding(self, row: int) -> bool:
        """Tell whether a zero row is padding: by role or spelling, or its place without tokens."""
        if row in self._padding:
            return True
        return self.tokens is not None and is_padding(self.tokens[row])

    @property
    def pairs(self) -> int:
        """Number of unordered pairs of kept rows."""
        return self.m * (self.m - 1) // 2

    @property
    def is_ranked(self) -> bool:
        """Whether only the order of the frequencies is known."""
        return self.frequency is not None and self.frequency.kind == "rank"

    @property
    def counts(self) -> FloatArray | None:
        """Occurrences of the N tokens; None if they are unknown or only their order is known."""
        if self.frequency is None or self.frequency.kind == "rank":
            return None
        return self.frequency.counts

    def count(self, row: int) -> int | None:
        """Return the number of occurrences of a token; None if unknown."""
        return None if self.counts is None else int(self.counts[row])

    def token(self, row: int) -> str:
        """Return the label of a row, or its number if there are no labels."""
        return f"row {row}" if self.tokens is None else self.tokens[row]

    def identify(self, row: int) -> tuple[int, str, int | None]:
        """Number, token and count of a row: the first three cells of a table of rows."""
        return row, self.token(row), self.count(row)

    def list_rows(self, places: IntArray, *columns: Sequence[Cell]) -> tuple[tuple[Cell, ...], ...]:
        """List lines of a table of some kept rows: `identify`, then further columns."""
        rows = self.kept[places].tolist()
        return tuple(
            (*self.identify(row), *cells) for row, *cells in zip(rows, *columns, strict=True)
        )

    def list_examples(self, rows: IntArray, shown: int = 5) -> str:
        """List the first tokens of these rows, in one text."""
        more = " …" if len(rows) > shown else ""
        return " · ".join(self.token(row) for row in rows[:shown].tolist()) + more


def note_shown(count: int, what: str, shown: int) -> str:
    """Return the note of a table that shows only some of its rows; empty if it shows all."""
    return f"{count:,} {what}, {shown} are shown" if count > shown else ""


def is_padding(token: str) -> bool:
    """Tell whether a token is spelled like padding, whose row a model may set to zero.

    >>> is_padding("<pad>"), is_padding("[PAD]"), is_padding("pads")
    (True, True, False)
    """
    return token.strip("<>[]|_").lower() in ("pad", "padding", "blank")


def explain_no_output(matrix: Matrix) -> str:
    """Explain why there is no output matrix to compare with."""
    if matrix.origin.tied:
        return "the model is tied: input and output share one matrix"
    return "no output matrix found (embgeo analyze --output NAME)"

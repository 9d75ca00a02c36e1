"""What is known of a matrix besides its entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import ml_dtypes
import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.listed_rows import choose_bound, find_listed
from embgeo.core.matrix import FinalNorm, Frequency, Matrix
from embgeo.core.special import SpecialToken
from embgeo.stats.reader import RowReader

NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Facts:
    """Shape, labels and companions of a matrix, and which of its rows are kept.

    Attributes
    ----------
    n, d : int
        Shape of the matrix.
    tokens : sequence of str or None
        One label for each of the N rows.
    frequency : Frequency or None
        How often the tokens occur, or in which order.
    output_width : int or None
        Columns of the output projection, where the model is untied.
    output_absent : str
        Why there is no output projection.
    final_norm : FinalNorm or None
        The model's final LayerNorm.
    special : tuple of SpecialToken
        Tokens that the tokenizer or a chat template names.
    vocabulary_size : int or None
        Tokens of the tokenizer.
    tied_as_configured : bool or None
        Whether the file is tied exactly if the model's configuration says so.
    unreachable : tuple of int, str or None
        Rows of tokens that no text leads to; why they are not known; None where nobody asked.
    rounding : float
        Distance of 1 to the next larger number of the stored type.
    masked : mapping of str to int array
        Rows left out by request, by reason.
    n_masked : int
        Number of rows left out by request.
    zero, nonfinite, small : int array
        Rows left out, ascending: exactly zero, with a non-finite entry, far shorter than all
        others. Known after the first pass, as are the next ones.
    small_norms : float64 array
        Norms of the last.
    flat : int array
        Rows whose entries are nearly equal.
    kept : int array, shape (M,)
        Rows that take part, ascending. Known after the first pass; empty before.
    """

    n: int
    d: int
    tokens: Sequence[str] | None = None
    frequency: Frequency | None = None
    output_width: int | None = None
    output_absent: str = ""
    final_norm: FinalNorm | None = None
    special: tuple[SpecialToken, ...] = ()
    vocabulary_size: int | None = None
    tied_as_configured: bool | None = None
    unreachable: tuple[int, ...] | str | None = None
    rounding: float = 0.0
    masked: Mapping[str, IntArray] = field(default_factory=dict)
    n_masked: int = 0
    zero: IntArray = field(default_factory=lambda: NO_ROWS)
    nonfinite: IntArray = field(default_factory=lambda: NO_ROWS)
    small: IntArray = field(default_factory=lambda: NO_ROWS)
    small_norms: FloatArray = field(default_factory=lambda: np.zeros(0))
    flat: IntArray = field(default_factory=lambda: NO_ROWS)
    kept: IntArray = field(default_factory=lambda: NO_ROWS)

    @classmethod
    def of(cls, matrix: Matrix) -> Self:
        """What is known before any row was read."""
        masked = np.concatenate([NO_ROWS, *matrix.masked.values()])
        return cls(
            n=matrix.n,
            d=matrix.d,
            tokens=matrix.tokens,
            frequency=matrix.frequency,
            output_width=None if matrix.output is None else matrix.output.d,
            output_absent=explain_no_output(matrix),
            final_norm=matrix.final_norm,
            special=matrix.special,
            vocabulary_size=matrix.vocabulary_size,
            tied_as_configured=matrix.tied_as_configured,
            unreachable=matrix.unreachable,
            rounding=find_rounding(matrix),
            masked=matrix.masked,
            n_masked=len(np.unique(masked)),
        )

    def after_sifting(self, rows: RowReader) -> Self:
        """With the rows that the first pass kept and left out."""
        census = rows.census
        return replace(
            self,
            kept=np.flatnonzero(rows.takes_part),
            zero=census.zero,
            nonfinite=census.nonfinite,
            small=census.small,
            small_norms=census.small_norms,
            flat=census.flat,
        )

    @property
    def m(self) -> int:
        """Number of kept rows."""
        return len(self.kept)

    @cached_property
    def listed(self) -> IntArray | None:
        """Places among the kept rows of those that the result lists; None where it lists all."""
        bound = choose_bound(self.m)
        return None if bound is None else find_listed(self.kept, bound)

    def take_listed(self, values: FloatArray) -> FloatArray:
        """Those of the listed rows, of an array with one for each kept row."""
        return values if self.listed is None else values[self.listed]

    @property
    def damaged(self) -> IntArray:
        """Rows of the vocabulary that no statistic sees, ascending."""
        return np.sort(np.concatenate([self.zero, self.nonfinite, self.small]))

    @property
    def vocabulary(self) -> IntArray:
        """Rows that a token belongs to, ascending: kept and damaged ones."""
        return np.sort(np.concatenate([self.kept, self.damaged]))

    @cached_property
    def _padding(self) -> frozenset[int | None]:
        return frozenset(one.row for one in self.special if "pad" in one.roles)

    def is_padding(self, row: int) -> bool:
        """Whether a row is that of a padding token, by its task or by its spelling."""
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
        """Occurrences of the N tokens; None where they are unknown or only their order is known."""
        if self.frequency is None or self.frequency.kind == "rank":
            return None
        return self.frequency.counts

    def count(self, row: int) -> int | None:
        """Occurrences of a token; None where they are unknown."""
        return None if self.counts is None else int(self.counts[row])

    def token(self, row: int) -> str:
        """The label of a row, or its number where there are no labels."""
        return f"row {row}" if self.tokens is None else self.tokens[row]


def is_padding(token: str) -> bool:
    """Whether a token is spelled as padding, whose row a model may set to zero.

    >>> is_padding("<pad>"), is_padding("[PAD]"), is_padding("pads")
    (True, True, False)
    """
    return token.strip("<>[]|_").lower() in ("pad", "padding", "blank")


def find_rounding(matrix: Matrix) -> float:
    """Distance of 1 to the next larger number of the stored type."""
    finfo: Callable[[Any], Any] = ml_dtypes.finfo
    return float(finfo(matrix.data.dtype).eps)


def explain_no_output(matrix: Matrix) -> str:
    """Why there is no output projection to compare with."""
    if matrix.origin.tied:
        return "the model is tied: input and output share one matrix"
    return "no output projection was found next to the embedding; --output NAME names one"

"""What a method of replacement is, and what it may use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.io.labels.vocabulary import TextEncoder
from embgeo.replacement.survey import Length, RowSurvey

#: Rows that an error names at most.
NAMED = 4


@dataclass(frozen=True, slots=True)
class RowSource:
    """What new rows can be made of.

    Attributes
    ----------
    input : RowSurvey
        Of the matrix whose rows are replaced.
    output : RowSurvey or None
        Of the output matrix of an untied model.
    tied : bool
        Whether the model is known to use one matrix on both sides.
    encoder : TextEncoder or None
        The model's own tokenizer.
    tokens : int
        Tokens of the vocabulary.
    seed : int
    """

    input: RowSurvey
    output: RowSurvey | None
    tied: bool
    encoder: TextEncoder | None
    tokens: int
    seed: int

    def healthy_blocks(self) -> Iterator[FloatArray]:
        """The healthy rows in float64, block by block."""
        for index, block in self.input.matrix.blocks():
            yield block[self.input.healthy[index]].astype(np.float64)


@runtime_checkable
class ReplacementMethod(Protocol):
    """A module of this folder.

    Attributes
    ----------
    NAME : str
    LENGTH : {"rms", "median"}
        Which norm of the healthy rows the new rows get.
    SEEDED : bool
        Whether it draws random numbers.
    """

    NAME: str
    LENGTH: Length
    SEEDED: bool

    def compute(self, source: RowSource, rows: IntArray) -> FloatArray:
        """Directions of the new rows, shape (len(rows), d), of any length but 0.

        Raises
        ------
        BadOption
            A row for which the method has no source.
        """
        ...


def refuse_rows(source: RowSource, rows: IntArray, cause: str) -> BadOption:
    """The error for rows that a method cannot make."""
    tokens = source.input.matrix.tokens
    named = [f"{row:,}" if tokens is None else f"{row:,} {tokens[row]!r}" for row in rows[:NAMED]]
    more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    which = f"row{'' if len(rows) == 1 else 's'} {', '.join(named)}{more}"
    return BadOption(
        f"{cause}: {which}",
        where=argument("method"),
        way_out="choose another method, such as mean",
    )

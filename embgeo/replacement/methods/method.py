"""The protocol of replacement methods, and their input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.io.labels.vocabulary import TextEncoder
from embgeo.replacement.survey import Length, RowSurvey

#: Most rows in an error message.
NAMED = 4


@dataclass(frozen=True, slots=True)
class RowSource:
    """The sources of new rows."""

    #: The matrix whose rows are replaced.
    input: RowSurvey
    #: The output matrix of an untied model.
    output: RowSurvey | None
    #: Whether the model is known to be tied.
    tied: bool
    #: The model's own tokenizer.
    encoder: TextEncoder | None
    #: Number of tokens in the vocabulary.
    tokens: int
    seed: int

    def healthy_blocks(self) -> Iterator[FloatArray]:
        """The healthy rows in float64, block by block."""
        for index, block in self.input.matrix.blocks():
            yield block[self.input.healthy[index]].astype(np.float64)


@runtime_checkable
class ReplacementMethod(Protocol):
    """A module of this folder."""

    NAME: str
    #: The norm that new rows get.
    LENGTH: Length
    #: Whether random numbers are drawn.
    SEEDED: bool

    def compute(self, source: RowSource, rows: IntArray) -> FloatArray:
        """Directions of the new rows, shape (len(rows), d), of any norm but 0.

        Raises
        ------
        BadOption
            If the method has no source for a row.
        """
        ...


def refuse_rows(source: RowSource, rows: IntArray, cause: str) -> BadOption:
    """The error for rows that a method cannot make."""
    tokens = source.input.matrix.tokens
    named = [f"{row:,}" if tokens is None else f"{row:,} {tokens[row]!r}" for row in rows[:NAMED]]
    more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    cause = f"{cause}: row{'' if len(rows) == 1 else 's'} {', '.join(named)}{more}"
    way_out = "choose another method, such as mean"
    return BadOption(cause, where=argument("method"), way_out=way_out)

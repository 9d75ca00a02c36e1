"""What a source selects from a checkpoint: tensors and rows. Nothing of them is read here."""

from __future__ import annotations

from dataclasses import dataclass

from embgeo.core.source import Source
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.choosing import EMBEDDING, Choice, TensorRole, choose
from embgeo.io.labels.rows import RowCut, parse_rows


@dataclass(frozen=True, slots=True)
class Selection:
    """The tensors and rows that a matrix is made of.

    Attributes
    ----------
    source : Source
    checkpoint : Checkpoint
    choice : Choice
    cut : RowCut
        The rows among all rows of the embedding matrix.
    d : int
        Columns of the embedding matrix.
    """

    source: Source
    checkpoint: Checkpoint
    choice: Choice
    cut: RowCut
    d: int

    def is_of_other_rows(self, length: int) -> bool:
        """Whether a list in the file belongs to another matrix, or to the columns."""
        if length == self.cut.total or self.checkpoint.path.is_dir():
            return False
        others = (t for t in self.choice.candidates if t != self.choice.input)
        return length == self.d or any(length in t.shape for t in others)


def select(checkpoint: Checkpoint, source: Source, role: TensorRole = EMBEDDING) -> Selection:
    """Choose the tensors and cut the rows."""
    choice = choose(
        checkpoint,
        tensor=source.tensor,
        output=source.output,
        transpose=source.transpose,
        role=role,
    )
    n, d = choice.input.shape[::-1] if choice.input_transposed else choice.input.shape
    return Selection(source, checkpoint, choice, parse_rows(source.rows, n), d)

"""The matrix that a command is about, as the command line says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.cli.corpus_bar import corpus_bar

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix


@dataclass(frozen=True, slots=True)
class MatrixSource:
    """Options about the file, the tensor in it, and what belongs to its rows."""

    path: Path
    tensor: str | None
    output: str | None
    rows: str | None
    transpose: bool
    padding: str
    tokens: Path | None
    counts: Path | None
    corpus: Path | None
    rank_order: bool
    hidden: Path | None
    hidden_tensor: str | None

    def load(self, quiet: bool, **changes: Any) -> Matrix:
        """The matrix; `changes` are to the options of :func:`embgeo.load`.

        Raises
        ------
        EmbgeoError
        """
        import embgeo

        with corpus_bar(quiet) as heard:
            options: dict[str, Any] = {
                "tensor": self.tensor,
                "output": self.output,
                "rows": self.rows,
                "transpose": self.transpose,
                "padding": self.padding,
                "tokens": self.tokens,
                "counts": self.counts,
                "corpus": self.corpus,
                "rank_order": self.rank_order,
                "hidden": self.hidden,
                "hidden_tensor": self.hidden_tensor,
                "progress": heard,
            }
            return embgeo.load(self.path, **(options | changes))

    def labeled(self) -> str:
        """The first option about labels, counts or hidden states that was given; else empty."""
        given = {
            "--tokens": self.tokens,
            "--counts": self.counts,
            "--corpus": self.corpus,
            "--rank-order": self.rank_order,
            "--hidden": self.hidden,
        }
        return next((name for name, value in given.items() if value), "")

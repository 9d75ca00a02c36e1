"""What Python programs use: results with a face, made of whatever holds a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.io.memory import as_matrix
from embgeo.measure import analyze as measuring
from embgeo.result import analysis as result
from embgeo.stats.resources import Resources

if TYPE_CHECKING:
    import pandas as pd


class Analysis(result.Analysis):
    __doc__ = result.Analysis.__doc__

    @classmethod
    def of(cls, plain: result.Analysis) -> Self:
        """The same result with the methods of this class."""
        return cls(**{field.name: getattr(plain, field.name) for field in fields(plain)})

    def save(self, folder: Path | str) -> None:
        """Write everything but the report: ``analysis.json`` and ``arrays.npz``.

        Raises
        ------
        EmbgeoError
            If `folder` cannot be written to.
        """
        super().save(Path(folder))

    def _repr_html_(self) -> str:
        from embgeo.report.notebook import to_html

        return to_html(self)

    def to_pandas(self, *, rows: bool = False) -> pd.DataFrame:
        """Single numbers as a DataFrame, by name; with `rows` what each kept row has, by row.

        Raises
        ------
        EmbgeoError
            If pandas is not installed.
        """
        from embgeo.report.notebook import rows_frame, scalars_frame

        return rows_frame(self) if rows else scalars_frame(self)

    def show(self) -> None:
        """Open the report: in a notebook below the cell, elsewhere in the browser.

        The browser is given a file in a new temporary folder, which stays there.
        """
        from embgeo.report.notebook import show

        show(self)


def analyze(
    W: Any,
    *,
    tokens: Any = None,
    counts: Any = None,
    rank_order: bool = False,
    hidden: Any = None,
    sections: Sequence[str] | None = None,
    options: Options | None = None,
    reference: bool = True,
    command: str = "",
    progress: Progress | None = None,
    resources: Resources | None = None,
) -> Analysis:
    """Measure the geometry of an embedding matrix.

    Parameters
    ----------
    W : Matrix, array, tensor, module, KeyedVectors or DataFrame
        From :func:`embgeo.load`, or a matrix with a row for each token, or what holds one: an
        array of numpy or of any library that numpy understands, a torch tensor, a torch module
        (its input embedding, with its output embedding where that is another one), gensim's word
        vectors (with their tokens and counts), a DataFrame (its index names the tokens).
    tokens : sequence of str, mapping of token to row, or tokenizer, optional
        Labels of the rows. With a mapping or a tokenizer (whatever has ``get_vocab``), rows
        beyond the vocabulary are masked as padding.
    counts : array of N numbers, or mapping of token to count, optional
        How often the tokens occur.
    rank_order : bool
        Rows are sorted by frequency, the most frequent token first; in place of `counts`.
    hidden : array or tensor, optional
        Hidden states of the model, shape (M, d) or (…, d).
    sections : sequence of str, optional
        What to measure (`embgeo.metrics.SECTIONS`); everything by default.
    options : Options, optional
    reference : bool
        Whether to measure isotropic Gaussian rows of the same N, d and norms for comparison.
    command : str
        Recorded in the provenance.
    progress : Progress, optional
    resources : Resources, optional
        Memory and threads. BLAS is held to few threads a call in the whole process while the
        passes run on threads of their own.

    Returns
    -------
    Analysis

    Raises
    ------
    BadOption
        If `W` holds no matrix, or an option does not fit it.
    LabelMismatch
        If tokens or counts do not line up with the rows.
    EmbgeoError
        If no row is left to analyze, or the entries are too large to be squared.
    """
    matrix = as_matrix(W, tokens=tokens, counts=counts, rank_order=rank_order, hidden=hidden)
    return Analysis.of(
        measuring.analyze(
            matrix,
            sections=sections,
            options=options,
            reference=reference,
            command=command,
            progress=progress,
            resources=resources,
        )
    )


def load_analysis(folder: Path | str) -> Analysis:
    """Read a folder that ``embgeo analyze`` or :meth:`Analysis.save` wrote.

    Raises
    ------
    UnreadableFile
        If there is no analysis, or one of a format version that this embgeo does not know.
    """
    return Analysis.of(result.load_analysis(Path(folder)))

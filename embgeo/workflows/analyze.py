"""``embgeo.analyze``, and the analysis that it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from embgeo.core.arguments import as_path, refuse_type
from embgeo.core.errors import BadOption, argument
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options, known_arguments
from embgeo.core.progress import Progress
from embgeo.core.source import Source
from embgeo.io.memory import as_matrix
from embgeo.measure import analyze as measuring
from embgeo.result import analysis as result
from embgeo.stats.resources import Resources
from embgeo.workflows.metrics import Metric, add_metrics, choose_metrics
from embgeo.workflows.settings import (
    check_resources,
    fit_options,
    load_source,
    read_settings,
    refuse_loading,
)

if TYPE_CHECKING:
    import pandas as pd

    from embgeo.workflows.plot import Plots

#: Sections that are not about the output matrix alone.
_OF_BOTH = frozenset({"subspace", "hidden"})
#: Names of the options of measuring.
OPTION_NAMES = frozenset(one.name for one in fields(Options))


class Analysis(result.Analysis):
    __doc__ = result.Analysis.__doc__

    @classmethod
    def of(cls, plain: result.Analysis) -> Self:
        """Return the analysis with the methods of this class."""
        return cls(**{field.name: getattr(plain, field.name) for field in fields(plain)})

    def _repr_html_(self) -> str:
        from embgeo.report.notebook import to_html

        return to_html(self)

    def to_pandas(self, *, rows: bool = False) -> pd.DataFrame:
        """Return the scalars as a DataFrame, by name; with `rows` the columns, by kept row.

        Raises
        ------
        EmbgeoError
            If pandas is not installed.
        """
        from embgeo.report.notebook import rows_frame, scalars_frame

        return rows_frame(self) if rows else scalars_frame(self)

    @property
    def plot(self) -> Plots:
        """One method for each chart: ``analysis.plot.spectrum()``; `dir` lists them."""
        from embgeo.workflows.plot import Plots

        return Plots(self)

    def show(self) -> None:
        """Open the report: in a notebook below the cell, elsewhere in the browser.

        The file for the browser stays in a new temporary folder.
        """
        from embgeo.report.notebook import show

        show(self)


@known_arguments
def analyze(
    W: Any,
    *,
    tokens: Any = None,
    counts: Any = None,
    rank_order: bool = False,
    hidden: Any = None,
    sections: str | Sequence[str] | None = None,
    metrics: str | Metric | Sequence[str | Metric] = (),
    options: Options | None = None,
    reference: bool = True,
    command: str = "",
    progress: Progress | None = None,
    resources: Resources | None = None,
    **settings: Any,
) -> Analysis:
    """Measure the geometry of an embedding matrix.

    Parameters
    ----------
    W : path, Matrix, array, tensor, module, KeyedVectors or DataFrame
        A checkpoint, model folder or vector file, which :func:`embgeo.load` reads; or a matrix
        with a row for each token: an array of numpy or of any library that numpy understands, a
        torch tensor, a torch module (its input embedding and, if untied, its output embedding),
        gensim's word vectors (with tokens and counts), a DataFrame of pandas or polars
        (a column of texts, or the index, has the tokens).
    tokens : path, sequence of str, mapping of token to row, or tokenizer, optional
        Labels of the rows. With a mapping or a tokenizer (an object with ``get_vocab``), rows
        beyond the vocabulary are masked as padding. A tokenizer names the special tokens, too.
    counts : path, array of N numbers, or mapping of token to count, optional
        Number of occurrences of each token.
    rank_order : bool
        Whether rows are sorted by frequency, most frequent first; in place of `counts`.
    hidden : path, array or tensor, optional
        Hidden states of the model, shape (M, d) or (…, d).
    sections : str or sequence of str, optional
        What to measure (`embgeo.metrics.SECTIONS`), such as ``"cosine"``; all by default.
    metrics : functions or names of installed ones, optional
        Numbers of your own: functions that take the :class:`embgeo.Matrix` and return a
        :class:`embgeo.Scalar` (docs/python.md).
    options : Options, optional
        How to measure; in place of fields among `settings`.
    reference : bool
        Whether to measure isotropic Gaussian rows of the same N, d and norms for comparison.
    command : str
        Recorded in the provenance.
    progress : Progress, optional
    resources : Resources, optional
        Memory, threads and device. The passes limit BLAS to few threads in the whole process.
    **settings
        Fields of :class:`embgeo.Options` and, if `W` is a path, further arguments of
        :func:`embgeo.load`: ``embgeo.analyze("model.pt", tensor="wte", seed=1)``.

    Returns
    -------
    Analysis

    Raises
    ------
    BadOption
        If `W` holds no matrix, or an option does not apply to it.
    LabelMismatch
        If tokens or counts do not line up with the rows.
    UnreadableFile, AmbiguousTensor
        If `W` is a path and no matrix can be read from it.
    EmbgeoError
        If no row can be analyzed, or the entries are too large to be squared.

    Examples
    --------
    >>> import embgeo
    >>> import numpy as np
    >>> W = np.random.default_rng(0).standard_normal((50, 4)) + 1
    >>> analysis = embgeo.analyze(W, sections="cosine", reference=False)
    >>> analysis["cosine.mean"]
    <Scalar cosine.mean: 0.5211>
    >>> analysis.verdict.state
    'degenerate'
    """
    source, measuring, chosen = read_settings(settings, sections)
    functions = choose_metrics(metrics)
    check_resources(resources)
    if not isinstance(options, Options | None):
        raise refuse_type(options, "options", "embgeo.Options(seed=1), or seed=1 alone")
    for name in settings.keys() & OPTION_NAMES if options is not None else ():
        cause = f"is in {argument('options')} already"
        raise BadOption(cause, where=argument(name), way_out="give one of them")
    labels = {"tokens": tokens, "counts": counts, "hidden": hidden}
    files: dict[str, Any] = {}
    if is_path(W):
        files = {name: Path(value) for name, value in labels.items() if is_path(value)}
        W = load_source(replace(source, path=W, rank_order=rank_order, **files), progress)
        rank_order = False
    else:
        refuse_loading(source)
    labels = {name: value for name, value in labels.items() if name not in files}
    for name in ("tokens", "counts"):
        if is_path(labels.get(name)):
            raise BadOption(
                f"{labels[name]} is a file, and this is a matrix in memory",
                where=argument(name),
                way_out="give one entry for each row, or the path of the matrix too",
            )
    matrix = as_matrix(W, rank_order=rank_order, **labels)
    measured = measure(
        matrix,
        fit_options(measuring, matrix) if options is None else options,
        sections=chosen,
        reference=reference,
        command=command,
        progress=progress,
        resources=resources,
    )
    return add_metrics(measured, matrix, functions)


def measure(matrix: Matrix, options: Options, **how: Any) -> Analysis:
    """Measure a matrix; `how` are further arguments of :func:`embgeo.measure.analyze`."""
    return Analysis.of(measuring.analyze(matrix, options=options, **how))


def analyze_sides(
    source: Source,
    options: Options,
    *,
    sections: Sequence[str] | None = None,
    metrics: Sequence[Metric] = (),
    progress: Progress | None = None,
    **how: Any,
) -> tuple[Analysis, Analysis | None]:
    """Analyze a matrix in a file and, of an untied model, the output matrix.

    The verdict on the output matrix is in the provenance of the first analysis. `how` are further
    arguments of :func:`measure`.
    """
    matrix = load_source(source, progress)
    own = sections and tuple(name for name in sections if name not in _OF_BOTH)
    sides = [(matrix, sections)]
    if matrix.output is not None and own != ():
        sides.append((matrix.output, own))
    found = [
        measure(side, fit_options(options, side), sections=measured, progress=progress, **how)
        for side, measured in sides
    ]
    found[0] = add_metrics(found[0], matrix, metrics)
    return (found[0], None) if len(found) == 1 else (name_output(*found), found[1])


def name_output(analysis: Analysis, output: Analysis) -> Analysis:
    """Add the verdict on the output matrix to the analysis of the input embedding."""
    verdict = {"state": output.verdict.state, "headline": output.verdict.headline}
    described = {**analysis.provenance["output"], "verdict": verdict}
    # This note says that only the input embedding is judged.
    notes = tuple(note for note in analysis.notes if note.code != "output")
    return replace(analysis, provenance={**analysis.provenance, "output": described}, notes=notes)


def is_path(value: Any) -> bool:
    return isinstance(value, str | PathLike)


def load_analysis(folder: Path | str) -> Analysis:
    """Read a saved analysis from its folder.

    Parameters
    ----------
    folder : Path or str
        A folder that ``embgeo analyze`` or :meth:`Analysis.save` wrote.

    Returns
    -------
    Analysis
        The same values to the last digit; the matrix itself is not saved.

    Raises
    ------
    UnreadableFile
        If there is no analysis, or its format version is not known.

    Examples
    --------
    >>> import embgeo
    >>> embgeo.load_analysis("baseline.embgeo")["cosine.mean"]  # doctest: +SKIP
    <Scalar cosine.mean: 0.4673>
    """
    return Analysis.of(result.load_analysis(as_path(folder, "folder")))

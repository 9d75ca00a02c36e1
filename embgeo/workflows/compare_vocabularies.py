"""Comparing the rows of two models, of which one has tokens that were added to the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from embgeo.comparison.names import distinguish_names
from embgeo.comparison.vocabularies import VocabularyChange, compare_rows
from embgeo.core.arguments import as_path
from embgeo.core.progress import Progress
from embgeo.workflows.folders import default_name
from embgeo.workflows.request import AnalysisRequest


def compare_vocabularies(
    before: Path | str,
    after: Path | str,
    *,
    progress: Progress | None = None,
    **settings: Any,
) -> VocabularyChange:
    """Compare the rows of two models: added, removed, moved, and the shared ones bit by bit.

    Parameters
    ----------
    before, after : Path or str
        What :func:`embgeo.load` takes.
    progress : Progress, optional
    **settings
        Arguments of :func:`embgeo.load`, for both.

    Returns
    -------
    VocabularyChange
        Counts of rows, and for the input embedding and the output matrix the norms of added rows
        with their percentiles among the norms before.

    Raises
    ------
    EmbgeoError
        If a model cannot be read.
    """
    paths = [as_path(before, "before"), as_path(after, "after")]
    requests = [AnalysisRequest.of(path, **settings) for path in paths]
    sources = [replace(one.source, hash_file=False) for one in requests]
    first, second = (
        replace(one, source=source).load(progress)
        for one, source in zip(requests, sources, strict=True)
    )
    one, other = distinguish_names([default_name(path) for path in paths], paths)
    return compare_rows(first, second, (one, other), progress)

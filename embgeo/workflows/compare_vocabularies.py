"""``embgeo.compare_vocabularies``: the rows of a model before and after tokens were added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embgeo.comparison.comparison import distinguish_names
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
    """Find the rows that were added, removed, moved or changed between two models.

    Parameters
    ----------
    before, after : Path or str
        Checkpoints, as :func:`embgeo.load` takes them.
    progress : Progress, optional
    **settings
        Arguments of :func:`embgeo.load` for both.

    Returns
    -------
    VocabularyChange
        Numbers of rows and, for the input embedding and the output matrix, the norms of added rows
        with their percentiles among the earlier norms.

    Raises
    ------
    EmbgeoError
        If a model cannot be read.
    """
    paths = [as_path(before, "before"), as_path(after, "after")]
    requests = [AnalysisRequest.of(path, **settings) for path in paths]
    first, second = (one.load(progress, hash_file=False) for one in requests)
    one, other = distinguish_names([default_name(path) for path in paths], paths)
    return compare_rows(first, second, (one, other), progress)

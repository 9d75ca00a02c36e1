"""Plain arguments, checked and sorted into what to read and how to measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from embgeo.core.arguments import refuse_if, refuse_type
from embgeo.core.errors import BadOption, argument
from embgeo.core.options import Options, choose_sections
from embgeo.core.progress import report_bytes
from embgeo.core.source import Source

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.progress import Progress

#: Options that need token frequencies.
NEED_FREQUENCIES = ("popular_share",)


def read_settings(
    settings: Mapping[str, Any], sections: Any = None, path: Any = ""
) -> tuple[Source, Options, tuple[str, ...] | None]:
    """Return what to read, how to measure and which sections; BadOption for useless names."""
    loading, measuring = (
        {name: value for name, value in settings.items() if name in {f.name for f in fields(of)}}
        for of in (Source, Options)
    )
    chosen = choose_sections(sections)
    if chosen is not None:
        from embgeo.measure.passes import choose_families

        choose_families(chosen)
    options = Options.of(measuring, chosen)
    return Source(path, **loading), options, chosen


def fit_options(options: Options, matrix: Matrix) -> Options:
    """Return the options for a matrix; BadOption if one of them needs frequencies that it lacks."""
    files = f"{argument('counts', 'FILE')}, {argument('corpus', 'FILE')}"
    way_out = f"give {files} or {argument('rank_order')}"
    for name in NEED_FREQUENCIES:
        useless = matrix.frequency is None and getattr(options, name) != getattr(Options(), name)
        refuse_if(useless, argument(name), "needs to know which tokens are frequent", way_out)
    return options.for_tokens(matrix.tokens)


def load_source(
    source: Source, progress: Progress | None = None, *, on_demand: bool = False
) -> Matrix:
    """Load the matrix, and show how much of a corpus is counted."""
    from embgeo.io.load import open_source

    report = report_bytes(progress, "counting the corpus")
    return open_source(source, report, on_demand=on_demand)


def refuse_loading(source: Source) -> None:
    """Raise BadOption if an argument of loading is given for a matrix in memory."""
    for name in source.collect_changes():
        cause = "is about a file, and this is a matrix in memory"
        raise BadOption(cause, where=argument(name), way_out="leave it out")


def check_resources(resources: Any) -> None:
    from embgeo.stats.resources import Resources

    if not isinstance(resources, Resources | None):
        raise refuse_type(resources, "resources", "embgeo.Resources(threads=1)")

"""``embgeo.diff``: saved analyses, and matrices that are measured with the same options.

Beside it the comparison of the rows of two models, before and after tokens were added.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeAlias

from embgeo.comparison.compare import Input, compare
from embgeo.comparison.comparison import COMPARISON_NAME, Comparison, Member, distinguish_names
from embgeo.comparison.matching import By
from embgeo.comparison.overlap import QueryCount
from embgeo.comparison.track import Unmeasured
from embgeo.comparison.vocabularies import VocabularyChange, compare_rows
from embgeo.core.arguments import as_path, as_texts, refuse_if
from embgeo.core.errors import BadOption, EmbgeoError, UnreadableFile, argument
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options, known_arguments
from embgeo.core.progress import Progress
from embgeo.core.settings import parse_value
from embgeo.core.source import Source
from embgeo.io.memory import as_matrix
from embgeo.io.places.names import as_written
from embgeo.result.analysis import Analysis
from embgeo.stats.resources import Resources
from embgeo.training.study.record import STUDY_NAME
from embgeo.workflows.analyze import is_path, load_analysis, measure
from embgeo.workflows.saved_analysis import (
    default_name,
    load_analyzed_matrix,
    result_name,
    saved_folder,
)
from embgeo.workflows.settings import (
    check_resources,
    fit_options,
    load_source,
    read_settings,
    refuse_loading,
)
from embgeo.workflows.track import Checkpoints, fetch_checkpoints, list_checkpoints, measure_kept

#: A matrix, an analysis, or both; and why a saved analysis has no matrix.
Opened: TypeAlias = "tuple[Matrix | None, Analysis | None, str]"


@known_arguments
def diff(
    *inputs: Any,
    names: Sequence[str] | None = None,
    track: bool = False,
    every: int | None = None,
    match: By | None = None,
    queries: int | str | None = None,
    sections: str | Sequence[str] | None = None,
    reference: bool = True,
    command: str = "",
    progress: Progress | None = None,
    resources: Resources | None = None,
    **settings: Any,
) -> Comparison:
    """Compare embedding matrices with the first of them.

    Parameters
    ----------
    *inputs : path, Analysis or whatever holds a matrix
        Two or more, the baseline first: checkpoints, folders of saved analyses, analyses, or
        what :func:`embgeo.analyze` takes. A saved analysis holds no matrix; quantities of two
        matrices need its checkpoint, unchanged.
    names : sequence of str, optional
        A name for each input; the names of their files by default.
    track : bool
        Whether the inputs are checkpoints of one run, given by path. They are ordered by the step
        in their names or in the files. A pattern stands for the files, or for the revisions of a
        model on the Hub (``"hf://org/name@step*"``), that match it. The analyses of its steps are
        kept in embgeo's cache.
    every : int, optional
        Of a track, take every N-th checkpoint from the first, and the last.
    match : {"token", "row"}, optional
        How rows are matched; by token if all inputs have tokens.
    queries : int or "all", optional
        Number of tokens whose neighbors are compared; by default all up to 5,000, else 1,000.
    sections : str or sequence of str, optional
        Sections to measure, and to keep of saved analyses.
    reference : bool
        Whether to measure isotropic rows, too.
    command : str
        Recorded in the provenance.
    progress : Progress, optional
    resources : Resources, optional
    **settings
        Arguments of :func:`embgeo.load` and fields of :class:`embgeo.Options` for all inputs that
        are measured.

    Returns
    -------
    Comparison

    Raises
    ------
    BadOption
        If there are fewer than two inputs, or an option has no effect.
    EmbgeoError
        If an input cannot be read or measured.

    Examples
    --------
    >>> import embgeo
    >>> import numpy as np
    >>> W = np.random.default_rng(0).standard_normal((50, 4))
    >>> made = embgeo.diff(W, W + 1, sections="cosine", reference=False, queries=0)
    >>> made["cosine.mean"]
    <Difference cosine.mean: 0.5315>
    >>> made.pairs[0]["compare.cka"]
    <Scalar compare.cka: 1>
    """
    run = list_run(inputs, track, every)
    source, options, sections = read_settings(settings, sections)
    check_resources(resources)
    match = parse_value(match, By | None, argument("match"))
    parsed = parse_queries(queries)
    taken: list[Any] = [Path(one) if is_path(one) else one for one in inputs]
    names = None if names is None else order_names(as_texts(names, "names"), taken, run)
    taken = taken if run is None else list(run.paths)
    check_inputs(taken)
    check_use(taken, source, options, reference)
    # Everything is opened before anything is measured, so that mistakes are reported at once.
    if run is None:
        opened = [open_input(one, source, sections, progress) for one in taken]
    else:
        opened = open_run(run, source, sections, progress)
    fitted = [
        fit_options(options, matrix) if saved is None and matrix is not None else options
        for matrix, saved, _ in opened
    ]
    of_hub = run is not None and bool(run.commits)
    described = [
        describe_input(one, found[0], of_hub) for one, found in zip(taken, opened, strict=True)
    ]
    if names is None:
        names = distinguish_names([n for n, _ in described], [Path(g) for _, g in described])
    compared: list[Input] = []
    timing = {}
    measured: dict[int, Analysis] = {}
    unmeasured: list[Unmeasured] = []
    for place, (matrix, saved, absent) in enumerate(opened):
        began = time.perf_counter()
        analysis = saved or measured.get(id(matrix))
        step = None if run is None else run.steps.values[place]
        if analysis is None:
            assert matrix is not None
            try:
                analysis = measured[id(matrix)] = measure_kept(
                    matrix,
                    keep=run is not None,
                    source=source,
                    options=fitted[place],
                    sections=sections,
                    reference=reference,
                    resources=resources,
                    command=command,
                    progress=progress,
                )
            except EmbgeoError as error:
                # A run that broke down keeps its other checkpoints.
                if (
                    step is None
                    or isinstance(error, BadOption)
                    or len(opened) < 3 + len(unmeasured)
                ):
                    raise
                unmeasured.append(Unmeasured(step, error.cause))
                continue
        given = described[place][1]
        member = Member(names[place], given, analysis, saved is not None, absent, step)
        compared.append((member, matrix))
        timing[f"analysis of {names[place]}"] = round(time.perf_counter() - began, 4)
    return compare(
        compared,
        match=match,
        queries=parsed,
        seed=options.seed,
        resources=resources,
        steps_source="" if run is None else run.steps.source,
        unmeasured=unmeasured,
        command=command,
        timing=timing,
        progress=progress,
    )


def list_run(inputs: Sequence[Any], track: bool, every: int | None) -> Checkpoints | None:
    """List the checkpoints of a track, given by path; None for other inputs.

    The command lists them before, to name its folder, and gives the list as the input.
    """
    if len(inputs) == 1 and isinstance(inputs[0], Checkpoints):
        return inputs[0]
    alone, way_out = every is not None and not track, f"add {argument('track')}"
    refuse_if(alone, argument("every"), "is about a track", way_out)
    if not track:
        return None
    paths = [Path(one) for one in inputs if is_path(one)]
    where, cause = argument("track"), "takes checkpoints in files"
    refuse_if(len(paths) < len(inputs), where, cause, "name them by their paths")
    return list_checkpoints(paths, every)


def order_names(
    names: Sequence[str], inputs: Sequence[Any], run: Checkpoints | None
) -> Sequence[str]:
    """Return the names of all inputs, in the order of the steps of a track."""
    where, cause = argument("names"), f"{len(names)} for {len(inputs)} inputs"
    refuse_if(len(names) != len(inputs), where, cause, "give one for each")
    refuse_if(len(set(names)) < len(names), where, "are not all different", "rename one")
    if run is None:
        return names
    way_out = "leave them out, or name each file"
    patterns = set(inputs) != set(run.paths)
    refuse_if(patterns, where, "are for files, not for patterns", way_out)
    return [names[inputs.index(path)] for path in run.paths]


def parse_queries(queries: int | str | None) -> QueryCount:
    """Parse the number of queries, which may be a text."""
    if queries is None or queries == "all":
        return queries  # type: ignore[return-value]
    wrong = not (str(queries).isascii() and str(queries).isdigit())
    cause = f"{queries!r} is not a number of tokens"
    refuse_if(wrong, argument("queries"), cause, "give N, 0 for none, or all")
    return int(queries)


def check_inputs(inputs: Sequence[Any]) -> None:
    """Refuse inputs that cannot be compared."""
    if len(inputs) < 2:
        if inputs and isinstance(inputs[0], Path):
            cause, where = "there is nothing to compare it with", as_written(inputs[0])
            raise BadOption(cause, where=where, way_out="name another one")
        raise BadOption("there is nothing to compare", way_out="give two inputs or more")
    paths = [one for one in inputs if isinstance(one, Path)]
    stdin = sum(str(path) == "-" for path in paths)
    refuse_if(stdin > 1, "-", "stdin can be read once", "save one to a file")
    for path in paths:
        for name, cause, one in (
            (COMPARISON_NAME, "a comparison, which holds several analyses", path / "0-…"),
            (STUDY_NAME, "runs of several methods", path / "mle" / "seed-0"),
        ):
            if (path / name).is_file():
                raise UnreadableFile(cause, where=path, way_out=f"name one of them, as in {one}")


def check_use(
    inputs: Sequence[Any],
    source: Source,
    options: Options,
    reference: bool,
) -> None:
    """Refuse options that have no effect."""
    if all(map(is_measured, inputs)):
        default = replace(Options(), seed=options.seed)
        measuring = [
            one.name
            for one in fields(Options)
            if getattr(options, one.name) != getattr(default, one.name)
        ]
        for name in (*source.collect_changes(), *([] if reference else ["reference"]), *measuring):
            raise BadOption(
                "has no effect on saved analyses",
                where=argument(name),
                way_out="analyze the checkpoints with it, and compare those",
            )


def is_measured(one: Any) -> bool:
    """Tell whether an input is an analysis, saved or not."""
    if isinstance(one, Path):
        return saved_folder(one) is not None
    return isinstance(one, Analysis)


def open_run(
    run: Checkpoints, source: Source, sections: Sequence[str] | None, progress: Progress | None
) -> list[Opened]:
    """Open the checkpoints of a run; revisions on the Hub with the same weights are opened once."""
    paths = fetch_checkpoints(run) if run.commits else run.paths
    opened = {path: open_input(path, source, sections, progress) for path in dict.fromkeys(paths)}
    return [opened[path] for path in paths]


def open_input(
    one: Any, source: Source, sections: Sequence[str] | None, progress: Progress | None
) -> Opened:
    """Open the matrix of an input, its analysis, and why one of a saved analysis has no matrix."""
    saved = saved_folder(one) if isinstance(one, Path) else None
    if isinstance(one, Analysis) or saved is not None:
        analysis = one if isinstance(one, Analysis) else load_analysis(saved or one)
        # Only numbers of a file with the SHA-256 of the analysis are shown, none of its content.
        matrix, absent = load_analyzed_matrix(analysis, saved, anywhere=True)
        return matrix, select_sections(analysis, sections), absent
    if isinstance(one, Path):
        return load_source(replace(source, path=one), progress), None, ""
    refuse_loading(source)
    return as_matrix(one), None, ""


def describe_input(one: Any, matrix: Matrix | None, of_hub: bool) -> tuple[str, str]:
    """Write the name of an input, and the input as the user wrote it."""
    if isinstance(one, Path) and (of_hub or is_measured(one)):
        return result_name(one), as_written(one) if of_hub else str(one)
    if isinstance(one, Analysis):
        given = str(one.provenance.get("file") or one.provenance.get("tensor") or "analysis")
        return default_name(Path(given)), given
    assert matrix is not None
    if isinstance(one, Path):
        return default_name(one), matrix.origin.path
    return matrix.name, matrix.origin.path or matrix.name


def select_sections(analysis: Analysis, sections: Sequence[str] | None) -> Analysis:
    if sections is None:
        return analysis
    kinds = ("scalars", "series", "histograms", "points", "columns", "tables")
    absent = {name: reason for name, reason in analysis.absent.items() if name in sections}
    changes: dict[str, Any] = {
        kind: tuple(one for one in getattr(analysis, kind) if one.quantity.family in sections)
        for kind in kinds
    }
    return replace(analysis, absent=absent, **changes)


@known_arguments
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
        Numbers of rows, the norms of added rows of input embedding and output matrix, and the
        suspects among them.

    Raises
    ------
    EmbgeoError
        If a model cannot be read.

    Examples
    --------
    >>> import embgeo
    >>> change = embgeo.compare_vocabularies("fixtures/baseline.pt", "fixtures/baseline.pt")
    >>> change.added, change.input.same
    (0, 5000)
    """
    paths = [as_path(before, "before"), as_path(after, "after")]
    sources = [read_settings({**settings, "hash_file": False}, path=path)[0] for path in paths]
    first, second = (load_source(source, progress) for source in sources)
    one, other = distinguish_names([default_name(path) for path in paths], paths)
    how: dict[str, Any] = {"sections": ("suspects",), "reference": False, "page": False}
    found = measure(second, Options(), progress=progress, **how)
    return compare_rows(first, second, (one, other), found.suspects)

"""Comparing: saved analyses as they are, everything else measured with the same options."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from embgeo.comparison.compare import compare_inputs
from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.matching import By
from embgeo.comparison.names import distinguish_names
from embgeo.comparison.originals import original, saved_folder
from embgeo.comparison.pairs import ComparisonInput, ComparisonOptions
from embgeo.comparison.saved import COMPARISON_NAME
from embgeo.core.arguments import as_texts, refuse_name
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.io.memory import as_matrix
from embgeo.io.remote.names import as_written
from embgeo.metrics import SECTIONS
from embgeo.result.analysis import Analysis
from embgeo.training.study.training import TRAINING_NAME
from embgeo.workflows.analyze import is_path, load_analysis
from embgeo.workflows.folders import default_name, result_name
from embgeo.workflows.request import AnalysisRequest
from embgeo.workflows.track import TrackPlan, measure_kept, plan_track

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.progress import Progress
    from embgeo.stats.resources import Resources

#: Stands for more queries than any matrix has rows.
ALL_QUERIES = 2**62
#: Options that a comparison itself uses, whatever is compared.
OF_COMPARISONS = ("seed",)


def compare(
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
        The baseline first, two at least: checkpoints, folders of saved analyses, analyses, or
        what :func:`embgeo.analyze` takes. A saved analysis holds no matrix: what takes both
        matrices comes from its checkpoint, if that still exists and is the same.
    names : sequence of str, optional
        What to call them, one for each; by their files by default.
    track : bool
        The inputs are checkpoints of one run, by path: order them by step (from their names, else
        from what they hold) and show every number over training. A pattern stands for the files,
        or the revisions of a model on the Hub (``"hf://org/name@step*"``), that match it.
    every : int, optional
        Of a track: take every N-th checkpoint from the first, and the last.
    match : {"token", "row"}, optional
        How rows are matched; by token where all have some.
    queries : int or "all", optional
        Tokens whose neighbors are compared; all up to 5,000, else 1,000; 0: none.
    sections : str or sequence of str, optional
        Only these sections, of saved analyses too.
    reference : bool
        Whether to measure isotropic rows too.
    command : str
        Recorded in the provenance.
    progress : Progress, optional
    resources : Resources, optional
    **settings
        Arguments of :func:`embgeo.load` and fields of :class:`embgeo.Options`; they hold for all
        inputs that are not measured yet.

    Returns
    -------
    Comparison

    Raises
    ------
    BadOption
        If there is nothing to compare with, or an option would do nothing.
    EmbgeoError
        If an input cannot be read or measured.
    """
    request = AnalysisRequest.of(
        sections=sections, reference=reference, resources=resources, **settings
    )
    options = comparison_options(request, match, queries)
    taken = [Path(one) if is_path(one) else one for one in inputs]
    paths = [one for one in taken if isinstance(one, Path)]
    if track and len(paths) < len(taken):
        way_out = "name the checkpoints by their paths"
        raise BadOption("takes checkpoints in files", where=argument("track"), way_out=way_out)
    plan = plan_track(paths, track, every)
    names = None if names is None else as_texts(names, "names")
    if names is not None and len(names) != len(taken):
        cause = f"{len(names)} for {len(taken)} inputs"
        raise BadOption(cause, where=argument("names"), way_out="give one for each")
    if names is not None and len(set(names)) < len(names):
        raise BadOption("are not all different", where=argument("names"), way_out="rename one")
    if plan is not None:
        if names is not None:
            names = name_steps(names, taken, plan)
        taken = list(plan.paths)
    check_inputs(taken, request)
    return run_comparison(taken, request, options, names, plan, command=command, progress=progress)


def name_steps(names: Sequence[str], paths: Sequence[Path], plan: TrackPlan) -> tuple[str, ...]:
    """The names in the order of the steps."""
    if set(paths) != set(plan.paths):
        way_out = "leave them out, or name each file"
        raise BadOption("are for files, not for patterns", where=argument("names"), way_out=way_out)
    return tuple(names[list(paths).index(path)] for path in plan.paths)


def comparison_options(
    request: AnalysisRequest, match: By | None, queries: int | str | None
) -> ComparisonOptions:
    """The options of a comparison."""
    if match not in (None, *get_args(By)):
        raise refuse_name("way to match", match, get_args(By), argument("match"))
    asked = number_of_queries(queries)
    seed = request.options.seed
    if request.resources is None:
        return ComparisonOptions(seed, match, asked)
    return ComparisonOptions(seed, match, asked, request.resources)


def number_of_queries(queries: int | str | None) -> int | None:
    """A number that may be given as text; None where nothing is said."""
    if queries is None:
        return None
    if queries == "all":
        return ALL_QUERIES
    if not (str(queries).isascii() and str(queries).isdigit()):
        raise BadOption(
            f"{queries!r} is not a number of tokens",
            where=argument("queries"),
            way_out="give N, 0 for none, or all",
        )
    return int(queries)


def check_inputs(inputs: Sequence[Any], request: AnalysisRequest) -> None:
    """Refuse what cannot be compared, and options that would do nothing."""
    if len(inputs) < 2:
        where = as_written(inputs[0]) if inputs and isinstance(inputs[0], Path) else None
        raise BadOption(
            "there is nothing to compare it with", where=where, way_out="name another one"
        )
    paths = [one for one in inputs if isinstance(one, Path)]
    if sum(str(path) == "-" for path in paths) > 1:
        raise BadOption("stdin can be read once", where="-", way_out="save one to a file")
    for path in paths:
        refuse_several(path)
    for name in request.sections or ():  # before they cut saved analyses down to nothing
        if name not in SECTIONS:
            raise refuse_name("section", name, SECTIONS, argument("sections"))
    idle = idle_options(request)
    if idle and all(map(is_measured, inputs)):
        raise BadOption(
            "would do nothing: all that is compared are saved analyses",
            where=argument(idle[0]),
            way_out="analyze the checkpoints with it, and compare those",
        )


def refuse_several(path: Path) -> None:
    """Refuse a folder that holds several analyses."""
    if (path / COMPARISON_NAME).is_file():
        raise UnreadableFile(
            "a comparison, which holds several analyses",
            where=path,
            way_out=f"name one of them, as in {path / '0-…'}",
        )
    if (path / TRAINING_NAME).is_file():
        raise UnreadableFile(
            "runs of several methods",
            where=path,
            way_out=f"name two of them, as in {path / 'mle' / 'seed-0'}",
        )


def idle_options(request: AnalysisRequest) -> list[str]:
    """Names of given options that are about matrices which are still to be measured."""
    loading = request.source.collect_changes()
    reference = [] if request.reference else ["reference"]
    measuring = [name for name in request.given if name not in OF_COMPARISONS]
    return [*loading, *reference, *measuring]


def is_measured(one: Any) -> bool:
    """Whether an input is an analysis already."""
    if isinstance(one, Path):
        return saved_folder(one) is not None
    return isinstance(one, Analysis)


@dataclass(frozen=True, slots=True)
class OpenedInput:
    """A matrix, an analysis, or both.

    Attributes
    ----------
    name, given : str
        Short, and as the user wrote it.
    """

    name: str
    given: str
    matrix: Matrix | None
    analysis: Analysis | None = None
    from_saved: bool = False
    matrix_absent: str = ""


def run_comparison(
    inputs: Sequence[Any],
    request: AnalysisRequest,
    options: ComparisonOptions,
    names: Sequence[str] | None = None,
    plan: TrackPlan | None = None,
    *,
    keep: Path | None = None,
    command: str = "",
    progress: Progress | None = None,
) -> Comparison:
    """Compare inputs that were checked, in this order; a track if there is a `plan`.

    `keep`: a folder in which the analyses of a track are kept, and looked for.
    """
    # Everything is opened before anything is measured: a mistake is reported at once.
    opened = open_inputs(inputs, request, plan, progress)
    if names is None:
        names = distinguish_names([one.name for one in opened], [Path(one.given) for one in opened])
    members, timing = [], {}
    measured: dict[int, Analysis] = {}
    for place, (one, name) in enumerate(zip(opened, names, strict=True)):
        began = time.perf_counter()
        analysis = one.analysis or measured.get(id(one.matrix))
        if analysis is None:
            assert one.matrix is not None
            analysis = measure_kept(one.matrix, request, keep, command, progress)
            measured[id(one.matrix)] = analysis
        step = None if plan is None else plan.steps.values[place]
        member = Member(name, one.given, analysis, one.from_saved, one.matrix_absent, step)
        members.append(ComparisonInput(member, one.matrix))
        timing[f"analysis of {name}"] = round(time.perf_counter() - began, 4)
    return compare_inputs(
        members,
        options,
        steps_source="" if plan is None else plan.steps.source,
        command=command,
        timing=timing,
        progress=progress,
    )


def open_inputs(
    inputs: Sequence[Any],
    request: AnalysisRequest,
    plan: TrackPlan | None,
    progress: Progress | None,
) -> list[OpenedInput]:
    """All inputs; checkpoints of the Hub that hold the same weights are opened once."""
    if plan is None or not plan.commits:
        return [open_input(one, request, progress) for one in inputs]
    opened: dict[Path, OpenedInput] = {}
    found = []
    for path, read in zip(plan.paths, plan.fetch(request.source), strict=True):
        if read not in opened:
            opened[read] = open_input(read, request, progress)
        given = as_written(path)
        found.append(replace(opened[read], name=result_name(path), given=given))
    return found


def open_input(one: Any, request: AnalysisRequest, progress: Progress | None) -> OpenedInput:
    """The analysis of an input where there is one, and its matrix where that can be read."""
    if isinstance(one, Path):
        saved = saved_folder(one)
        if saved is None:
            loading = replace(request, source=replace(request.source, path=one))
            matrix = loading.load(progress)
            request.options_for(matrix)  # refuses what does not fit this matrix
            return OpenedInput(default_name(one), matrix.origin.path, matrix)
        return of_analysis(load_analysis(saved), saved, result_name(one), str(one), request)
    if isinstance(one, Analysis):
        given = str(one.provenance.get("file") or one.provenance.get("tensor") or "analysis")
        return of_analysis(one, Path(), default_name(Path(given)), given, request)
    if loading_given := request.source.collect_changes():
        raise BadOption(
            "is about a file, and this is a matrix in memory",
            where=argument(next(iter(loading_given))),
            way_out="leave it out",
        )
    matrix = as_matrix(one)
    request.options_for(matrix)
    given = matrix.origin.path or matrix.name
    return OpenedInput(matrix.name, given, matrix)


def of_analysis(
    analysis: Analysis, folder: Path, name: str, given: str, request: AnalysisRequest
) -> OpenedInput:
    matrix, absent = original(analysis, folder)
    return OpenedInput(name, given, matrix, cut_to(analysis, request.sections), True, absent)


def cut_to(analysis: Analysis, sections: Sequence[str] | None) -> Analysis:
    """Without the sections that were not asked for."""
    if sections is None:
        return analysis

    def keep_listed(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(value for value in values if value.quantity.family in sections)

    kinds = ("scalars", "series", "histograms", "points", "columns", "tables")
    absent = {name: why for name, why in analysis.absent.items() if name in sections}
    changes: dict[str, Any] = {kind: keep_listed(getattr(analysis, kind)) for kind in kinds}
    return replace(analysis, absent=absent, **changes)

"""``embgeo.compare``: saved analyses, and matrices that are measured with the same options."""

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
from embgeo.comparison.overlap import QueryCount
from embgeo.comparison.pairs import ComparisonInput, ComparisonOptions
from embgeo.comparison.saved import COMPARISON_NAME
from embgeo.core.arguments import as_texts, refuse_if, refuse_name
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

#: Options of measuring that a comparison itself uses.
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
        Two or more, the baseline first: checkpoints, folders of saved analyses, analyses, or
        what :func:`embgeo.analyze` takes. A saved analysis holds no matrix; quantities of two
        matrices need its checkpoint, unchanged.
    names : sequence of str, optional
        A name for each input; the names of their files by default.
    track : bool
        Whether the inputs are checkpoints of one run, given by path. They are ordered by the step
        in their names or in the files. A pattern stands for the files, or for the revisions of a
        model on the Hub (``"hf://org/name@step*"``), that match it.
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
        If there are fewer than two inputs, or an option would do nothing.
    EmbgeoError
        If an input cannot be read or measured.
    """
    task = plan_comparison(
        inputs,
        names=names,
        track=track,
        every=every,
        match=match,
        queries=queries,
        sections=sections,
        reference=reference,
        resources=resources,
        **settings,
    )
    return task.run(command=command, progress=progress)


@dataclass(frozen=True, slots=True)
class ComparisonTask:
    """A checked comparison; nothing is read yet."""

    #: Paths, analyses and whatever holds a matrix; the checkpoints of a track by rising step.
    inputs: list[Any]
    request: AnalysisRequest
    options: ComparisonOptions
    #: None: the names of their files.
    names: Sequence[str] | None
    #: None: the inputs are not a track.
    plan: TrackPlan | None

    def run(
        self, *, keep: Path | None = None, command: str = "", progress: Progress | None = None
    ) -> Comparison:
        """Compare; the analyses of a track are kept in the folder `keep`, and read from it."""
        # Everything is opened before anything is measured, so that mistakes are reported at once.
        opened, plan = open_inputs(self.inputs, self.request, self.plan, progress), self.plan
        names = self.names or distinguish_names(
            [one.name for one in opened], [Path(one.given) for one in opened]
        )
        members, timing = [], {}
        measured: dict[int, Analysis] = {}
        for place, (one, name) in enumerate(zip(opened, names, strict=True)):
            began = time.perf_counter()
            analysis = one.analysis or measured.get(id(one.matrix))
            if analysis is None:
                assert one.matrix is not None
                analysis = measure_kept(one.matrix, self.request, keep, command, progress)
                measured[id(one.matrix)] = analysis
            step = None if plan is None else plan.steps.values[place]
            from_saved = one.analysis is not None
            member = Member(name, one.given, analysis, from_saved, one.matrix_absent, step)
            members.append(ComparisonInput(member, one.matrix))
            timing[f"analysis of {name}"] = round(time.perf_counter() - began, 4)
        return compare_inputs(
            members,
            self.options,
            steps_source="" if plan is None else plan.steps.source,
            command=command,
            timing=timing,
            progress=progress,
        )


def plan_comparison(
    inputs: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    track: bool = False,
    every: int | None = None,
    match: By | None = None,
    queries: int | str | None = None,
    **asked: Any,
) -> ComparisonTask:
    """Check the arguments of :func:`compare`; `asked` goes to `AnalysisRequest.of`."""
    request = AnalysisRequest.of(**asked)
    options = comparison_options(request, match, queries)
    taken = [Path(one) if is_path(one) else one for one in inputs]
    paths = [one for one in taken if isinstance(one, Path)]
    in_memory, where = track and len(paths) < len(taken), argument("track")
    refuse_if(in_memory, where, "takes checkpoints in files", "name them by their paths")
    plan = plan_track(paths, track, every)
    names = None if names is None else order_names(as_texts(names, "names"), taken, plan)
    taken = taken if plan is None else list(plan.paths)
    check_inputs(taken, request)
    return ComparisonTask(taken, request, options, names, plan)


def order_names(
    names: Sequence[str], inputs: Sequence[Any], plan: TrackPlan | None
) -> Sequence[str]:
    """The names of all inputs, in the order of the steps of a track."""
    where, cause = argument("names"), f"{len(names)} for {len(inputs)} inputs"
    refuse_if(len(names) != len(inputs), where, cause, "give one for each")
    refuse_if(len(set(names)) < len(names), where, "are not all different", "rename one")
    if plan is None:
        return names
    way_out = "leave them out, or name each file"
    patterns = set(inputs) != set(plan.paths)
    refuse_if(patterns, where, "are for files, not for patterns", way_out)
    return [names[inputs.index(path)] for path in plan.paths]


def comparison_options(
    request: AnalysisRequest, match: By | None, queries: int | str | None
) -> ComparisonOptions:
    """The options of a comparison; the number of queries may be a text."""
    if match not in (None, *get_args(By)):
        raise refuse_name("way to match", match, get_args(By), argument("match"))
    count: QueryCount = None
    if queries == "all":
        count = "all"
    elif queries is not None:
        wrong = not (str(queries).isascii() and str(queries).isdigit())
        cause = f"{queries!r} is not a number of tokens"
        refuse_if(wrong, argument("queries"), cause, "give N, 0 for none, or all")
        count = int(queries)
    resources = {} if request.resources is None else {"resources": request.resources}
    return ComparisonOptions(request.options.seed, match, count, **resources)


def check_inputs(inputs: Sequence[Any], request: AnalysisRequest) -> None:
    """Refuse inputs that cannot be compared, and options that would do nothing."""
    if len(inputs) < 2:
        where = as_written(inputs[0]) if inputs and isinstance(inputs[0], Path) else None
        cause = "there is nothing to compare it with"
        raise BadOption(cause, where=where, way_out="name another one")
    paths = [one for one in inputs if isinstance(one, Path)]
    stdin = sum(str(path) == "-" for path in paths)
    refuse_if(stdin > 1, "-", "stdin can be read once", "save one to a file")
    for path in paths:
        for name, cause, one in (
            (COMPARISON_NAME, "a comparison, which holds several analyses", path / "0-…"),
            (TRAINING_NAME, "runs of several methods", path / "mle" / "seed-0"),
        ):
            if (path / name).is_file():
                raise UnreadableFile(cause, where=path, way_out=f"name one of them, as in {one}")
    for name in request.sections or ():  # sections of saved analyses are not checked later
        if name not in SECTIONS:
            raise refuse_name("section", name, SECTIONS, argument("sections"))
    if all(map(is_measured, inputs)):
        measuring = [name for name in request.given if name not in OF_COMPARISONS]
        reference = () if request.reference else ("reference",)
        for name in (*request.source.collect_changes(), *reference, *measuring):
            raise BadOption(
                "would do nothing: all that is compared are saved analyses",
                where=argument(name),
                way_out="analyze the checkpoints with it, and compare those",
            )


def is_measured(one: Any) -> bool:
    """Whether an input is an analysis, saved or not."""
    if isinstance(one, Path):
        return saved_folder(one) is not None
    return isinstance(one, Analysis)


@dataclass(frozen=True, slots=True)
class OpenedInput:
    """A matrix, an analysis, or both."""

    name: str
    #: As the user wrote it.
    given: str
    matrix: Matrix | None
    analysis: Analysis | None = None
    #: Why there is no matrix.
    matrix_absent: str = ""


def open_inputs(
    inputs: Sequence[Any],
    request: AnalysisRequest,
    plan: TrackPlan | None,
    progress: Progress | None,
) -> list[OpenedInput]:
    """Open all inputs; revisions on the Hub with the same weights are opened once."""
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
    """The analysis of an input, if any, and its matrix, if it can be read."""
    if isinstance(one, Path):
        saved = saved_folder(one)
        if saved is None:
            loading = replace(request, source=replace(request.source, path=one))
            matrix = loading.load(progress)
            request.options_for(matrix)  # refuses options that do not fit this matrix
            return OpenedInput(default_name(one), matrix.origin.path, matrix)
        return reopen(load_analysis(saved), saved, result_name(one), str(one), request)
    if isinstance(one, Analysis):
        given = str(one.provenance.get("file") or one.provenance.get("tensor") or "analysis")
        return reopen(one, Path(), default_name(Path(given)), given, request)
    request.refuse_loading()
    matrix = as_matrix(one)
    request.options_for(matrix)
    given = matrix.origin.path or matrix.name
    return OpenedInput(matrix.name, given, matrix)


def reopen(
    analysis: Analysis, folder: Path, name: str, given: str, request: AnalysisRequest
) -> OpenedInput:
    """An analysis with its original matrix, if that can be read."""
    matrix, absent = original(analysis, folder)
    selected = select_sections(analysis, request.sections)
    return OpenedInput(name, given, matrix, selected, absent)


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

"""Measuring a part of a matrix and saving its state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import BadOption, EmbgeoError, argument, looking_at
from embgeo.core.matrix import Matrix
from embgeo.core.progress import Progress
from embgeo.core.source import FREQUENCIES, Source
from embgeo.workflows.request import AnalysisRequest

if TYPE_CHECKING:
    from embgeo.distributed.part import StatePart

#: Options about labels, counts and hidden states, which the plan records.
LABELED = ("tokens", *FREQUENCIES, "hidden")


@dataclass(frozen=True, slots=True)
class PartRequest:
    """Options of measuring a matrix in parts."""

    #: File for the state.
    save_state: Path | None
    #: Plan of the second round.
    plan: Path | None
    #: ``I/P`` for part I of P equal ones.
    part: str | None
    #: Row number of the file's row 0 in the whole matrix.
    first_row: int | None
    #: Whether a cluster measures all parts.
    dask: bool
    #: Address of the cluster.
    scheduler: str | None

    def check(self, request: AnalysisRequest, device: str, writes_result: bool) -> None:
        """Refuse options that contradict each other or would do nothing."""
        saves, dask = self.save_state is not None, argument("engine", "dask")
        for name in ("plan", "part", "first_row"):
            useless = not saves and getattr(self, name) is not None
            way_out = f"give {argument('save_state', 'FILE')} too"
            refuse_if(useless, argument(name), "is about a part of a matrix", way_out)
        alone = self.scheduler is not None and not self.dask
        refuse_if(alone, argument("scheduler"), "belongs to a cluster", f"add {dask}")
        if saves or self.dask:
            check_distributed(request, device)
        if saves:
            self._check_state(request, writes_result)
        elif self.dask:
            cut = request.source.rows is not None
            refuse_if(cut, argument("rows"), "cannot be cut on a cluster", "leave it out")

    def _check_state(self, request: AnalysisRequest, writes_result: bool) -> None:
        dask, source = argument("engine", "dask"), request.source
        cause, way_out = "a cluster needs no files of states", f"leave it or {dask} out"
        refuse_if(self.dask, argument("save_state"), cause, way_out)
        cause, way_out = "a part gives a state, not a result", "give them to embgeo merge"
        refuse_if(writes_result, "--out or --json", cause, way_out)
        cause, way_out = "the search needs a pass for each step", f"leave it out, or use {dask}"
        refuse_if(bool(request.options.sphere), argument("sphere"), cause, way_out)
        rows = f"{argument('part')} and {argument('rows')}"
        both = self.part is not None and source.rows is not None
        refuse_if(both, rows, "both say which rows", "give one")
        if self.plan is not None:
            named = [name for name in LABELED if name in source.collect_changes()]
            named += [] if request.sections is None else ["sections"]
            for name in (*named, *request.given):
                way_out = "leave it out in the second round"
                raise BadOption("is in the plan already", where=argument(name), way_out=way_out)


def check_distributed(request: AnalysisRequest, device: str) -> None:
    """Refuse options that need the whole matrix."""
    cause = "parts are measured on the processor"
    refuse_if(device != "cpu", argument("device"), cause, "leave it out")
    has_hidden, cause = request.source.hidden is not None, "hidden states are not measured in parts"
    way_out = "measure them by themselves: embgeo analyze FILE --hidden STATES --sections hidden"
    refuse_if(has_hidden, argument("hidden"), cause, way_out)
    for name, everything in (("pairs", None), ("neighbors_of", "all")):
        is_all = getattr(request.options, name) == everything
        way_out = "leave it out: a sample is taken"
        refuse_if(is_all, argument(name, "all"), "needs all rows in one place", way_out)
    refuse_if(str(request.source.path) == "-", "-", "stdin cannot be read twice", "name a file")


def measure_part(
    request: AnalysisRequest, chosen: PartRequest, progress: Progress | None = None
) -> str:
    """Measure a part, in the first round or by a plan, and save its state; return a description."""
    from embgeo.distributed import files, first_round, second_round
    from embgeo.distributed.rounds import read_task
    from embgeo.distributed.states import save_first, save_second

    assert chosen.save_state is not None
    check_state_file(chosen.save_state)
    if chosen.plan is None:
        matrix = request.load(progress, on_demand=True, rows=None, hash_file=False)
        part = find_part(request.source, chosen, matrix)
        state = first_round(
            matrix,
            part,
            sections=request.sections,
            options=request.options,
            reference=request.reference,
            progress=progress,
            resources=request.resources,
        )
        save_first(state, chosen.save_state)
        return f"first round, {part.rows}"
    task = read_task(files.read(chosen.plan, ("plan",)))
    matrix = request.load(on_demand=True, rows=None, hash_file=False, padding="keep")
    part = find_part(request.source, chosen, matrix)
    with files.consistent(chosen.plan):
        second = second_round(task, matrix, part, progress=progress, resources=request.resources)
    save_second(second, chosen.plan, chosen.save_state)
    if len(task.needed) and not task.statistics:
        return f"{len(second.rows.index):,} rows gathered, {part.rows}"
    return f"second round, {part.rows}"


def find_part(source: Source, chosen: PartRequest, matrix: Matrix) -> StatePart:
    """The part that the options choose."""
    from embgeo.distributed import describe_part
    from embgeo.distributed.part import share
    from embgeo.io.labels.rows import parse_rows

    if chosen.part is not None:
        start, stop = share(chosen.part, matrix.n)
    else:
        cut = parse_rows(source.rows, matrix.n)
        start, stop = cut.start, cut.stop
    first_row = chosen.first_row
    total = matrix.n if first_row is None else None
    return describe_part(matrix, start, stop, first_row=first_row or 0, total=total)


def check_state_file(path: Path) -> None:
    """Refuse, before anything is computed, to replace a file that is not a state or plan."""
    from embgeo.distributed import files

    way_out = "choose another file"
    with looking_at(path, way_out):
        try:
            if path.exists() or path.is_symlink():
                files.check_replaceable(path)
                return
        except EmbgeoError as error:
            cause = "exists and is not a state or plan of embgeo"
            raise BadOption(cause, where=path, way_out=way_out) from error
        nowhere = not path.absolute().parent.is_dir()
        refuse_if(nowhere, str(path), f"{path.parent} is not a folder", way_out)

"""An analysis on a dask cluster: from a request to the files that its workers read."""

from __future__ import annotations

import glob
import os
from dataclasses import replace
from pathlib import Path

from embgeo.core.errors import BadOption, argument
from embgeo.core.matrix import Matrix
from embgeo.core.progress import Progress
from embgeo.core.source import Source
from embgeo.distributed.cluster import Cluster, Shard, analyze_on_cluster, count_rows, cut_pieces
from embgeo.distributed.connection import connect, explain_errors
from embgeo.distributed.merging import add_labels, label_plan
from embgeo.distributed.part import fingerprint
from embgeo.distributed.plans import MergePlan
from embgeo.io.remote.places import find_place
from embgeo.result.analysis import Analysis
from embgeo.stats.resources import Resources
from embgeo.workflows.request import AnalysisRequest

#: Signs in a path that stands for several files.
WILDCARDS = frozenset("*?[")


def analyze_in_cluster(
    request: AnalysisRequest,
    scheduler: str | None = None,
    *,
    command: str = "",
    progress: Progress | None = None,
) -> Analysis:
    """Both passes over a file, or over all files that a pattern means, on a dask cluster.

    `scheduler`: address of the cluster; one of its own on this machine by default.
    """
    source, resources = request.source, request.resources or Resources()
    paths = files_of(Path(source.path))
    matrix = request.load(progress, on_demand=True) if len(paths) == 1 else None
    shards = shards_of(paths, source) if matrix is None else [shard_of(matrix, source)]
    masked = None if matrix is None else dict(matrix.masked)

    def described(plan: MergePlan) -> MergePlan:
        return with_file(plan, matrix) if matrix is not None else with_names(plan, source)

    threads = resources.threads or os.cpu_count() or 1
    with connect(scheduler, threads) as client, explain_errors(client.scheduler.address):
        threads = sum(client.nthreads().values()) or threads
        pieces = cut_pieces(shards, threads, resources.memory, masked)
        return analyze_on_cluster(
            Cluster(client, pieces, progress or Progress()),
            sections=request.sections,
            options=request.options if matrix is None else request.options_for(matrix),
            reference=request.reference,
            described=described,
            command=command,
            resources=resources,
        )


def files_of(path: Path) -> list[Path]:
    """The path, or the files that it means as a pattern, in the order of their names."""
    if not WILDCARDS & set(str(path)) or path.exists():
        return [path]
    found = sorted(glob.glob(str(path), recursive=True))
    if not found:
        raise BadOption("there is no such file", where=path, way_out="check the pattern")
    return [Path(name) for name in found]


def shard_of(matrix: Matrix, source: Source) -> Shard:
    """The one file, opened by the workers as it was opened here; labels stay here."""
    opened = Source(
        find_place(source).path.absolute(),
        tensor=matrix.origin.tensor or None,
        output="none" if matrix.output is None else matrix.output.origin.tensor,
        transpose=matrix.origin.transposed,
        padding="keep",
    )
    return Shard(opened, matrix.n, given=str(source.path), fingerprint=fingerprint(matrix.data))


def shards_of(paths: list[Path], source: Source) -> list[Shard]:
    """Several files, one below the other; only their headers are read."""
    shards: list[Shard] = []
    first_row = 0
    for path in paths:
        # Labels are those of the whole, and laid along its rows here.
        opened = replace(source.without_labels(), path=path.absolute())
        rows = count_rows(path, source.tensor, source.transpose)
        shard = Shard(opened, rows, first_row, given=str(path))
        first_row += shard.n
        shards.append(shard)
    return shards


def with_file(plan: MergePlan, matrix: Matrix) -> MergePlan:
    """The plan with what is known of the one file here."""
    plan = add_labels(plan, matrix.tokens, matrix.frequency)
    whole = replace(
        plan.matrix,
        name=matrix.name,
        origin=matrix.origin,
        final_norm=matrix.final_norm,
        special=matrix.special,
        vocabulary_size=matrix.vocabulary_size,
        tied_as_configured=matrix.tied_as_configured,
        unreachable=matrix.unreachable,
    )
    return replace(plan, matrix=whole)


def with_names(plan: MergePlan, source: Source) -> MergePlan:
    """The plan with labels and counts of the whole, where the options give some."""
    if source.corpus is not None:
        raise BadOption(
            "is counted for one file only",
            where=argument("corpus"),
            way_out=f"give {argument('counts', 'FILE')}",
        )
    return label_plan(plan, source)

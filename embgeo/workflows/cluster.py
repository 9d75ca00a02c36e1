"""Analyses on a dask cluster: the files that the workers read."""

from __future__ import annotations

import glob
import os
from dataclasses import replace
from pathlib import Path

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import argument
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


def analyze_in_cluster(
    request: AnalysisRequest,
    scheduler: str | None = None,
    *,
    command: str = "",
    progress: Progress | None = None,
) -> Analysis:
    """Analyze a file, or all files that a pattern matches, on the cluster at this address.

    Without a `scheduler` a local cluster is started.
    """
    source, resources = request.source, request.resources or Resources()
    paths = find_files(Path(source.path))
    matrix = request.load(progress, on_demand=True) if len(paths) == 1 else None
    shards = list_shards(paths, source) if matrix is None else [make_shard(matrix, source)]
    masked = None if matrix is None else dict(matrix.masked)

    def described(plan: MergePlan) -> MergePlan:
        if matrix is not None:
            return describe_file(plan, matrix)
        way_out = f"give {argument('counts', 'FILE')}"
        has_corpus = source.corpus is not None
        refuse_if(has_corpus, argument("corpus"), "is counted for one file only", way_out)
        return label_plan(plan, source)

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


def check_in_cluster(request: AnalysisRequest, device: str) -> None:
    """Refuse options that need the whole matrix in one place."""
    source, options = request.source, request.options
    away, sample = "leave it out", "leave it out: a sample is taken"
    states = "measure them by themselves: embgeo analyze FILE --hidden STATES --sections hidden"
    everywhere = "needs all rows in one place"
    for refused, where, cause, way_out in (
        (device != "cpu", argument("device"), "a cluster measures on the processor", away),
        (source.rows is not None, argument("rows"), "cannot be cut on a cluster", away),
        (source.hidden is not None, argument("hidden"), "not measured on a cluster", states),
        (options.pairs is None, argument("pairs", "all"), everywhere, sample),
        (options.neighbors_of == "all", argument("neighbors_of", "all"), everywhere, sample),
        (str(source.path) == "-", "-", "stdin cannot be read twice", "name a file"),
    ):
        refuse_if(refused, where, cause, way_out)


def find_files(path: Path) -> list[Path]:
    """The path, or the files that it matches as a pattern, by name."""
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    found = sorted(glob.glob(str(path), recursive=True))
    refuse_if(not found, str(path), "there is no such file", "check the pattern")
    return [Path(name) for name in found]


def make_shard(matrix: Matrix, source: Source) -> Shard:
    """A single file, opened by the workers as it was opened here; labels stay here."""
    opened = Source(
        find_place(source).path.absolute(),
        tensor=matrix.origin.tensor or None,
        output="none" if matrix.output is None else matrix.output.origin.tensor,
        transpose=matrix.origin.transposed,
        padding="keep",
    )
    return Shard(opened, matrix.n, given=str(source.path), fingerprint=fingerprint(matrix.data))


def list_shards(paths: list[Path], source: Source) -> list[Shard]:
    """Several files whose rows are stacked; only their headers are read."""
    shards: list[Shard] = []
    first_row = 0
    for path in paths:
        # Labels belong to the whole matrix and stay here.
        opened = replace(source.without_labels(), path=path.absolute())
        rows = count_rows(path, source.tensor, source.transpose)
        shard = Shard(opened, rows, first_row, given=str(path))
        first_row += shard.n
        shards.append(shard)
    return shards


def describe_file(plan: MergePlan, matrix: Matrix) -> MergePlan:
    """Add the labels and facts of a single file to the plan."""
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

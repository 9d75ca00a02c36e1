"""Analyses on a dask cluster: the files that the workers read."""

import glob
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import argument
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.source import NO_TOKENS, Source
from embgeo.distributed.cluster import Cluster, Shard, connect, count_rows, cut_pieces
from embgeo.distributed.passes import fingerprint
from embgeo.distributed.reader import analyze_remotely
from embgeo.files.small_files import safe_text
from embgeo.io.labels.label_file import read_labels
from embgeo.io.labels.matrix_labels import Labeling, count_named
from embgeo.io.labels.rows import RowLabels, lay_given
from embgeo.io.model.rows import RowCut
from embgeo.result.analysis import Analysis
from embgeo.stats.resources import Resources
from embgeo.workflows.fetch import find_files as find_model_files
from embgeo.workflows.settings import fit_options, load_source


def analyze_in_cluster(
    source: Source,
    options: Options,
    scheduler: str | None = None,
    *,
    progress: Progress | None = None,
    resources: Resources | None = None,
    **how: Any,
) -> Analysis:
    """Analyze a file, or all files that a pattern matches, on the cluster at this address.

    Without a `scheduler` a local cluster is started. `how` are further arguments of
    :func:`embgeo.distributed.reader.analyze_remotely`.
    """
    resources = resources or Resources()
    paths = find_files(Path(source.path))
    matrix = load_source(source, progress, on_demand=True) if len(paths) == 1 else None
    shards = list_shards(paths, source) if matrix is None else [make_shard(matrix, source)]
    threads = resources.threads or os.cpu_count() or 1
    with connect(scheduler, threads) as client:
        threads = sum(client.nthreads().values()) or threads
        cluster = Cluster(client, cut_pieces(shards, threads, resources.room))
        if matrix is None:
            matrix = label_whole(cluster.describe(), source)
        return analyze_remotely(
            matrix,
            cluster.parts,
            cluster.run,
            options=fit_options(options, matrix),
            progress=progress,
            resources=resources,
            **how,
        )


def check_in_cluster(source: Source, options: Options, device: str) -> None:
    """Refuse options that need the whole matrix in one place."""
    away, sample = "leave it out", "leave it out: a sample is taken"
    states = "measure them by themselves: embgeo analyze FILE --hidden STATES --sections hidden"
    everywhere, of = "needs all rows in one place", options.neighbors_of
    for refused, where, cause, way_out in (
        (device != "cpu", argument("device"), "a cluster measures on the processor", away),
        (source.rows is not None, argument("rows"), "cannot be cut on a cluster", away),
        (source.hidden is not None, argument("hidden"), "not measured on a cluster", states),
        (options.pairs is None, argument("pairs", "all"), everywhere, sample),
        (of != "sample", argument("neighbors_of", of), everywhere, sample),
        (options.plane != "none", argument("plane", options.plane), everywhere, away),
        (str(source.path) == "-", "-", "stdin cannot be read twice", "name a file"),
    ):
        refuse_if(refused, where, cause, way_out)


def find_files(path: Path) -> list[Path]:
    """Find the path, or the files that it matches as a pattern, by name."""
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    found = sorted(glob.glob(str(path), recursive=True))
    refuse_if(not found, str(path), "there is no such file", "")
    return [Path(name) for name in found]


def make_shard(matrix: Matrix, source: Source) -> Shard:
    """Make a single file, opened by the workers as it was opened here; labels stay here."""
    opened = Source(
        find_model_files(source).path.absolute(),
        tensor=matrix.origin.tensor or None,
        output="none" if matrix.output is None else matrix.output.origin.tensor,
        transpose=matrix.origin.transposed,
        padding="keep",
    )
    return Shard(opened, matrix.n, given=str(source.path), fingerprint=fingerprint(matrix.data))


def list_shards(paths: list[Path], source: Source) -> list[Shard]:
    """List several files whose rows are stacked; only their headers are read."""
    for name, what in (("corpus", "is counted for one file only"), ("output", "is of one file")):
        refuse_if(getattr(source, name) is not None, argument(name), what, "leave it out")
    shards: list[Shard] = []
    first_row = 0
    for path in paths:
        # Labels belong to the whole matrix and stay here.
        opened = replace(
            source.without_labels(),
            path=path.absolute(),
            output="none",
            padding="keep",
            stacked=True,
        )
        rows = count_rows(opened)
        shards.append(Shard(opened, rows, first_row, given=str(path)))
        first_row += rows
    return shards


def label_whole(matrix: Matrix, source: Source) -> Matrix:
    """Add the labels and counts that a source names, one for each row of several files."""
    if str(source.tokens) == NO_TOKENS:
        matrix, source = replace(matrix, tokens=None), replace(source, tokens=None)
    refuse_if(
        source.tokens is not None and matrix.tokens is not None,
        argument("tokens"),
        "the files have their own tokens",
        "leave it out",
    )
    cut = RowCut(matrix.n, 0, matrix.n)
    labels = None if matrix.tokens is None else RowLabels(matrix.tokens)
    if source.tokens is not None:
        given = read_labels(source.tokens).tokens
        labels = lay_given(given, cut, "auto", source.tokens, matrix.d)
        matrix = replace(matrix, tokens=tuple(map(safe_text, labels.tokens)))
    labeling = Labeling(labels)
    labeling = count_named(source, labeling, cut, matrix.d) or labeling
    notes = (*matrix.origin.notes, *labeling.notes)
    return replace(
        matrix,
        frequency=labeling.frequency or matrix.frequency,
        origin=replace(matrix.origin, notes=notes),
    )

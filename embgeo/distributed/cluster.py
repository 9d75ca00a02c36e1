"""Passes over the parts of a matrix as tasks of a dask.distributed cluster.

A task opens its rows on its worker and returns a state; states are merged on the cluster, in the
order of their rows. Tasks depend on their arguments only, so that another worker can repeat the
tasks of a lost one.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import UnreadableFile
from embgeo.core.file_stamp import FileStamp
from embgeo.core.matrix import Matrix
from embgeo.core.source import Source
from embgeo.distributed.connection import WorkerWatch, explain_errors, is_closed, report_lost
from embgeo.distributed.passes import Part, PassState, PassTask, fingerprint, run_pass
from embgeo.distributed.reader import without_entries
from embgeo.distributed.whole import join_parts
from embgeo.io import open_checkpoint
from embgeo.io.bounded.guard import cannot_read
from embgeo.io.choosing import choose
from embgeo.io.loading import open_source
from embgeo.io.rows_on_demand import RowsOnDemand
from embgeo.numerics.blas_threads import limited
from embgeo.stats.resources import DEFAULT_MEMORY, Resources

if TYPE_CHECKING:
    from distributed import Client, Future

#: States that one task merges, and tasks for each thread of the cluster: enough that threads end
#: together, and that a lost worker loses little.
MERGED_AT_ONCE = 8
TASKS_A_THREAD = 4
#: Shorter parts take longer to send than to measure.
LEAST_ROWS = 4096
#: Interval of reports of progress and of checks of the cluster.
LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Shard:
    """A file that every worker can read, and the place of its rows in the whole.

    Attributes
    ----------
    source : Source
        Its absolute path, and how to open it.
    first_row : int
        Number of its row 0 in the whole.
    given : str
        The path as the user wrote it.
    fingerprint : str
        Of its rows (`embgeo.distributed.passes`); empty until a worker has read them.
    """

    source: Source
    n: int
    first_row: int = 0
    given: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a shard for one task of a run."""

    shard: Shard
    start: int
    stop: int
    memory: int = DEFAULT_MEMORY
    run: str = ""

    @property
    def first(self) -> int:
        """Number of its first row in the whole."""
        return self.shard.first_row + self.start

    def count(self, task: PassTask) -> int:
        """Count the rows that the piece reads for a pass."""
        rows = task.left_out if task.reads_all else task.needed
        low, high = np.searchsorted(rows, (self.first, self.first + self.stop - self.start))
        return self.stop - self.start - int(high - low) if task.reads_all else int(high - low)


@dataclass(frozen=True, slots=True)
class OpenedShard:
    """A shard in a worker, with the stamp of its file when it was opened."""

    matrix: Matrix
    stamp: FileStamp
    fingerprint: str


@lru_cache(maxsize=4)
def open_source_once(source: Source, run: str) -> OpenedShard:  # noqa: ARG001
    """The matrix of a shard, opened once in each worker process for each run.

    Workers outlive a run, and the file may have changed by the next.
    """
    stamp = stamp_of(source)
    matrix = open_source(replace(source, hash_file=False), on_demand=True)
    return OpenedShard(matrix, stamp, fingerprint(matrix.data))


def stamp_of(source: Source) -> FileStamp:
    """The present stamp of the file of a source."""
    try:
        return FileStamp.of(source.path)
    except OSError as error:
        raise cannot_read(Path(source.path), error) from error


def open_shard(shard: Shard, run: str) -> Matrix:
    """The matrix of a shard; UnreadableFile if its file is not the one of this run."""
    opened = open_source_once(shard.source, run)
    where = f"{shard.source.path} on {name_worker()}"
    if stamp_of(shard.source) != opened.stamp:
        raise UnreadableFile(
            "the file was changed while it was measured", where=where, way_out="run again"
        )
    if shard.fingerprint and shard.fingerprint != opened.fingerprint:
        raise UnreadableFile(
            "this worker sees another file at that path than the others",
            where=where,
            way_out="give all workers and this machine the same file",
        )
    origin = replace(opened.matrix.origin, path=shard.given or str(shard.source.path))
    return replace(opened.matrix, origin=origin)


def describe_shard(shard: Shard, run: str) -> tuple[str, Matrix]:
    """The fingerprint of a shard on the worker that runs this, and its matrix without entries."""
    return open_source_once(shard.source, run).fingerprint, without_entries(open_shard(shard, run))


def name_worker() -> str:
    """The address of the worker that runs this."""
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return "this machine"


def count_rows(path: Path, tensor: str | None, transpose: bool) -> int:
    """Rows of the embedding matrix in a file, from its header."""
    choice = choose(open_checkpoint(path), tensor=tensor, output="none", transpose=transpose)
    return choice.input.shape[1 if choice.input_transposed else 0]


def pass_task(piece: Piece, task: PassTask) -> PassState:
    """The state of a pass over a piece."""
    matrix = open_shard(piece.shard, piece.run)
    rows, own, output = cast(Any, matrix.data), slice(piece.start, piece.stop), matrix.output
    if isinstance(rows, RowsOnDemand):  # tasks in other threads read other rows
        rows = rows.copy()
    if output is not None:
        output = replace(output, data=output.data[own], tokens=None, frequency=None, masked={})
    data = cast(npt.NDArray[Any], rows[own])
    matrix = replace(matrix, data=data, output=output, tokens=None, special=(), frequency=None)
    with limited(1):
        return run_pass(task, matrix, piece.first, Resources(piece.memory, threads=1))


def merge_task(first: PassState, *others: PassState) -> PassState:
    """The states merged into a new one; dask may use them again."""
    whole = first.blank()
    for state in (first, *others):
        whole.merge(state)
    return whole


def same(task: PassTask) -> PassTask:
    return task


class Cluster:
    """An :class:`~embgeo.distributed.reader.Engine` that runs tasks on a cluster."""

    def __init__(self, client: Client, pieces: Sequence[Piece]) -> None:
        self.client = client
        self.address: str = client.scheduler.address
        run = uuid4().hex
        self.pieces = [replace(piece, run=run) for piece in pieces]

    @property
    def parts(self) -> list[Part]:
        """The rows of the pieces."""
        return [Part(piece.first, piece.first + piece.stop - piece.start) for piece in self.pieces]

    def describe(self) -> Matrix:
        """The whole matrix without its entries, from one worker for each shard.

        All workers have to see the fingerprints of these from then on.
        """
        runs = {piece.shard: piece.run for piece in self.pieces}
        asked = {shard: self._submit(describe_shard, shard, run) for shard, run in runs.items()}
        with explain_errors(self.address):
            found = {shard: future.result() for shard, future in asked.items()}
        known = {shard: replace(shard, fingerprint=found[shard][0]) for shard in found}
        self.pieces = [replace(piece, shard=known[piece.shard]) for piece in self.pieces]
        return join_parts([(shard.first_row, matrix) for shard, (_, matrix) in found.items()])

    def run(self, task: PassTask, advance: Callable[[int], None]) -> PassState:
        """Run a pass; `advance` is called with the rows of each task that has ended."""
        rows = [piece.count(task) for piece in self.pieces]
        chosen = [
            (piece, n) for piece, n in zip(self.pieces, rows, strict=True) if n or task.reads_all
        ]
        with warnings.catch_warnings():
            # Eigenvectors are large; dask sends arguments again after a worker is lost.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            held = self._submit(same, task)
        leaves = level = [self._submit(pass_task, piece, held) for piece, _ in chosen]
        sizes = {leaf.key: n for leaf, (_, n) in zip(leaves, chosen, strict=True)}
        while len(level) > 1:
            groups = [level[i : i + MERGED_AT_ONCE] for i in range(0, len(level), MERGED_AT_ONCE)]
            level = [self._submit(merge_task, *group) for group in groups]
        with explain_errors(self.address):
            return self._fetch(level[0], leaves, sizes, advance)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        if is_closed(self.client):
            raise report_lost(self.address)
        return self.client.submit(function, *arguments, pure=False)

    def _fetch(
        self,
        root: Future,
        leaves: Sequence[Future],
        sizes: dict[str, int],
        advance: Callable[[int], None],
    ) -> PassState:
        """The result of the root task; reports the rows that the leaves have read meanwhile."""
        from distributed import as_completed

        ended = as_completed(leaves, loop=self.client.loop)
        watch = WorkerWatch(self.client, self.address)
        result = asyncio.run_coroutine_threadsafe(
            self.client.gather(root, asynchronous=True), self.client.loop.asyncio_loop
        )
        left = sum(sizes.values())
        try:
            while not result.done():
                wait([result], LOOK_SECONDS)
                while ended.has_ready():
                    rows = sizes[next(ended).key]
                    advance(rows)
                    left -= rows
                if not result.done():
                    watch.check()
        finally:
            if not result.done() and not is_closed(self.client):
                root.cancel()  # ends the gathering properly
        found: PassState = result.result()
        if left:
            advance(left)
        return found


def cut_pieces(shards: Sequence[Shard], threads: int, memory: int = DEFAULT_MEMORY) -> list[Piece]:
    """The rows of all shards, cut into tasks for this many threads."""
    total = sum(shard.n for shard in shards)
    size = max(LEAST_ROWS, -(-total // (threads * TASKS_A_THREAD)))
    pieces = []
    for shard in shards:
        count = -(-shard.n // size)
        edges = [shard.n * i // count for i in range(count + 1)]
        pieces += [Piece(shard, start, stop, memory) for start, stop in pairwise(edges)]
    return pieces

"""Both passes over the parts of a matrix as tasks of a dask.distributed cluster.

A task opens its rows on its worker and returns a state; states are merged on the cluster, in the
order of their rows. Tasks depend on their arguments only, so that another worker can repeat the
tasks of a lost one.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.errors import UnreadableFile
from embgeo.core.file_stamp import FileStamp
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.source import Source
from embgeo.distributed.connection import WorkerWatch, explain_errors, is_closed, report_lost
from embgeo.distributed.engine import analyze_through
from embgeo.distributed.part import StatePart, fingerprint
from embgeo.distributed.rounds import SecondPassTask, describe_part, first_round, second_round
from embgeo.distributed.states import FirstState, SecondState
from embgeo.io import open_checkpoint
from embgeo.io.bounded.guard import cannot_read
from embgeo.io.choosing import choose
from embgeo.io.loading import open_source
from embgeo.io.rows_on_demand import RowsOnDemand
from embgeo.numerics.blas_threads import limited
from embgeo.result.analysis import Analysis
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

State = TypeVar("State", FirstState, SecondState)


@dataclass(frozen=True, slots=True)
class Shard:
    """A file that every worker can read, and the place of its rows in the whole."""

    #: Its absolute path, and how to open it.
    source: Source
    n: int
    #: Number of its row 0 in the whole.
    first_row: int = 0
    #: The path as the user wrote it.
    given: str = ""
    #: Of its rows (see `embgeo.distributed.part`); empty until a worker has read them.
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a shard for one task of a run; `masked`, if given, replaces the shard's labels."""

    shard: Shard
    start: int
    stop: int
    memory: int = DEFAULT_MEMORY
    masked: tuple[tuple[str, IntArray], ...] | None = None
    run: str = ""


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


def fingerprint_shard(shard: Shard, run: str) -> str:
    """The fingerprint of a shard on the worker that runs this."""
    return open_source_once(shard.source, run).fingerprint


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


def open_piece(piece: Piece) -> tuple[Matrix, StatePart]:
    matrix = open_shard(piece.shard, piece.run)
    rows: Any = matrix.data
    if isinstance(rows, RowsOnDemand):  # tasks in other threads read other rows
        matrix = replace(matrix, data=cast(npt.NDArray[Any], rows.copy()))
    if piece.masked is not None:
        own = dict(piece.masked)
        matrix = replace(matrix, tokens=None, frequency=None, special=(), masked=own)
    first_row = piece.shard.first_row
    # With a hash of the rows, so that the second pass can check that they are the same.
    return matrix, describe_part(matrix, piece.start, piece.stop, first_row=first_row)


def first_task(
    piece: Piece, sections: tuple[str, ...] | None, options: Options, reference: bool
) -> FirstState:
    matrix, part = open_piece(piece)
    with limited(1):
        return first_round(
            matrix,
            part,
            sections=sections,
            options=options,
            reference=reference,
            resources=Resources(piece.memory, threads=1),
        )


def second_task(piece: Piece, task: SecondPassTask) -> SecondState:
    matrix, part = open_piece(piece)
    with limited(1):
        return second_round(task, matrix, part, resources=Resources(piece.memory, threads=1))


def merge_task(first: State, *others: State) -> State:
    """The states merged into a new one; dask may use them again."""
    whole = first.blank()
    whole.merge(first)
    for state in others:
        whole.merge(state)
    return whole


def same(task: SecondPassTask) -> SecondPassTask:
    return task


@dataclass
class Cluster:
    """An :class:`Engine` that runs tasks on a cluster and merges their states."""

    client: Client
    pieces: Sequence[Piece]
    progress: Progress
    address: str = field(init=False)

    def __post_init__(self) -> None:
        self.address = self.client.scheduler.address
        run = uuid4().hex
        self.pieces = [replace(piece, run=run) for piece in self.pieces]

    def identify_shards(self) -> None:
        """Take the fingerprint of each shard that has none from one worker; all have to agree."""
        unknown = {p.shard: p.run for p in self.pieces if not p.shard.fingerprint}
        asked = {s: self._submit(fingerprint_shard, s, run) for s, run in unknown.items()}
        with explain_errors(self.address):
            known = {s: replace(s, fingerprint=future.result()) for s, future in asked.items()}
        self.pieces = [replace(p, shard=known.get(p.shard, p.shard)) for p in self.pieces]

    def first(
        self, sections: tuple[str, ...] | None, options: Options, reference: bool
    ) -> FirstState:
        chosen = (sections, options, reference)
        found: FirstState = self._merged(
            "first pass", self.pieces, lambda piece: self._submit(first_task, piece, *chosen)
        )
        return found

    def second(self, task: SecondPassTask) -> SecondState:
        every = bool(task.statistics)
        pieces = [piece for piece in self.pieces if every or holds(piece, task.needed)]
        if not pieces:
            return SecondState(task.plan, [], [])
        with warnings.catch_warnings():
            # Eigenvectors are large; dask sends arguments again after a worker is lost.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            held = self._submit(same, task)
        found: SecondState = self._merged(
            "second pass" if every else "single rows",
            pieces,
            lambda piece: self._submit(second_task, piece, held),
        )
        return found

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        if is_closed(self.client):
            raise report_lost(self.address)
        return self.client.submit(function, *arguments, pure=False)

    def _merged(self, what: str, pieces: Sequence[Piece], submit: Callable[[Piece], Future]) -> Any:
        """The merged state of a task for each piece."""
        self.progress.start(what, sum(piece.stop - piece.start for piece in pieces))
        leaves = level = [submit(piece) for piece in pieces]
        sizes = {leaf.key: p.stop - p.start for leaf, p in zip(leaves, pieces, strict=True)}
        while len(level) > 1:
            groups = [level[i : i + MERGED_AT_ONCE] for i in range(0, len(level), MERGED_AT_ONCE)]
            level = [self._submit(merge_task, *group) for group in groups]
        with explain_errors(self.address):
            return self._fetched(level[0], leaves, sizes)

    def _fetched(self, root: Future, leaves: Sequence[Future], sizes: dict[str, int]) -> Any:
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
                    self.progress.advance(rows)
                    left -= rows
                if not result.done():
                    watch.look()
        finally:
            if not result.done() and not is_closed(self.client):
                root.cancel()  # ends the gathering properly
        found = result.result()
        if left:
            self.progress.advance(left)
        return found


def holds(piece: Piece, rows: IntArray) -> bool:
    first = piece.shard.first_row
    low, high = np.searchsorted(rows, (first + piece.start, first + piece.stop))
    return bool(low < high)


def cut_pieces(
    shards: Sequence[Shard],
    threads: int,
    memory: int = DEFAULT_MEMORY,
    masked: dict[str, IntArray] | None = None,
) -> list[Piece]:
    """The rows of all shards, cut into tasks for this many threads."""
    total = sum(shard.n for shard in shards)
    size = max(LEAST_ROWS, -(-total // (threads * TASKS_A_THREAD)))
    pieces = []
    for shard in shards:
        count = -(-shard.n // size)
        edges = [shard.n * i // count for i in range(count + 1)]
        for start, stop in pairwise(edges):
            own = None if masked is None else tuple(masked.items())
            pieces.append(Piece(shard, start, stop, memory, own))
    return pieces


def analyze_on_cluster(cluster: Cluster, **arguments: Any) -> Analysis:
    """Measure a matrix with both passes on a cluster; `arguments` as for `analyze_through`."""
    cluster.identify_shards()
    return analyze_through(cluster, **arguments)

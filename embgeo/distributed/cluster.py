"""Passes over the parts of a matrix as tasks of a dask.distributed cluster.

A task opens its rows on its worker and returns a state; states are merged on the cluster, in the
order of their rows. Tasks depend on their arguments only, so that another worker can repeat the
tasks of a lost one.
"""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from socket import gethostname
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import EmbgeoError, UnreadableFile, argument
from embgeo.core.matrix import Matrix
from embgeo.core.source import Source
from embgeo.distributed.passes import Part, PassState, PassTask, fingerprint, run_pass
from embgeo.distributed.reader import join_parts, without_entries
from embgeo.io.load import open_place, open_source
from embgeo.io.model.choice import choose
from embgeo.io.model.rows import RowsOnDemand
from embgeo.io.places.finding import find_place
from embgeo.stats.resources import DEFAULT_MEMORY, Resources, limited

if TYPE_CHECKING:
    from distributed import Client, Future

#: States that one task merges, and tasks for each thread of the cluster: enough that threads end
#: together, and that a lost worker loses little.
MERGED_AT_ONCE = 8
TASKS_A_THREAD = 4
#: Shorter parts take longer to send than to measure.
LEAST_ROWS = 4096
CONNECT_SECONDS = 20
#: How long a cluster may have no workers; those started on demand take a while.
WORKER_SECONDS = 120.0
#: How often the workers are counted while nothing ends.
LOOK_SECONDS = 5.0
LOOPBACK = "127.0.0.1:0"


@contextmanager
def connect(scheduler: str | None, threads: int) -> Iterator[Client]:
    """Connect to the cluster at an address, by default to a new one on this machine.

    Errors of dask inside the block become errors with a way out.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise EmbgeoError(
            "needs dask.distributed",
            where=argument("engine", "dask"),
            way_out="pip install 'embgeo[dask]'",
        ) from error
    if scheduler is not None:
        with open_client(scheduler) as client, explain_errors(scheduler):
            yield client
        return
    # In this process, because a scheduler on a port runs the tasks of anyone who connects to it.
    # The dashboards cannot be turned off, but the loopback address hides them from others.
    local = LocalCluster(
        n_workers=1,
        threads_per_worker=threads,
        processes=False,
        dashboard_address=LOOPBACK,
        worker_dashboard_address=LOOPBACK,
        silence_logs=50,
    )
    with local, Client(local) as client, explain_errors(local.scheduler_address):
        yield client


def open_client(scheduler: str) -> Client:
    """Open a client of the scheduler at an address, which has workers."""
    from distributed import Client, Security
    from distributed.comm import connect

    async def shake_hands() -> None:
        # A client would wait forever for a server that accepts a connection and never answers.
        keys = Security().get_connection_args("client")
        connecting = connect(scheduler, timeout=CONNECT_SECONDS, **keys)
        comm = await asyncio.wait_for(connecting, CONNECT_SECONDS)
        await comm.close()

    # Its log of a lost scheduler: an error says so.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL + 1)
    try:
        asyncio.run(shake_hands())
        client = Client(scheduler, timeout=CONNECT_SECONDS)
    except Exception as error:  # another kind of server may cause any error
        raise EmbgeoError(
            f"no scheduler answers at {scheduler}",
            where=argument("scheduler"),
            way_out="give the address that dask scheduler prints, as in tcp://10.0.0.1:8786",
        ) from error
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError as error:
        client.close()
        raise refuse_idle(scheduler) from error
    return client


def refuse_idle(scheduler: str) -> EmbgeoError:
    return EmbgeoError(
        "the cluster has no workers",
        where=f"{argument('scheduler')} {scheduler}",
        way_out=f"start `dask worker {scheduler}` where embgeo is installed",
    )


@contextmanager
def explain_errors(address: str) -> Iterator[None]:
    """Turn errors of dask into errors with a way out."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError

    lost = (futures.CancelledError, asyncio.CancelledError, FutureCancelledError, CommClosedError)
    try:
        yield
    except KilledWorker as error:
        raise EmbgeoError(
            f"{error.allowed_failures + 1} workers were lost over the same rows",
            where=argument("engine", "dask"),
            way_out="give the workers more memory, or less to the passes with "
            f"{argument('memory')}",
        ) from error
    except lost as error:
        cause = f"the scheduler at {address} was lost"
        raise EmbgeoError(cause, way_out="start it and run again") from error


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
    #: Of its rows (`embgeo.distributed.passes`); empty until a worker has read them.
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


@lru_cache(maxsize=4)
def open_source_once(source: Source, run: str) -> tuple[Matrix, str]:  # noqa: ARG001
    """Open the matrix of a shard and its fingerprint, once in each worker process for each run.

    Workers outlive a run, and the file may have changed by the next.
    """
    matrix = open_source(replace(source, hash_file=False), on_demand=True)
    return matrix, fingerprint(matrix.data)


def open_shard(shard: Shard, run: str) -> Matrix:
    """Open the matrix of a shard; UnreadableFile if its file is not the one of this run."""
    matrix, found = open_source_once(shard.source, run)
    matrix.origin.check_files()
    if shard.fingerprint and shard.fingerprint != found:
        raise UnreadableFile(
            "this worker sees another file at that path than the others",
            where=f"{shard.source.path} on {gethostname()}",
            way_out="give all workers and this machine the same file",
        )
    origin = replace(matrix.origin, path=shard.given or str(shard.source.path))
    return replace(matrix, origin=origin)


def describe_shard(shard: Shard, run: str) -> tuple[str, Matrix]:
    """Describe a shard on the worker that runs this: fingerprint, and matrix without entries."""
    return open_source_once(shard.source, run)[1], without_entries(open_shard(shard, run))


def count_rows(source: Source) -> int:
    """Count rows of the embedding matrix in a file, from its header."""
    checkpoint = open_place(find_place(source.path), source)
    choice = choose(checkpoint, tensor=source.tensor, output="none", transpose=source.transpose)
    return choice.input.shape[1 if choice.input_transposed else 0]


def pass_task(piece: Piece, task: PassTask) -> PassState:
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
    """Return the states merged into a new one; dask may use them again."""
    whole = first.blank()
    for state in (first, *others):
        whole.merge(state)
    return whole


def same(task: PassTask) -> PassTask:
    return task


class Cluster:
    """Runs passes over pieces of shards as tasks on a cluster."""

    def __init__(self, client: Client, pieces: Sequence[Piece]) -> None:
        self.client = client
        run = uuid4().hex
        self.pieces = [replace(piece, run=run) for piece in pieces]

    @property
    def parts(self) -> list[Part]:
        """The rows of the pieces."""
        return [Part(piece.first, piece.first + piece.stop - piece.start) for piece in self.pieces]

    def describe(self) -> Matrix:
        """Return the whole matrix without its entries, from one worker for each shard.

        All workers have to see the fingerprints of these from then on.
        """
        runs = {piece.shard: piece.run for piece in self.pieces}
        asked = {shard: self._submit(describe_shard, shard, run) for shard, run in runs.items()}
        for _ in self._wait(asked.values()):
            pass
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
        for ended in self._wait([*leaves, level[0]]):
            advance(sizes.get(ended.key, 0))
        found: PassState = level[0].result()
        return found

    def _wait(self, asked: Iterable[Future]) -> Iterator[Future]:
        """Yield futures as they end; EmbgeoError if the last workers have gone, which dask awaits.

        Without workers, its own functions wait forever.
        """
        from distributed import wait

        left, idle_since = {*asked}, None
        while left:
            try:
                done, left = wait(left, timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED")
            except TimeoutError:
                now = time.monotonic()
                idle_since = None if self.client.scheduler_info()["workers"] else idle_since or now
                if idle_since is not None and now - idle_since >= WORKER_SECONDS:
                    raise refuse_idle(self.client.scheduler.address) from None
                continue
            idle_since = None
            yield from done

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        return self.client.submit(function, *arguments, pure=False)


def cut_pieces(shards: Sequence[Shard], threads: int, memory: int = DEFAULT_MEMORY) -> list[Piece]:
    """Return the rows of all shards, cut into tasks for this many threads."""
    total = sum(shard.n for shard in shards)
    size = max(LEAST_ROWS, -(-total // (threads * TASKS_A_THREAD)))
    pieces = []
    for shard in shards:
        count = -(-shard.n // size)
        edges = [shard.n * i // count for i in range(count + 1)]
        pieces += [Piece(shard, start, stop, memory) for start, stop in pairwise(edges)]
    return pieces

"""The connection to a dask scheduler, with time limits.

dask itself waits forever for workers, and for a server that accepts a connection but never answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from embgeo.core.errors import EmbgeoError, argument

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 20
LOOPBACK = "127.0.0.1:0"
#: How long a busy cluster may have no workers; workers started on demand take a while.
WORKER_SECONDS = 120.0


@contextmanager
def connect(scheduler: str | None, threads: int) -> Iterator[Client]:
    """A client of the cluster at an address, by default of a new one on this machine."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise EmbgeoError(
            "needs dask.distributed",
            where=argument("engine", "dask"),
            way_out="pip install 'embgeo[dask]'",
        ) from error
    if scheduler is not None:
        with quiet(), open_client(scheduler) as client:
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
    with local, Client(local) as client:
        yield client


def open_client(scheduler: str) -> Client:
    """A client of the scheduler at an address."""
    from distributed import Client

    try:
        asyncio.run(shake_hands(scheduler))
        return Client(scheduler, timeout=CONNECT_SECONDS)
    except Exception as error:  # another kind of server may cause any error
        raise EmbgeoError(
            f"no scheduler answers at {scheduler}",
            where=argument("scheduler"),
            way_out="give the address that dask scheduler prints, as in tcp://10.0.0.1:8786",
        ) from error


async def shake_hands(address: str) -> None:
    """Connect and disconnect; a client would wait forever for a server that never answers."""
    from distributed import Security
    from distributed.comm import connect

    keys = Security().get_connection_args("client")
    connecting = connect(address, timeout=CONNECT_SECONDS, **keys)
    comm = await asyncio.wait_for(connecting, CONNECT_SECONDS)
    await comm.close()


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the client's log of a lost scheduler, which an error reports in one line."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


@dataclass
class WorkerWatch:
    """Checks during a wait for a result that the cluster has workers."""

    client: Client
    #: Address of the scheduler.
    address: str
    seen: float = field(init=False)
    asked: float = field(init=False)

    def __post_init__(self) -> None:
        self.seen = self.asked = monotonic()

    def check(self) -> None:
        """Check from time to time; EmbgeoError if scheduler or workers have been lost too long."""
        if is_closed(self.client):
            raise report_lost(self.address)
        now = monotonic()
        if now - self.asked < WORKER_SECONDS / 10 or self.client.status != "running":
            return
        self.asked = now
        try:
            workers = self.client.nthreads()
        except OSError as error:
            raise report_lost(self.address) from error
        if workers:
            self.seen = now
        elif now - self.seen > WORKER_SECONDS:
            raise report_no_worker(self.client, self.address)


def is_closed(client: Client) -> bool:
    return client.status in ("closing", "closed")


def report_lost(address: str) -> EmbgeoError:
    return EmbgeoError(f"the scheduler at {address} was lost", way_out="start it and run again")


def report_no_worker(client: Client, address: str) -> EmbgeoError:
    if client.cluster is not None:
        return EmbgeoError(
            "the cluster has no workers left",
            where=argument("engine", "dask"),
            way_out=f"give less to the passes with {argument('memory')}, or leave "
            f"{argument('engine', 'dask')} out",
        )
    return EmbgeoError(
        "the cluster has no workers",
        where=f"{argument('scheduler')} {address}",
        way_out=f"start `dask worker {address}` where embgeo is installed",
    )


@contextmanager
def explain_errors(address: str) -> Iterator[None]:
    """Turn errors of dask during a wait for a result into errors with a way out."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise EmbgeoError(
            f"{error.allowed_failures + 1} workers were lost over the same rows",
            where=argument("engine", "dask"),
            way_out="give the workers more memory, or less to the passes with "
            f"{argument('memory')}",
        ) from error
    except (futures.CancelledError, asyncio.CancelledError, CommClosedError) as error:
        raise report_lost(address) from error
    except RuntimeError as error:
        if "deserialization of the task graph" not in str(error):
            raise
        raise EmbgeoError(
            "the scheduler cannot read the tasks",
            where=f"{argument('scheduler')} {address}",
            way_out="install the same embgeo where `dask scheduler` and its workers run",
        ) from error

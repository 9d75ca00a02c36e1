"""Distribution of a pass: workers, threads (those of BLAS, too), rows per block, memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Event, Lock
from typing import Any, ParamSpec, TypeVar

import numpy as np

from embgeo.core.arguments import parse_size
from embgeo.core.settings import Positive, parse_fields
from embgeo.stats.block import Block
from embgeo.stats.moments import are_few
from embgeo.stats.statistic import Statistic, fold, merge_all

P = ParamSpec("P")
T = TypeVar("T")

#: What a pass may take by default: blocks and statistics, not the file, which is mapped.
DEFAULT_MEMORY = 640 * 2**20
#: Longer blocks make the update of a d×d sum no cheaper; smaller matrices are cut in several.
MOST_ROWS = 2048
LEAST_ROWS = 64
#: Up to this many columns d×d sums fit in the cache, and so should a block of this many entries.
NARROW = 1024
NARROW_ENTRIES = 2**19
#: From here on sums in float32 are moved into float64 on the way.
MANY_ROWS = 2**18
#: Bytes for each entry of d×d while it is decomposed: five matrices in float64.
SQUARE_BYTES = 40
#: Copies of a block that statistics hold at one time, in float64.
COPIES = 4


@dataclass(frozen=True, slots=True)
class Resources:
    """Memory, threads and device of an analysis.

    Attributes
    ----------
    memory : int or None
        Bytes that the passes may use in addition to the mapped file, also as a text such as
        ``"2GB"``; a matrix that needs more is refused. None means 640 MiB, or more for a matrix
        that needs it.
    threads : int or None
        None means as many as BLAS uses, which honors OMP_NUM_THREADS and similar variables.
    device : str
        Where the passes run: "cpu" (numpy), "cuda", "cuda:1", "mps", or "auto" for one of the
        latter where there is one.

    Examples
    --------
    >>> Resources(memory="2GB", threads=4)
    Resources(memory=2000000000, threads=4, device='cpu')
    """

    memory: Positive | None = None
    threads: Positive | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        memory: Any = self.memory
        if isinstance(memory, str):
            object.__setattr__(self, "memory", parse_size(memory, "memory"))
        parse_fields(self)

    @property
    def room(self) -> int:
        """Bytes that passes are planned for."""
        return DEFAULT_MEMORY if self.memory is None else self.memory

    def explain_refusal(self, n: int, d: int) -> str:
        """Explain why a matrix of n rows and d columns does not fit into memory.

        Empty if it may.
        """
        need = SQUARE_BYTES * (n if are_few(n, d) else d) * d
        if self.memory is None or need <= self.memory:
            return ""
        of = "rows × columns" if are_few(n, d) else "columns × columns"
        return (
            f"matrices of {of} take {need / 1e6:,.0f} MB at {n:,} × {d:,}, more than the "
            f"{self.memory / 1e6:,.0f} MB that are allowed"
        )

    def plan(self, n: int, d: int) -> PassPlan:
        """Choose workers and block size for n rows and d columns."""
        threads = self.threads or blas_threads()
        # In the first pass each worker keeps sums of d×d, of rows in float64 and in float32 and of
        # unit rows in float32 (of very many rows also in float64); in the second all share the
        # eigenvectors of two matrices, in both precisions.
        # Of few rows these are matrices of n×d.
        square = n * d if are_few(n, d) else d * d
        own, shared = (16 if n < MANY_ROWS else 24) * square, 24 * square
        row = COPIES * 8 * d
        workers = max(1, min(threads, self.room // (own + row * LEAST_ROWS)))
        left = (self.room - max(workers * own, shared)) // workers
        most = MOST_ROWS if d > NARROW else min(MOST_ROWS, NARROW_ENTRIES // d)
        rows = max(LEAST_ROWS, min(most, left // row))
        workers = max(1, min(workers, -(-n // rows)))
        # All workers end together: blocks of one size, the same number for each.
        rounds = -(-n // (rows * workers))
        return PassPlan(workers, -(-n // (rounds * workers)), max(1, threads // workers))


@dataclass(frozen=True, slots=True)
class PassPlan:
    """Workers, rows in a block, and threads that each worker's products use."""

    workers: int
    block_rows: int
    threads: int

    def parts(self, n: int) -> list[tuple[int, int]]:
        """Return the ranges of rows of the workers: adjacent, of whole blocks."""
        blocks = -(-n // self.block_rows)
        edges = [self.block_rows * (blocks * w // self.workers) for w in range(self.workers)]
        return [(a, b) for a, b in zip(edges, [*edges[1:], n], strict=True) if a < b]

    def spread(self, work: Callable[[int], T], count: int) -> Iterator[T]:
        """Yield ``work(0)`` to ``work(count − 1)`` in order, computed by all threads."""
        threads = min(self.workers * self.threads, count)
        if threads < 2:
            yield from map(work, range(count))
            return
        careful = as_caller(work)
        waiting: deque[Future[T]] = deque()
        with limited(1), ThreadPoolExecutor(threads) as pool:
            try:
                for number in range(count):
                    waiting.append(pool.submit(careful, number))
                    if len(waiting) > 2 * threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for one in waiting:
                    one.cancel()


def as_caller(work: Callable[P, T]) -> Callable[P, T]:
    """Wrap work for another thread, so that numpy's error handling is that of the caller.

    A new thread starts with numpy's defaults.
    """
    errors = np.geterr()

    def careful(*arguments: P.args, **named: P.kwargs) -> T:
        with np.errstate(**errors):
            return work(*arguments, **named)

    return careful


def keep_freed_memory() -> None:
    """Make the allocator keep the memory that a block frees for the next one.

    glibc returns memory above twice the largest freed mapping of up to 32 MiB to the system, and
    clearing new pages for each block takes a tenth of a pass (mallopt(3)). This array is never
    written to; other allocators are unaffected.
    """
    np.empty(2**25 - 2**13, dtype=np.uint8)


def shared_fold(
    plan: PassPlan,
    n: int,
    blocks: Callable[[int, int], Iterator[Block]],
    statistics: Sequence[Statistic],
    progress: Callable[[int], None],
) -> None:
    """Feed rows 0 to n−1 to the statistics; each worker reads a range, and their states are merged.

    Parameters
    ----------
    plan : PassPlan
    n : int
    blocks : callable
        ``blocks(start, stop)`` gives the rows of a range block by block.
    statistics : sequence of Statistic
        Blank, or with rows that stay in.
    progress : callable
        Called with the number of rows that were read, from any thread.
    """
    keep_freed_memory()
    parts = plan.parts(n)
    if len(parts) < 2:
        for start, stop in parts:
            fold(blocks(start, stop), statistics, progress)
        return
    stopped = Event()

    def work(part: tuple[int, int], own: Sequence[Statistic]) -> None:
        for block in blocks(*part):
            if stopped.is_set():
                return
            fold([block], own, progress)

    careful = as_caller(work)
    copies = [list(statistics), *([s.blank() for s in statistics] for _ in parts[1:])]
    with limited(plan.threads), ThreadPoolExecutor(len(parts)) as pool:
        waiting = [pool.submit(careful, part, own) for part, own in zip(parts, copies, strict=True)]
        try:
            for one in waiting:
                one.result()
        except BaseException:
            stopped.set()
            raise
        # With BLAS still held back: threads that it wakes stay awake a while and are in the way.
        for own in copies[1:]:
            merge_all(statistics, own)


_lock = Lock()
#: The present limits, and the threads of each library before the first of them.
_bounds: list[int] = []
_before: list[int] = []


@cache
def _libraries() -> list[Any]:
    import numpy.linalg  # noqa: F401  (its BLAS has to be loaded to be found)
    import scipy.linalg.blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def blas_threads() -> int:
    """Return the threads of BLAS without limits, as the environment sets them."""
    with _lock:
        counts = _before if _bounds else _counts()
        return max(1, min(counts)) if counts else (os.cpu_count() or 1)


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Limit BLAS to this many threads for each call, in the whole process.

    The smallest limit of all present callers is set; after the last of them ends, in any order, the
    number before the first is restored.
    """
    with _lock:
        if not _bounds:
            _before[:] = _counts()
        _bounds.append(threads)
        _apply()
    try:
        yield
    finally:
        with _lock:
            _bounds.remove(threads)
            _apply()


def _counts() -> list[int]:
    return [library.num_threads for library in _libraries()]


def _apply() -> None:
    for library, before in zip(_libraries(), _before, strict=True):
        library.set_num_threads(min([before, *_bounds]))

"""How a pass is shared out, what it is allowed, and that none of it changes an answer."""

from __future__ import annotations

import mmap

import ml_dtypes
import numpy as np
import pytest
import threadpoolctl

from embgeo.core.errors import BadOption
from embgeo.core.matrix import Matrix, read_ahead
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.measure.analyze import analyze
from embgeo.stats.resources import COPIES, PassPlan, Resources, blas_threads, limited
from tests.support.matrices import gaussian
from tests.support.refusals import refusal
from tests.support.sampling import each_value

SHAPES = [(1, 1), (5, 3), (4096, 10), (30_000, 384), (128_256, 4096), (10**7, 128), (100, 20_000)]


@each_value
@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("threads", [1, 2, 64])
def test_every_row_belongs_to_one_worker(n, d, threads):
    plan = Resources(threads=threads).plan(n, d)
    parts = plan.parts(n)
    assert [a for a, _ in parts] == [0, *[b for _, b in parts[:-1]]]
    assert parts[-1][1] == n
    assert len(parts) <= plan.workers <= threads
    assert plan.workers * plan.threads <= threads
    sizes = [b - a for a, b in parts]
    assert max(sizes) - min(sizes[:-1] or sizes) <= plan.block_rows


def test_workers_rows_and_threads():
    for n, d, memory, threads, expected in (
        (10**6, 128, None, 4, (4, 2033, 1)),  # 123 rounds of at most 2,048 rows for each
        (10**6, 1024, None, 2, (2, 512, 1)),  # a block of half a million entries
        (10**6, 1025, None, 1, (1, 2045, 1)),  # beyond that width, of as many rows as fit
        (10**6, 2048, 2**28, 4, (2, 512, 2)),
        (2 * 10**5, 2048, 2**28, 4, (3, 341, 1)),  # fewer rows need fewer sums
        (10**6, 1024, 2**24, 2, (1, 64, 2)),  # no fewer than 64
        (300, 8, None, 4, (1, 300, 4)),
        (100, 20_000, None, 4, (1, 100, 4)),
    ):
        plan = Resources(memory=memory, threads=threads).plan(n, d)
        assert (plan.workers, plan.block_rows, plan.threads) == expected


def test_parts_are_whole_blocks():
    for n, parts in ((65, [0, 20, 40]), (5, [0]), (20, [0, 10]), (30, [0, 10, 20])):
        found = PassPlan(3, 10, 1).parts(n)
        assert [start for start, _ in found] == parts
        assert found[-1][1] == n


def test_blocks_and_sums_fit_the_memory():
    for memory in (2**28, 2**30, 2**34):
        d = 1024
        plan = Resources(memory=memory, threads=16).plan(10**6, d)
        assert plan.workers * (24 * d * d + COPIES * 8 * d * plan.block_rows) <= memory


def test_less_memory_means_fewer_workers():
    wide = [Resources(memory=m, threads=8).plan(10**6, 4096) for m in (2**28, 2**31, 2**33)]
    assert [plan.workers for plan in wide] == [1, 5, 8]
    assert [plan.threads for plan in wide] == [8, 1, 1]


@pytest.mark.parametrize("pairs", [500, 100_000])
def test_threads_change_no_answer(pairs):
    """Nor does it matter that a sample of pairs is taken while a matrix is decomposed."""
    W = (gaussian(91, n=300, d=8) + 0.3).astype(np.float32)
    options = Options(isotropy_rows=50, isotropy_runs=2, pairs=pairs)
    found = [
        analyze(Matrix(W), options=options, reference=False, resources=Resources(threads=threads))
        for threads in (1, 4)
    ]
    for one, four in zip(*(f.scalars for f in found), strict=True):
        assert (one.name, one.undefined) == (four.name, four.undefined)
        assert one.value == (four.value and pytest.approx(four.value, rel=1e-6)), one.name


def test_bounds_on_blas_hold_and_go_in_any_order():
    """Two analyses at a time may end in the order in which they began."""

    def now() -> set[int]:
        pools = threadpoolctl.threadpool_info()
        return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}

    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        first, second = limited(1), limited(2)
        first.__enter__()
        second.__enter__()
        assert (now(), blas_threads()) == ({1}, 3)
        first.__exit__(None, None, None)
        assert (now(), blas_threads()) == ({2}, 3)
        second.__exit__(None, None, None)
        assert (now(), blas_threads()) == ({3}, 3)
        with limited(8):
            assert now() == {3}
        with pytest.raises(KeyError), limited(2):
            raise KeyError
        assert now() == {3}


def test_every_pass_is_announced_with_its_rows():
    W = gaussian(93, n=300, d=8)
    told, read = [], []
    options = Options(isotropy_rows=50, isotropy_runs=2)
    watching = Progress(lambda what, rows: told.append((what, rows)), read.append)
    sections = ("isotropy",)
    analyze(Matrix(W), sections=sections, options=options, reference=False, progress=watching)
    names = [what.partition(" ")[2] for what, _ in told]  # without the count of stages
    assert names[:2] == ["first pass", "second pass"]
    assert names[-2:] == ["isotropy of samples, 1 of 2", "isotropy of samples, 2 of 2"]
    assert sum(rows for what, rows in told) == sum(read)


def test_what_fails_in_a_thread_fails_the_pass():
    class Broken(np.ndarray):
        def __getitem__(self, rows):
            if isinstance(rows, slice) and rows.start and rows.start > 4000:
                raise OSError("the disk is gone")
            return super().__getitem__(rows)

    W = gaussian(92, n=9000, d=4).view(Broken)
    with pytest.raises(OSError, match="the disk is gone"):
        analyze(Matrix(W), sections=("spectrum",), resources=Resources(threads=3))


def test_spread_keeps_the_order_and_stops_at_an_error():
    plan = PassPlan(workers=3, block_rows=10, threads=1)
    assert list(plan.spread(lambda i: i * i, 50)) == [i * i for i in range(50)]
    assert list(plan.spread(lambda i: i, 0)) == []

    def fails(i):
        if i == 7:
            raise ValueError("seven")
        return i

    seen = []
    with refusal(ValueError):
        seen.extend(plan.spread(fails, 50))
    assert seen == list(range(7))


# Precision --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_float32_is_close_and_says_so():
    W = gaussian(93, n=400, d=12) + 0.2
    exact = analyze(Matrix(W), reference=False)
    rough = analyze(Matrix(W), options=Options(precision="float32"), reference=False)
    assert rough.provenance["options"]["precision"] == "float32"
    assert "spectrum in float32" in rough.provenance["conventions"]["accumulation"]
    differs = 0
    for a, b in zip(exact.scalars, rough.scalars, strict=True):
        if a.value is not None and a.name not in ("isotropy.eigengap",):
            # Levels of the excess mass depend on numbers that nearly coincide.
            near = 1e-4 if a.name.endswith("_excess") else 1e-6
            assert b.value == pytest.approx(a.value, rel=1e-4, abs=near), a.name
            differs += a.value != b.value
    assert differs > 10


# Read-ahead -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", ml_dtypes.bfloat16])
def test_read_ahead_asks_for_the_pages_of_the_slice(tmp_path, dtype):
    asked = []

    class Map(mmap.mmap):
        def madvise(self, *args):
            asked.append(args)
            return super().madvise(*args)

    rows = 64 * mmap.PAGESIZE // (8 * np.dtype(dtype).itemsize)
    (tmp_path / "w").write_bytes(np.ones((rows, 8), dtype).tobytes())
    with (tmp_path / "w").open("rb") as file:
        mapped = Map(file.fileno(), 0, access=mmap.ACCESS_READ)
        W = np.frombuffer(mapped, dtype=np.dtype(dtype)).reshape(rows, 8)
        read_ahead(W, rows // 2, rows // 2 + 10)
        read_ahead(W, rows, rows)
        read_ahead(np.ones((3, 3)), 0, 3)
    assert [(how, start) for how, start, _ in asked] == [(mmap.MADV_WILLNEED, 32 * mmap.PAGESIZE)]


# Sizes ------------------------------------------------------------------------------------------


def test_sizes():
    for text, size in (
        ("2GB", 2 * 10**9),
        ("1.5GiB", 3 * 2**29),
        ("64 mb", 64 * 10**6),
        ("1TB", 10**12),
    ):
        assert Resources(memory=text).memory == size


def test_what_is_no_size_is_refused():
    for text in ("", "2", "-1GB", "1PB", "GB", "1e3GB", "1GB2", "nan GB"):
        with refusal(BadOption):
            Resources(memory=text)

"""Every statistic on a device next to the same one fed by numpy, also when memory runs out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from embgeo.stats import Census, Moments, Norms, OutputNorms, StackedQR, TopNeighbors
from embgeo.stats.backend.executor import DeviceFull, DeviceRows
from embgeo.stats.backend.torch import TorchBackend, open_device
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic
from tests.stats.test_monoid_laws import DIRECTIONS, MAKERS, OUTPUT, ROWS, D, N, answers
from tests.support.devices import (
    MEMORY,
    SINGLE,
    WIDE,
    NothingWide,
    make_executor,
    shortages,
    torch,
)
from tests.support.matrices import gaussian
from tests.support.refusals import refusal

#: Statistics that are fed blocks of rows.
FED = [name for name, (kind, _) in MAKERS.items() if kind.update is not Statistic.update]
CASES = [name for name in ROWS if name != "empty"]


def rows_of(name, rows, dtype=np.float64):
    W = ROWS[rows]().astype(dtype)
    return W * dtype(1e-4) if name in ("log Z, bounded", "log Z, plain") else W


def matrix_of(name, W):
    output = Matrix(OUTPUT[: len(W)]) if MAKERS[name][0] in (OutputNorms, StackedQR) else None
    return replace(Matrix(W), output=output)


def by_numpy(name, W):
    statistic = MAKERS[name][1]()
    index = np.arange(len(W))
    statistic.update(Block(index, W, lambda: OUTPUT[index]))
    return statistic


def on_device(name, W, step=N, device=WIDE, **options):
    statistic = MAKERS[name][1]()
    make_executor(matrix_of(name, W), step, device, **options).fold([statistic])
    return statistic


def agree(found, expected, relative=1e-9, absolute=1e-13):
    for x, y in zip(answers(found), answers(expected), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if y.dtype.kind in "iu":
            np.testing.assert_array_equal(x, y)
        else:
            finite = np.abs(y[np.isfinite(y)])
            scale = finite.max() if finite.size else 0.0
            np.testing.assert_allclose(x, y, rtol=relative, atol=absolute * scale)


def in_turn(*kinds):
    """Every statistic once, with the members of each kind in turn."""
    return [(name, *(kind[k % len(kind)] for kind in kinds)) for k, name in enumerate(FED)]


@pytest.mark.slow
def test_a_device_sees_what_numpy_sees():
    for name, rows, step in in_turn(CASES, (7, N, 1, 20)):
        W = rows_of(name, rows)
        agree(on_device(name, W, step), by_numpy(name, W))


#: Of entries in float32, products are taken as they are stored: relative to the largest number.
#: What is left of unit rows in a narrow cone has lost as many digits as they have in common.
BOUNDED = ("log Z, bounded", "log Z, unit rows, bounded")
AS_STORED = dict.fromkeys(
    (*BOUNDED, "moments, unit", "log Z, by group, bounded", "squares by group", "treated rows"),
    1e-6,
)
IN_A_CONE = {"moments, unit": 1e-3}


def test_also_of_entries_in_float32():
    for name, rows, device in (
        *in_turn(CASES[::-1], (SINGLE, WIDE, SINGLE)),
        ("moments, unit", "narrow cone", SINGLE),
    ):
        W = rows_of(name, rows, np.float32)
        found, expected = on_device(name, W, 7, device), by_numpy(name, W)
        if name in BOUNDED:  # which may be near 0, as a logarithm
            np.testing.assert_allclose(np.exp(answers(found)), np.exp(answers(expected)), rtol=1e-6)
        elif name in AS_STORED:
            loose = IN_A_CONE.get(name, 1e-6) if rows == "narrow cone" else AS_STORED[name]
            agree(found, expected, AS_STORED[name], loose)
        else:
            agree(found, expected)


@pytest.mark.parametrize("name", ["moments"])
def test_products_in_float32_where_they_suffice(name, monkeypatch):
    """--precision float32."""
    wider = MAKERS[name][1]()
    made = (
        Moments(D, single=True)
        if isinstance(wider, Moments)
        else type(wider)(DIRECTIONS[:, :3], bound=16.0)
    )
    monkeypatch.setattr("embgeo.stats.backend.torch.SINGLE_ROWS", 5)
    W = ROWS["plain"]().astype(np.float32)
    for device in (WIDE, SINGLE):
        found = made.blank()
        make_executor(Matrix(W), 17, device).fold([found])
        agree(found, by_numpy(name, W), 1e-6, 1e-6)


def test_nothing_wider_than_float32_is_made_where_there_is_nothing_wider():
    for name in FED:
        W = rows_of(name, "plain", np.float32)
        with NothingWide():
            on_device(name, W, 13, SINGLE)


def test_the_guard_against_float64_sees_it():
    with NothingWide(), pytest.raises(AssertionError, match="float64"):
        on_device("norms", rows_of("norms", "plain"))


@pytest.mark.parametrize(("name", "device"), in_turn((WIDE, SINGLE))[::3])
@pytest.mark.slow
def test_memory_that_runs_out_anywhere_changes_nothing(name, device):
    W = rows_of(name, "plain", np.float32)
    expected = on_device(name, W, 20, device)
    for found in shortages(lambda: on_device(name, W, 20, device)):
        agree(found, expected, 1e-6, AS_STORED.get(name, 1e-12))


def test_memory_that_never_suffices_ends_in_one_line(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nSee …")

    monkeypatch.setattr(Moments, "update", full)
    with refusal(DeviceFull) as stopped:
        make_executor(Matrix(gaussian(90, n=500)), 200).fold([Moments(D)])
    assert "--device cpu" in stopped.value.command_line_text


def test_blocks_are_halved_once(monkeypatch):
    sizes = []

    def update(_statistic, block):
        sizes.append(len(block.index))
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(Moments, "update", update)
    with refusal(DeviceFull):
        make_executor(Matrix(gaussian(90, n=500)), 500).fold([Moments(D)])
    assert sizes == [500, 250]


def test_after_a_shortage_blocks_stay_shorter(monkeypatch):
    seen = []
    update = Moments.update

    def scarce(self, block):
        if len(block.index) > 250:
            raise torch.OutOfMemoryError("out of memory")
        seen.append(len(block.index))
        update(self, block)

    W = gaussian(91, n=1000)
    monkeypatch.setattr(Moments, "update", scarce)
    e = make_executor(Matrix(W), 500)
    found = Moments(D)
    e.fold([found])
    assert sum(seen) == 1000
    assert e.rows.step == 250
    assert not e.rows.stay
    np.testing.assert_allclose(found.mean, W.mean(axis=0), rtol=1e-12)


def test_other_errors_of_torch_are_not_taken_for_a_lack_of_memory(monkeypatch):
    def broken(*_):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(Moments, "update", broken)
    with pytest.raises(RuntimeError, match="shapes"):
        make_executor(Matrix(gaussian())).fold([Moments(D)])


def test_what_counts_as_a_lack_of_memory():
    for error, full in (
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("expected scalar type Float"), False),
        (ValueError("out of memory"), False),
    ):
        assert make_executor(Matrix(gaussian())).backend.is_full(error) == full


def test_rows_that_never_arrive_end_in_one_line(monkeypatch):
    def upload(*_):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(TorchBackend, "upload", upload)
    with pytest.raises(DeviceFull):
        make_executor(Matrix(gaussian(92, n=500)), 200).fold([Norms()])


@pytest.mark.parametrize("named", [False, True])
def test_an_upload_that_fails_is_made_in_halves(monkeypatch, named):
    sent = []
    upload = TorchBackend.upload

    def scarce(self, rows, working):
        if len(rows) > 150:
            raise torch.OutOfMemoryError("out of memory")
        sent.append(len(rows))
        return upload(self, rows, working)

    monkeypatch.setattr(TorchBackend, "upload", scarce)
    W = gaussian(92, n=500)
    rows = np.arange(0, 500, 2) if named else None
    found = Norms()
    make_executor(Matrix(W), 300).fold([found], rows)
    expected = np.linalg.norm(W if rows is None else W[rows], axis=1)
    np.testing.assert_allclose(found.values(), expected, rtol=1e-14)
    assert sum(sent) == len(expected)


@pytest.mark.parametrize("stay", [True, False])
def test_rows_are_sent_once_if_they_may_stay(monkeypatch, stay):
    sent = []
    upload = TorchBackend.upload

    def counted(self, rows, working):
        sent.append(len(rows))
        return upload(self, rows, working)

    monkeypatch.setattr(TorchBackend, "upload", counted)
    e = make_executor(Matrix(gaussian(93, n=100)), 40, stay=stay)
    for _ in range(3):
        found = Norms()
        e.fold([found])
        assert len(found.values()) == 100
    assert sent == [40, 40, 20] * (1 if stay else 3)


@pytest.mark.parametrize("device", [WIDE, SINGLE])
def test_unusable_rows_are_found_on_the_device(device):
    W = gaussian(94, n=50).astype(np.float32)
    W[[3, 17]] = 0.0
    W[5, 2], W[6, 1], W[49, 0] = np.nan, np.inf, -np.inf
    e = make_executor(Matrix(W), 8, device)
    e.takes_part[[0, 5]] = False
    census, norms = Census(), Norms()
    e.sift([norms], census)
    assert census.zero.tolist() == [3, 17]
    assert census.nonfinite.tolist() == [6, 49]
    kept = np.setdiff1d(np.arange(50), [0, 3, 5, 6, 17, 49])
    assert norms.index().tolist() == kept.tolist()
    assert np.flatnonzero(e.takes_part).tolist() == kept.tolist()
    assert census.largest == np.abs(W[kept]).max()


def test_rows_beyond_what_squares_hold_are_left_to_numpy():
    W = gaussian(95, n=30)
    W[4] *= 1e-200
    W[9] *= 1e200
    found, expected = Norms(), Norms()
    make_executor(Matrix(W), 7).fold([found])
    expected.update(Block(np.arange(30), W))
    np.testing.assert_array_equal(found.values()[[4, 9]], expected.values()[[4, 9]])
    np.testing.assert_allclose(found.values(), expected.values(), rtol=1e-15)


def test_long_and_short_rows_of_float32_have_directions():
    W = gaussian(96, n=30).astype(np.float32)
    W[4] *= np.float32(1e-36)
    W[9] *= np.float32(1e36)
    found, expected = Moments(D, of="unit"), Moments(D, of="unit")
    make_executor(Matrix(W), 7).fold([found])
    expected.update(Block(np.arange(30), W))
    agree(found, expected, 1e-6, 1e-7)


def test_very_many_equally_near_rows():
    """Where candidates are no fewer than rows, the block is searched as a whole."""
    W = np.repeat(gaussian(98, n=2), 300, axis=0)
    queries = np.array([0, 5, 400])
    unit = Block(queries, W[queries]).unit
    found = TopNeighbors("queries", queries, unit, 4)
    make_executor(Matrix(W), 250).fold([found])
    # Chance of a fixed seed splits the ties, among the rows that are equal to the query.
    for query, near in zip(queries, found.neighbors, strict=True):
        assert len(set(near.tolist()) - {query}) == 4
        assert (near // 300 == query // 300).all()
    np.testing.assert_allclose(found.cosines, 1.0, rtol=1e-12)


def test_blocks_are_sized_by_the_memory_that_is_free(monkeypatch):
    """A part of it for the rows of a block, once the sums have theirs; at least some rows."""
    W = Matrix(gaussian(94, n=2000, d=8).astype(np.float32))
    steps = {}
    for free in (0, 2**18, 2**20, 2**24):
        monkeypatch.setattr(TorchBackend, "free", lambda _self, free=free: free)
        backend = open_device(WIDE, MEMORY)
        rows = DeviceRows(backend, W, MEMORY)
        steps[free] = rows.step, rows.stay
    assert steps == {0: (63, False), 2**18: (250, True), 2**20: (1000, True), 2**24: (2000, True)}

"""Rows whose exponents float32 holds are multiplied in float32, the others in float64."""

import numpy as np
import pytest
from scipy.special import logsumexp

import embgeo
from embgeo.metrics.isotropy import compute_i1_i2
from embgeo.numerics.halves import HALVES
from embgeo.stats.block import Block
from embgeo.stats.log_partition import SINGLE_BOUND, LogPartition
from tests.support.sampling import each_value


def lengthen(rows, norms):
    return (rows / np.linalg.norm(rows, axis=1)[:, None] * norms[:, None]).astype(np.float32)


@pytest.mark.parametrize("limit", [0.0, 12.0, 100.0])
def test_rows_are_split_by_their_norms(monkeypatch, limit):
    rng = np.random.default_rng(0)
    W = lengthen(rng.standard_normal((400, 24)), np.where(np.arange(400) % 9, 8.0, 30.0))
    directions = np.linalg.qr(rng.standard_normal((24, 24)))[0]
    single = []
    plain = Block.product
    monkeypatch.setattr(
        Block, "product", lambda self, *by: (single.append(len(self.index)), plain(self, *by))[1]
    )
    found = LogPartition(
        "z", directions, bound=30.0, longest_single=limit, unit_rows=True, rows=10**30
    )
    found.update(Block(np.arange(400), W))
    assert sum(single) == np.count_nonzero(np.linalg.norm(W.astype(float), axis=1) <= limit)
    for rows, log_z in (
        (W.astype(float), found.log_z()),
        (W / np.linalg.norm(W.astype(float), axis=1)[:, None], found.log_z_of_unit_rows()),
    ):
        expected = [logsumexp(sign * (rows @ directions), axis=0) for sign in (1.0, -1.0)]
        # Beyond the limit of the package float32 loses digits: that is why there is one.
        np.testing.assert_allclose(
            log_z, expected, rtol=0, atol=1e-6 if limit <= SINGLE_BOUND else 1e-5
        )


def test_rows_that_may_make_much_of_a_sum_are_multiplied_in_float64(monkeypatch):
    """On either side of log(N/16) around the mean row, scaled by the largest scale."""
    directions = np.eye(4)
    mean = np.array([9.0, 0.0, 0.0, 0.0])
    W = np.random.default_rng(4).uniform(-0.5, 0.5, (160, 4)) + mean
    limit = np.log(10.0) / 1.25
    W[:3, 1] = limit + 0.001, -limit - 0.001, limit - 0.001
    W[3, 0], W[4, 0] = 9.0 + limit + 0.001, 9.0 - limit + 0.001
    W = W.astype(np.float32)
    wide = []
    plain = LogPartition._multiply

    def multiply(self, block, single):
        if not single:
            wide.extend(block.index)
        return plain(self, block, single)

    monkeypatch.setattr(LogPartition, "_multiply", multiply)
    found = LogPartition(
        "z",
        directions,
        (1.0, 1.25),
        bound=40.0,
        unit_rows=True,
        longest_single=40.0,
        rows=160,
        mean=mean,
    )
    found.update(Block(np.arange(160), W))
    assert wide == [0, 1, 3]
    for scale in (1.0, 1.25):
        expected = [logsumexp(sign * scale * (W @ directions), axis=0) for sign in (1, -1)]
        np.testing.assert_allclose(found.log_z(scale), expected, rtol=0, atol=1e-7)
    unit = W / np.linalg.norm(W.astype(float), axis=1)[:, None]
    expected = [logsumexp(sign * (unit @ directions), axis=0) for sign in (1, -1)]
    np.testing.assert_allclose(found.log_z_of_unit_rows(), expected, rtol=0, atol=1e-7)


@each_value
@pytest.mark.parametrize("bound", [np.inf, 100.0, 10.0])
@pytest.mark.parametrize("groups", [1, 16])
def test_every_scale_and_unit_rows_have_their_sums(bound, groups):
    """Of exponents without a bound, in float64, and in float32; in two parts that are merged."""
    W = np.random.default_rng(2).standard_normal((30, 4)) + 0.3
    directions = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0]
    labels = np.random.default_rng(4).integers(0, 15, 30)  # none is in the last group
    parts = [
        LogPartition(
            "z",
            directions,
            scales=(1.0, 0.25),
            bound=bound,
            unit_rows=True,
            labels=None if groups == 1 else labels,
            groups=groups,
        )
        for _ in range(2)
    ]
    for part, rows in zip(parts, np.array_split(np.arange(30), 2), strict=True):
        part.update(Block(rows, W[rows]))
    parts[0].merge(parts[1])
    unit = W / np.linalg.norm(W, axis=1)[:, None]
    known = [
        (W, parts[0].log_z(1.0)),
        (0.25 * W, parts[0].log_z(0.25)),
        (unit, parts[0].log_z_of_unit_rows()),
    ]
    if groups > 1:
        by_half = parts[0].log_z_of_unit_rows_by_half()
        known += [(unit[half[labels]], by_half[at]) for at, half in enumerate(HALVES)]
    for rows, found in known:
        expected = [logsumexp(sign * (rows @ directions), axis=0) for sign in (1.0, -1.0)]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("longest", [15.0, 40.0])
def test_a_few_long_rows_leave_the_digits_of_all(longest):
    rng = np.random.default_rng(1)
    W = lengthen(rng.standard_normal((2000, 48)) + 0.2, rng.uniform(2.0, 6.0, 2000))
    W[:20] = lengthen(W[:20], np.full(20, longest))
    found = embgeo.analyze(W, sections=["isotropy"], reference=False)
    exact = embgeo.analyze(W.astype(float), sections=["isotropy"], reference=False)
    for a, b in zip(found.scalars, exact.scalars, strict=True):
        if b.value is not None and a.name != "isotropy.eigengap":
            assert a.value == pytest.approx(b.value, rel=1e-6), a.name
    wide = W.astype(float)
    directions = np.linalg.svd(wide)[2].T
    log_z = np.stack([logsumexp(sign * (wide @ directions), axis=0) for sign in (1, -1)])
    assert found["isotropy.i1"].value == pytest.approx(compute_i1_i2(log_z)[0], rel=1e-6)

"""Decisions at their limits, and references in the hard cases."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import embgeo
from embgeo.core.values import Scalar, Table
from embgeo.metrics.isotropy import bound_exponents
from embgeo.stats import RowHashes
from tests.support.matrices import from_spectrum, gaussian


def scalar(found: embgeo.Analysis, name: str) -> Scalar:
    value = found[name]
    assert isinstance(value, Scalar)
    return value


def table(found: embgeo.Analysis, name: str) -> Table:
    value = found[name]
    assert isinstance(value, Table)
    return value


def test_rows_of_equal_hashes_are_compared_entry_by_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    W = gaussian(3, 12, 4)
    W[[5, 9]] = W[1]
    W[7] = W[2]
    plain = embgeo.analyze(W, sections=["tokens"], reference=False)
    assert scalar(plain, "tokens.duplicate_rows").value == 3
    zeros = np.zeros(12, dtype=np.uint64)
    monkeypatch.setattr(RowHashes, "values", lambda _: zeros)
    collided = embgeo.analyze(W, sections=["tokens"], reference=False)
    assert scalar(collided, "tokens.duplicate_rows").value == 3
    expected = table(plain, "tokens.duplicates").rows
    assert table(collided, "tokens.duplicates").rows == expected


@pytest.mark.parametrize("rank_order", [False, True])
def test_a_count_that_is_not_known_is_not_shown(rank_order: bool) -> None:
    found = embgeo.analyze(
        gaussian(4, 20, 3), rank_order=rank_order, sections=["tokens"], reference=False
    )
    for name in ("smallest_norms", "largest_norms", "nearest_to_mean", "undertrained"):
        assert {row[2] for row in table(found, f"tokens.{name}").rows} <= {None}
    counted = embgeo.analyze(
        gaussian(4, 20, 3), counts=np.arange(20), sections=["tokens"], reference=False
    )
    for row, _, count, _ in table(counted, "tokens.smallest_norms").rows:
        assert count == row


def test_the_rank_tolerance_is_that_of_the_longer_side() -> None:
    """σ_d between min(M, d)·2⁻⁵² and max(M, d)·2⁻⁵²."""
    m, d = 20_000, 5
    sigma = np.array([1.0, 1.0, 1.0, 1.0, np.sqrt(m * d) * 2.0**-52])
    W = from_spectrum(sigma, 6, n=m)
    found = embgeo.analyze(W, sections=["spectrum"], reference=False)
    assert scalar(found, "spectrum.numerical_rank").value == d - 1
    assert scalar(found, "spectrum.condition_number").value is None


@pytest.mark.parametrize("length", [1e-3, 1e-6, 1e-9])
def test_a_weak_common_direction_is_one(length: float) -> None:
    """Rows in opposite pairs, with a mean direction far above rounding."""
    rows = np.random.default_rng(7).standard_normal((300, 4))
    rows[:, 0] = 0.0
    W = np.vstack([rows, -rows])
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    W[:, 0] = length
    found = embgeo.analyze(W, sections=["cosine"], reference=False)
    angle = scalar(found, "cosine.cone_half_angle_median")
    assert angle.value == pytest.approx(90.0 - np.degrees(length), abs=1e-6)
    assert scalar(found, "cosine.max_dimension_share").value == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("length", "mean", "bound"),
    [(20.0, 190.0, 210.0), (20.0, 210.0, np.inf), (0.2, 0.0, np.inf)],
)
def test_exponents_are_bounded_unless_rows_are_short_or_the_mean_is_long(
    length: float, mean: float, bound: float
) -> None:
    moments = SimpleNamespace(n=100, trace=lambda: 100 * length**2)
    shared = SimpleNamespace(norms=np.full(100, length), moments=moments)
    assert bound_exponents(shared, np.array([mean, 0.0])) == bound  # type: ignore[arg-type]


def test_few_rows_alone_in_a_section() -> None:
    """The scatter is decomposed twice; the first time it must not be released yet."""
    rows = gaussian(93, 10, 30)
    alone = embgeo.analyze(rows, sections=["isotropy"], reference=False)
    among = embgeo.analyze(rows, sections=["spectrum", "isotropy"], reference=False)
    assert alone["isotropy.i1"] == among["isotropy.i1"]

"""Rows that training never touched, planted among rows that it made longer."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import brentq

from embgeo.core.values import Scalar
from embgeo.metrics import untouched
from embgeo.metrics.untouched import looks_initial
from tests.support import one_family
from tests.support.sampling import each_value

Rows = npt.NDArray[np.float64]
N, D = 1200, 48


def initial(kind: str, n: int, seed: int = 1) -> Rows:
    rng = np.random.default_rng(seed)
    return (
        rng.uniform(-0.1, 0.1, (n, D)) if kind == "uniform" else 0.02 * rng.standard_normal((n, D))
    )


def trained(short: Rows, n: int, times: float = 3.0, seed: int = 2) -> Rows:
    """Rows longer than these, of norms that vary, with a spectrum that falls."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, D)) * np.arange(1, D + 1) ** -0.3
    size = times * np.linalg.norm(short, axis=1).mean() * rng.uniform(0.8, 1.4, (n, 1))
    return rows / np.linalg.norm(rows, axis=1)[:, None] * size


def count(rows: Rows, **more: int) -> float | None:
    value = one_family.measure(rows, untouched, **more)["tokens.untouched_rows"]
    assert isinstance(value, Scalar)
    return value.value


@each_value
@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.9])
def test_untouched_rows_are_counted(kind: str, share: float) -> None:
    short = initial(kind, int(share * N))
    rows = np.concatenate([short, trained(short, N - len(short))])
    assert count(rows) == pytest.approx(len(short), abs=3)
    assert count(rows, seed=7) == count(rows)


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_rows_between_the_modes_are_none_of_them(kind: str) -> None:
    """As letters that rarely occur: in either mode they would make its norms vary too much."""
    short = initial(kind, 700)
    between = initial(kind, 60, seed=5) * np.linspace(1.7, 2.3, 60)[:, None]
    rows = np.concatenate([short, between, trained(short, N - 760, 4.0)])
    assert count(rows) == pytest.approx(700, abs=3)


def test_shorter_rows_of_a_common_direction_were_trained() -> None:
    short = initial("normal", 600) + 0.006
    assert count(np.concatenate([short, trained(short, 600)])) == 0


def test_shorter_rows_of_a_spectrum_that_falls_were_trained() -> None:
    long = trained(initial("uniform", 600), 600)
    assert count(np.concatenate([long, 5 * trained(long, 600, seed=3)])) == 0


def test_shorter_rows_of_norms_that_vary_were_trained() -> None:
    rng = np.random.default_rng(4)
    short = initial("normal", 600) * rng.uniform(0.7, 1.3, (600, 1))
    assert count(np.concatenate([short, trained(short, 600, 6.0)])) == 0


def test_one_mode_of_norms_has_no_shorter_rows() -> None:
    assert count(initial("uniform", N)) == 0
    assert count(initial("uniform", 99)) is None
    assert count(initial("uniform", 100)) == 0


@pytest.mark.parametrize(("short", "found"), [(99, 0), (100, 100)])
def test_fewer_than_a_hundred_shorter_rows_need_a_gap(
    short: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    norms = np.exp(0.01 * rng.standard_normal(600))
    norms[short:] *= 4.0
    m: Any = SimpleNamespace(
        shared=SimpleNamespace(norms=norms), facts=SimpleNamespace(kept=np.arange(600), d=4)
    )
    assert len(untouched.find_shorter_rows(m)) == short
    monkeypatch.setattr(untouched, "find_gap", lambda *_: -np.inf)
    assert len(untouched.find_shorter_rows(m)) == found


def place(count: int, gap: float) -> Rows:
    """256 log norms with an interquartile range of 1.349, this many a gap below the next."""
    ordered = np.linspace(0.0, 4 * 1.349 * 255 / 256, 256)
    ordered -= np.diff(np.quantile(ordered, (0.25, 0.75)))[0] / 1.349 - 1.0
    step = ordered[1] - ordered[0]
    ordered[:count] -= gap - step
    return np.random.default_rng(9).permutation(ordered)


@pytest.mark.parametrize("count", [5, 13, 60])
@pytest.mark.parametrize(("times", "found"), [(0.99, False), (1.01, True)])
def test_both_sides_of_a_gap_by_chance(count: int, times: float, found: bool) -> None:
    logs = place(count, 1.0)
    spread = np.diff(np.quantile(logs, (0.25, 0.75)))[0] / 1.3489795
    logs = place(count, times * spread * max(1.0, np.log(256 / 1e-3) / count))
    assert np.isfinite(untouched.find_gap(logs, 10_000)) == found
    if found:
        assert (logs <= untouched.find_gap(logs, 10_000)).sum() == count


@pytest.mark.parametrize("count", [4, 65])
def test_fewer_than_five_rows_or_more_than_a_quarter_below_a_gap_do_not_count(count: int) -> None:
    assert untouched.find_gap(place(count, 100.0), 10_000) == -np.inf


def test_norms_of_entries_of_three_values_have_no_gap() -> None:
    rows = np.random.default_rng(9).integers(-1, 2, (3000, 64))
    assert untouched.find_gap(0.5 * np.log(np.abs(rows).sum(axis=1)), 64) == -np.inf


@pytest.mark.parametrize("seed", range(20))
def test_one_tail_has_no_gap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for logs in (rng.laplace(size=500), -rng.gumbel(size=500), rng.uniform(size=500)):
        assert untouched.find_gap(logs, 10_000) == -np.inf


@pytest.mark.parametrize(("d", "size"), [(100, 2_000), (1_000, 1_048), (9_000, 300)])
def test_a_million_entries_of_them_are_read(d: int, size: int) -> None:
    norms = np.exp(0.01 * np.random.default_rng(8).standard_normal(5_000))
    norms[2_500:] *= 4.0
    m: Any = SimpleNamespace(
        shared=SimpleNamespace(norms=norms), facts=SimpleNamespace(kept=np.arange(5_000), d=d)
    )
    assert len(untouched.rows_read(m)) == size


@pytest.mark.parametrize("k", [2 * D, 960])
@pytest.mark.parametrize(("tilt", "said"), [(2.98, True), (3.02, False)])
def test_both_sides_of_three_errors_of_the_mean_cosine(tilt: float, said: bool, k: int) -> None:
    """Rows of a tight frame cancel; a common part raises their mean cosine as asked."""
    basis = np.tile(np.concatenate([np.eye(D), -np.eye(D)]), (k // (2 * D), 1))
    turned = basis @ np.linalg.qr(np.random.default_rng(5).standard_normal((D, D)))[0]
    asked = tilt * np.sqrt(2.0 / (D * k * (k - 1.0)))

    def shift(length: float) -> tuple[float, Rows]:
        rows = turned + length * np.full(D, D**-0.5)
        unit = rows / np.linalg.norm(rows, axis=1)[:, None]
        return float((np.square(unit.sum(axis=0)).sum() - k) / (k * (k - 1))), unit

    length = float(brentq(lambda length: shift(length)[0] - asked, 0.0, 0.5))
    _, unit = shift(length)
    assert looks_initial(unit, np.ones(k)) is said


@pytest.mark.parametrize(
    ("n", "times", "said"), [(500, 1.0, True), (500, 1.6, False), (30, 1.0, True), (30, 3.0, False)]
)
def test_a_direction_of_more_than_its_part_was_trained(n: int, times: float, said: bool) -> None:
    rows = np.random.default_rng(6).standard_normal((n, D))
    rows[:, 0] = times * np.abs(rows[:, 0]) * np.where(np.arange(n) % 2, 1.0, -1.0)
    unit = rows / np.linalg.norm(rows, axis=1)[:, None]
    assert looks_initial(unit, np.ones(n)) is said


@pytest.mark.parametrize(("times", "said"), [(0.9, True), (1.1, False)])
def test_both_sides_of_the_spread_of_norms(times: float, said: bool) -> None:
    k = 1000
    rows = initial("normal", k)
    unit = rows / np.linalg.norm(rows, axis=1)[:, None]
    most = times * (0.5 / D) ** 0.5 * (1 + 3 / np.sqrt(2 * k))
    lengths = 1 + most * np.where(np.arange(k) % 2, 1.0, -1.0)
    assert looks_initial(unit, lengths) is said

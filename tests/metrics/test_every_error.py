"""Beside every sampling error that is printed, a literal bootstrap or spread over draws.

The list is walked: an error of a scalar that has no twin here fails, and so does a factor of 1.5.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.numerics.hubness import share_among_equals
from embgeo.numerics.sampling import generator, sample_rows
from tests.support import naive

Rows = npt.NDArray[np.float64]
#: The error that is printed, and the literal one.
Twins = tuple[float, float]
N, D = 160, 6


def bootstrap(measure: Callable[[Rows], float], rows: Rows, draws: int = 600) -> float:
    g = np.random.default_rng(1)
    found = [measure(rows[g.integers(0, len(rows), len(rows))]) for _ in range(draws)]
    return float(np.std(found, ddof=1))


def draw_some(measure: Callable[[Rows], float], rows: Rows, size: int) -> float:
    """The spread over draws of some of the rows, without replacement."""
    g = np.random.default_rng(2)
    found = [measure(rows[g.permutation(len(rows))[:size]]) for _ in range(600)]
    return float(np.std(found, ddof=1))


def error(found: embgeo.Analysis, name: str) -> float:
    scalar = found.find_scalar(name)
    assert scalar is not None
    return float(scalar.errors["monte_carlo"])


# Pairs, spectrum, isotropy ----------------------------------------------------------------------


@cache
def cone_rows() -> Rows:
    rows = np.random.default_rng(6).uniform(-1.2, 1.2, (2, N, D)).sum(axis=0)
    rows *= np.arange(1, D + 1) ** -0.5
    rows[:, 0] += 0.8
    rows[:40] += 0.3
    return rows


@cache
def of_some() -> embgeo.Analysis:
    sections = ["cosine", "isotropy"]
    return embgeo.analyze(
        cone_rows(), sections=sections, reference=False, pairs=2000, isotropy_rows=40
    )


@cache
def drawn_cosines() -> Rows:
    g = generator(0, "pairs")
    first = g.integers(0, N, 2000)
    second = g.integers(0, N - 1, 2000)
    second += second >= first
    unit = naive.unit(cone_rows())
    return np.vecdot(unit[first], unit[second])


def of_pairs(name: str) -> Twins:
    literal = bootstrap(lambda some: float((some > 0).mean()), drawn_cosines())
    return error(of_some(), name), literal


def of_runs(name: str) -> Twins:
    """I1 and I2 of each sample of rows, with the eigenvectors of the sample."""
    g = generator(0, "isotropy runs")
    runs = []
    for _ in range(10):
        rows = cone_rows()[sample_rows(np.arange(N), 40, g)]
        products = rows @ np.linalg.svd(rows)[2].T
        z = np.exp(np.r_[products.T, -products.T]).sum(axis=1)
        runs.append(z.min() / z.max() if name == "isotropy.i1_sampled" else z.std() / z.mean())
    return error(of_some(), name), float(np.std(runs, ddof=1) / np.sqrt(10))


# Neighbors --------------------------------------------------------------------------------------


@cache
def neighborhood() -> tuple[Rows, Rows]:
    """Rows by frequency; of each its share of rare neighbors, log ratio of TwoNN, nearest row."""
    rows = np.random.default_rng(7).standard_normal((500, D))
    rows[:100, 0] += 1.0
    unit = naive.unit(rows)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    share = (np.argsort(-cosines, axis=1)[:, :10] >= 100).mean(axis=1)
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    nearest = np.sort(distances, axis=1)
    ratio = np.log(nearest[:, 2] / nearest[:, 1])
    return rows, np.c_[share, ratio, np.argsort(distances, axis=1)[:, 1]]


@cache
def of_queries() -> embgeo.Analysis:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("embgeo.metrics.neighbors.CLASS_QUERIES", (60, 60))
        patch.setattr("embgeo.metrics.dimension.QUERIES", (150, 150))
        patch.setattr("embgeo.metrics.neighbors.ALL_ROWS", 400)
        patch.setattr("embgeo.metrics.neighbors.HUB_QUERIES", 50)
        sections = ["frequency", "tokens"]
        counts = np.arange(500, 0, -1)
        return embgeo.analyze(neighborhood()[0], counts=counts, sections=sections, reference=False)


def of_rare_neighbors(name: str) -> Twins:
    popular = name.endswith("popular")
    shares = neighborhood()[1][slice(0, 100) if popular else slice(100, 500), 0]
    literal = draw_some(lambda some: float(some.mean()), shares, 60)
    return error(of_queries(), name), literal


def of_two_nn(name: str) -> Twins:
    ratios = neighborhood()[1][:, 1]
    literal = draw_some(lambda some: float((len(some) - 1) / some.sum()), ratios, 150)
    return error(of_queries(), name), literal


def of_parts(name: str) -> Twins:
    """Every twentieth of the 50 queries left out in turn."""
    unit = naive.unit(neighborhood()[0])
    queries = sample_rows(np.arange(500), 50, generator(0, "hubness"))
    near = np.array([[j for j in np.argsort(-(unit @ unit[i])) if j != i][:10] for i in queries])
    places = share_among_equals(near, queries, np.arange(500))
    whole = places.skewness(np.ones(50, dtype=bool), 10)
    assert of_queries()[name].value == pytest.approx(whole, rel=1e-9)
    left = [places.skewness(np.arange(50) % 20 != part, 10) for part in range(20)]
    spread = np.std(np.array(left, dtype=float)) * np.sqrt(20 - 1)
    return error(of_queries(), name), float(spread * np.sqrt(1 - 50 / 500))


TWINS: dict[str, Callable[[str], Twins]] = {
    "cosine.positive_share": of_pairs,
    "isotropy.i1_sampled": of_runs,
    "isotropy.i2_sampled": of_runs,
    "frequency.neighbor_rarity_rare": of_rare_neighbors,
    "frequency.neighbor_rarity_popular": of_rare_neighbors,
    "tokens.intrinsic_dimension": of_two_nn,
    "tokens.hubness": of_parts,
}


def test_an_error_is_the_literal_one() -> None:
    for name in TWINS:
        printed, literal = TWINS[name](name)
        assert printed == pytest.approx(literal, rel=0.16)


def test_every_error_that_is_printed_has_a_twin() -> None:
    """Those over tokens in `test_halves`."""
    found = [of_some(), of_queries()]
    printed = {s.name for one in found for s in one.scalars if s.error_kind == "monte_carlo"}
    assert printed == set(TWINS)

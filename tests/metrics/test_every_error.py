"""Beside every standard error that is printed, a literal jackknife, bootstrap or spread over draws.

The list is walked: an error of a scalar that has no twin here fails, and so does a factor of 1.5.
"""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo import metrics
from embgeo.metrics import dimension, neighbors, probe
from embgeo.metrics.hubs import measure_twins
from embgeo.numerics.clusters import mean_between
from embgeo.numerics.hubness import share_among_equals
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.numerics.scores import auc
from tests.support import naive, one_family

Rows = npt.NDArray[np.float64]
#: The error that is printed, and the literal one.
Twins = tuple[float, float]
N, D = 160, 6


def jackknife(measure: Callable[[Rows], float], rows: Rows) -> float:
    """√((n − 1)/n·Σ(θ_i − θ̄)²) of the number without each row in turn."""
    without = np.array([measure(np.delete(rows, i, 0)) for i in range(len(rows))])
    return float(np.sqrt((len(rows) - 1) * without.var()))


def bootstrap(measure: Callable[[Rows], float], rows: Rows, draws: int = 600) -> float:
    g = np.random.default_rng(1)
    found = [measure(rows[g.integers(0, len(rows), len(rows))]) for _ in range(draws)]
    return float(np.std(found, ddof=1))


def draw_some(measure: Callable[[Rows], float], rows: Rows, size: int) -> float:
    """The spread over draws of some of the rows, without replacement."""
    g = np.random.default_rng(2)
    found = [measure(rows[g.permutation(len(rows))[:size]]) for _ in range(600)]
    return float(np.std(found, ddof=1))


def error(found: embgeo.Analysis, name: str, kind: str) -> float:
    scalar = found.scalar(name)
    assert scalar is not None
    return float(scalar.errors[kind])


# Pairs, spectrum, isotropy ----------------------------------------------------------------------


@cache
def cone_rows() -> Rows:
    rows = np.random.default_rng(6).uniform(-1.2, 1.2, (2, N, D)).sum(axis=0)
    rows *= np.arange(1, D + 1) ** -0.5
    rows[:, 0] += 0.8
    rows[:40] += 0.3
    return rows


@cache
def of_all_pairs() -> embgeo.Analysis:
    sections = ["spectrum", "cosine", "isotropy"]
    return embgeo.analyze(cone_rows(), sections=sections, reference=False, pairs="all")


@cache
def of_some() -> embgeo.Analysis:
    sections = ["cosine", "isotropy"]
    return embgeo.analyze(
        cone_rows(), sections=sections, reference=False, pairs=2000, isotropy_rows=40
    )


def of_cosines(measure: Callable[[Rows], float]) -> Callable[[Rows], float]:
    """A number of the cosines of all pairs."""

    def of_rows(rows: Rows) -> float:
        unit = naive.unit(rows)
        return measure((unit @ unit.T)[np.triu_indices(len(rows), 1)])

    return of_rows


#: Of cosines of pairs.
OF_COSINES: dict[str, Callable[[Rows], float]] = {
    "cosine.positive_share": lambda cosines: float((cosines > 0).mean()),
    "cosine.uniformity": lambda cosines: float(np.log(np.exp(4 * cosines - 4).mean())),
}
#: By scalar: what a slow reading of its definition makes of some rows.
SMOOTH: dict[str, Callable[[Rows], float]] = {
    "spectrum.effective_rank": lambda W: naive.effective_rank(naive.singular_values(W)),
    "spectrum.effective_rank_centered": lambda W: naive.effective_rank(
        naive.singular_values(naive.subtract_mean(W))
    ),
    "spectrum.top_share": lambda W: naive.singular_values(W)[0] ** 2 / (W**2).sum(),
    "cosine.mean": of_cosines(lambda cosines: float(cosines.mean())),
    "cosine.std": of_cosines(lambda cosines: float(cosines.std())),
    **{name: of_cosines(measure) for name, measure in OF_COSINES.items()},
    "isotropy.isoscore": naive.isoscore,
}


def of_tokens(name: str) -> Iterator[Twins]:
    yield error(of_all_pairs(), name, "population"), jackknife(SMOOTH[name], cone_rows())


@cache
def drawn_cosines() -> Rows:
    g = generator(0, "pairs")
    first = g.integers(0, N, 2000)
    second = g.integers(0, N - 1, 2000)
    second += second >= first
    unit = naive.unit(cone_rows())
    return np.vecdot(unit[first], unit[second])


def of_pairs(name: str) -> Iterator[Twins]:
    sampling = bootstrap(OF_COSINES[name], drawn_cosines())
    yield error(of_some(), name, "monte_carlo"), sampling
    both = float(np.hypot(sampling, jackknife(SMOOTH[name], cone_rows())))
    yield error(of_some(), name, "population"), both


def of_runs(name: str) -> Iterator[Twins]:
    table = next(table for table in of_some().tables if table.name == "isotropy.runs")
    column = 1 + (name == "isotropy.i2_sampled")
    runs = np.array([row[column] for row in table.rows[:-2]], dtype=float)
    yield error(of_some(), name, "monte_carlo"), jackknife(lambda some: float(some.mean()), runs)


# Clusters and clumps ----------------------------------------------------------------------------


def grouped(n: int) -> tuple[Rows, npt.NDArray[np.int64]]:
    g = np.random.default_rng(3)
    labels = np.arange(n) % 3
    own = 0.05 * g.standard_normal((n, D)) * (1 + labels[:, None])
    return naive.unit(np.eye(D)[labels] + 0.2 + own), labels


@cache
def of_groups(n: int) -> embgeo.Analysis:
    return embgeo.analyze(grouped(n)[0], sections=["cosine"], reference=False, pairs=50)


def of_clusters(name: str) -> Iterator[Twins]:
    unit, labels = grouped(240)
    both = np.c_[unit, labels]

    def between(some: Rows) -> float:
        return mean_between(some[:, :-1], some[:, -1].astype(np.int64))

    assert of_groups(240)[name].value == pytest.approx(between(both), rel=1e-12)
    yield error(of_groups(240), name, "population"), jackknife(between, both)
    unit, labels = grouped(900)
    yield error(of_groups(900), name, "monte_carlo"), draw_some(between, np.c_[unit, labels], 600)


CLUMP = 90


@cache
def clump_counts() -> Rows:
    g = np.random.default_rng(8)
    return np.floor(np.exp(2 * g.standard_normal(600) + 1.0 * (np.arange(600) >= CLUMP)))


@cache
def clumped() -> embgeo.Analysis:
    """Of 600 rows, 90 form a clump: most tokens that are known to be unused, and rare ones."""
    g = np.random.default_rng(4)
    rows = g.standard_normal((600, 16))
    rows[:CLUMP] = 0.1 * rows[:CLUMP] + 0.4
    names = [f"[unused{i}]" if i % 9 < 4 else f"w{i}" for i in range(CLUMP + 20)]
    names += [f"w{i}" for i in range(len(names), 600)]
    return embgeo.analyze(
        rows,
        tokens=names,
        counts=clump_counts(),
        sections=["tokens", "cosine"],
        reference=False,
        pairs=50,
    )


def of_size(name: str) -> Iterator[Twins]:
    inside = np.arange(600) < clumped()[name].value
    yield error(clumped(), name, "population"), bootstrap(lambda one: float(one.sum()), inside)


def of_unused(name: str) -> Iterator[Twins]:
    unused = [i for i in range(CLUMP + 20) if i % 9 < 4]
    inside = np.array(unused) < CLUMP
    assert clumped()[name].value == pytest.approx(inside.mean())
    yield error(clumped(), name, "population"), bootstrap(lambda one: float(one.mean()), inside)


def of_rarity(name: str) -> Iterator[Twins]:
    inside = np.arange(600) < CLUMP

    def rarity(rows: Rows) -> float:
        return auc(rows[:, 0], rows[:, 1] > 0)[0]

    # One token more on either side, as for shares near 1.
    tokens = np.c_[np.r_[clump_counts(), -1.0, 1e99], np.r_[~inside, False, False]]
    yield error(clumped(), name, "population"), jackknife(rarity, tokens)


@cache
def scattered() -> embgeo.Analysis:
    """Most rows lie in a cone; 150 of 600 are short and point anywhere."""
    rows = np.random.default_rng(5).standard_normal((600, 64)) + 1.5
    rows[:150] = 0.2 * np.random.default_rng(6).standard_normal((150, 64))
    return embgeo.analyze(rows, sections=["cosine", "tokens"], reference=False, pairs=50)


def of_bound(name: str) -> Iterator[Twins]:
    column: Any = scattered()["cosine.angle_to_mean"]
    angles = np.radians(np.asarray(column.values, dtype=float))[150:]

    def bound(some: Rows) -> float:
        n = len(some)
        return float((np.cos(some).sum() ** 2 - n) / (n * (n - 1)))

    assert scattered()[name].value == pytest.approx(bound(angles), rel=1e-5)
    yield error(scattered(), name, "population"), jackknife(bound, angles)


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


def of_rare_neighbors(name: str) -> Iterator[Twins]:
    popular = name.endswith("popular")
    shares = neighborhood()[1][slice(0, 100) if popular else slice(100, 500), 0]
    literal = draw_some(lambda some: float(some.mean()), shares, 60)
    yield error(of_queries(), name, "monte_carlo"), literal


def of_two_nn(name: str) -> Iterator[Twins]:
    ratios = neighborhood()[1][:, 1]
    literal = draw_some(lambda some: float((len(some) - 1) / some.sum()), ratios, 150)
    yield error(of_queries(), name, "monte_carlo"), literal
    every = embgeo.analyze(neighborhood()[0], sections=["tokens"], reference=False)
    asked = sample_rows(np.arange(500), 150, generator(0, "intrinsic dimension"))
    for found, queries in ((every, np.arange(500)), (of_queries(), asked)):
        printed = error(found, name, "population")
        assert printed == pytest.approx(join_ratios(queries), rel=1e-9)
        yield printed, join_ratios(queries)


def join_ratios(queries: npt.NDArray[np.int64]) -> float:
    """Half of the interval of the inverse of the mean ratio, over 1.96."""
    ratios, nearest = neighborhood()[1][queries, 1], neighborhood()[1][:, 2].astype(int)
    n, mean = len(ratios), ratios.mean()
    reach = 1.96 * join_products(ratios - mean, queries, nearest[queries]) / np.sqrt(n * (n - 1))
    return float((n - 1) / n * (1 / (mean - reach) - 1 / (mean + reach)) / 2 / 1.96)


def join_products(away: Rows, asked: npt.NDArray[Any], nearest: npt.NDArray[Any]) -> float:
    """Root of the products over queries that share a row: one is nearest to the other, or the same
    row to both; or over those that are nearest to each other, if these are more.
    """
    rows = [{int(i), int(j)} for i, j in zip(asked, nearest, strict=True)]
    pairs = list(product(zip(rows, away, strict=True), repeat=2))
    shared = sum(a * b for (one, a), (two, b) in pairs if one & two)
    mutual = sum(a * b for (one, a), (two, b) in pairs if one == two)
    return float(np.sqrt(max(shared, mutual)))


@pytest.mark.parametrize("seed", range(6))
def test_queries_that_share_a_row_are_dependent(seed: int) -> None:
    g = np.random.default_rng(seed)
    asked, parts = g.permutation(30)[:20], g.standard_normal(20)
    shared = np.stack([asked, (asked + g.integers(1, 4, 20)) % 30], axis=1)
    literal = join_products(parts, *shared.T)
    assert dimension.sum_dependent(parts, shared) == pytest.approx(literal**2, rel=1e-12)
    three = np.column_stack([shared, (asked + g.integers(4, 7, 20)) % 30])
    sets = list(zip(map(set, three.tolist()), parts, strict=True))
    literal = sum(a * b for (one, a), (two, b) in product(sets, repeat=2) if one & two)
    assert dimension.sum_shared(parts, three) == pytest.approx(literal, rel=1e-9)


def of_near_duplicates(name: str) -> Iterator[Twins]:
    facts: Any = SimpleNamespace(m=1000, d=12)
    found = measure_twins(facts, np.repeat([1.0, 0.0], (120, 180)), "a sample")
    assert found.name == name
    near = np.repeat([1.0, 0.0], (400, 600))
    assert found.standard_error is not None
    yield found.standard_error, draw_some(lambda some: float(some.mean()), near, 300)


def of_other_draws(name: str) -> Iterator[Twins]:
    """Ranks and folds jump without a token: `test_errors_of_ranks_are_the_spread_over_draws`."""
    assert name in OF_RANKS
    yield from ()


def of_parts(name: str) -> Iterator[Twins]:
    """Every twentieth of the 50 queries left out in turn."""
    unit = naive.unit(neighborhood()[0])
    queries = sample_rows(np.arange(500), 50, generator(0, "hubness"))
    near = np.array([[j for j in np.argsort(-(unit @ unit[i])) if j != i][:10] for i in queries])
    places = share_among_equals(near, queries, np.arange(500))
    whole = places.skewness(np.ones(50, dtype=bool), 10)
    assert of_queries()[name].value == pytest.approx(whole, rel=1e-9)
    left = [places.skewness(np.arange(50) % 20 != part, 10) for part in range(20)]
    spread = np.std(np.array(left, dtype=float)) * np.sqrt(20 - 1)
    yield error(of_queries(), name, "monte_carlo"), float(spread * np.sqrt(1 - 50 / 500))


OF_RANKS = (
    "frequency.probe_auc",
    "frequency.neighbor_rarity_rare",
    "frequency.neighbor_rarity_popular",
    "tokens.intrinsic_dimension",
)
TWINS: dict[str, tuple[Callable[[str], Iterator[Twins]], ...]] = {
    **dict.fromkeys(SMOOTH, (of_tokens,)),
    **dict.fromkeys(OF_COSINES, (of_tokens, of_pairs)),
    "isotropy.i1_sampled": (of_runs,),
    "isotropy.i2_sampled": (of_runs,),
    "cosine.mean_between_clusters": (of_clusters,),
    "tokens.clump_rows": (of_size,),
    "tokens.clump_unused_share": (of_unused,),
    "tokens.clump_rarity": (of_rarity,),
    "tokens.mean_cosine_gathered": (of_bound,),
    "frequency.probe_auc": (of_other_draws,),
    "frequency.neighbor_rarity_rare": (of_rare_neighbors, of_other_draws),
    "frequency.neighbor_rarity_popular": (of_rare_neighbors, of_other_draws),
    "tokens.intrinsic_dimension": (of_two_nn, of_other_draws),
    "tokens.near_duplicate_share": (of_near_duplicates,),
    "tokens.hubness": (of_parts,),
}
ANALYSES = (of_all_pairs, of_some, clumped, scattered, of_queries)


@pytest.mark.parametrize("name", TWINS)
def test_an_error_is_the_literal_one(name: str) -> None:
    for twin in TWINS[name]:
        for printed, literal in twin(name):
            assert printed == pytest.approx(literal, rel=0.16), twin.__name__


def test_every_error_that_is_printed_has_a_twin() -> None:
    found = [make() for make in ANALYSES] + [of_groups(240)]
    printed = {scalar.name for one in found for scalar in one.scalars if scalar.errors}
    assert printed == set(TWINS)


#: Where errors are given: a new place has to show its errors to `ANALYSES`.
PLACES = {
    "clump.py": 4, "clusters.py": 2, "dimension.py": 2, "hubs.py": 2, "isotropy.py": 1,
    "neighbors.py": 2, "pairs.py": 2, "probe.py": 1, "row_sample.py": 1,
}  # fmt: skip


def test_every_place_that_gives_an_error_is_known() -> None:
    folder = Path(metrics.__file__).parent
    found = {
        file.name: sum(
            isinstance(node, ast.keyword) and node.arg in ("standard_error", "population_error")
            for node in ast.walk(ast.parse(file.read_text()))
        )
        for file in sorted(folder.glob("*.py"))
    }
    assert {name: count for name, count in found.items() if count} == PLACES


@pytest.mark.slow
def test_errors_of_ranks_are_the_spread_over_draws() -> None:
    drawn = []
    for seed in range(60):
        g = np.random.default_rng(seed)
        counts = np.sort(g.zipf(1.5, 400))[::-1].astype(float)
        rows = g.standard_normal((400, 6))
        rows[:80, 0] += 1.0
        found = one_family.measure(rows, probe, neighbors, dimension, counts=counts)
        drawn.append([(found[name].value, found[name].population_error) for name in OF_RANKS])
    for name, (values, errors) in zip(OF_RANKS, np.array(drawn).transpose(1, 2, 0), strict=True):
        assert 0.8 < np.mean(errors) / np.std(values, ddof=1) < 1.3, name


def test_errors_of_quantiles_are_those_of_the_bootstrap() -> None:
    table = next(table for table in of_some().tables if table.name == "cosine.quantiles")
    for level, value, printed in table.rows:
        q = float(level or 0.0)
        assert value == pytest.approx(np.quantile(drawn_cosines(), q), rel=1e-9)
        literal = bootstrap(lambda some, q=q: float(np.quantile(some, q)), drawn_cosines())
        assert printed == pytest.approx(literal, rel=0.2), q

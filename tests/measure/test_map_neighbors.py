"""The map of a report shows true neighbors by cosine, of as many rows as fit the budget."""

from __future__ import annotations

import numpy as np
import pytest

import embgeo
from embgeo.core.matrix import Frequency, Matrix
from embgeo.measure import analyze as measuring
from embgeo.metrics import neighbors as searching

N, D, K = 700, 6, 10


def make_matrix() -> Matrix:
    W = np.random.default_rng(3).standard_normal((N, D)) + 0.4
    W[5] = 0.0
    counts = np.random.default_rng(4).permutation(np.arange(1.0, N + 1.0))
    return Matrix(W, frequency=Frequency("counts", counts, "made up"))


def neighbors(W: np.ndarray, row: int) -> list[int]:
    """The k nearest other rows, one cosine at a time."""
    cosines = {
        other: float(W[row] @ W[other] / np.linalg.norm(W[row]) / np.linalg.norm(W[other]))
        for other in range(N)
        if other != row and W[other].any()
    }
    return sorted(cosines, key=lambda other: -cosines[other])[:K]


def test_every_row_has_its_true_neighbors() -> None:
    matrix = make_matrix()
    analysis = embgeo.analyze(matrix, reference=False)
    assert analysis.nearest is not None
    assert analysis.rows[analysis.nearest.rows].tolist() == [row for row in range(N) if row != 5]
    for place in (0, 300, N - 2):
        row = int(analysis.rows[analysis.nearest.rows[place]])
        found = analysis.rows[analysis.nearest.neighbors[place]].tolist()
        assert found == neighbors(np.asarray(matrix.data), row)


def test_a_large_matrix_has_those_of_the_rows_that_were_searched_and_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measuring, "ALL_PRODUCTS", 0)
    make_large(monkeypatch)
    matrix = make_matrix()
    analysis = embgeo.analyze(matrix, reference=False)
    assert analysis.nearest is not None
    rows = analysis.rows[analysis.nearest.rows].tolist()
    listed = {row for table in analysis.tables for row in measuring.list_rows(table)} - {5}
    assert listed < set(rows)
    assert 40 < len(rows) < 500
    for place in (7, len(rows) - 1):
        found = analysis.rows[analysis.nearest.neighbors[place]].tolist()
        assert found == neighbors(np.asarray(matrix.data), rows[place])


def test_without_a_map_only_tables_are_served() -> None:
    analysis = embgeo.analyze(make_matrix(), sections=["spectrum"], reference=False)
    assert analysis.nearest is None


def make_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hubs and rarity be searched by samples of rows, as those of a large matrix are."""
    monkeypatch.setattr(searching, "ALL_ROWS", 0)
    monkeypatch.setattr(searching, "HUB_QUERIES", 40)
    monkeypatch.setattr(searching, "CLASS_QUERIES", (20, 20))


@pytest.mark.parametrize(
    ("limit", "sections"),
    [("ALL_PRODUCTS", ["projection", "tokens"]), ("COMPARED_PRODUCTS", ["projection"])],
)
def test_the_last_size_that_is_searched_whole(
    limit: str, sections: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_large(monkeypatch)
    products = (N - 1) ** 2 * D // 2
    for bound in (products, products - 1):
        monkeypatch.setattr(measuring, limit, bound)
        found = embgeo.analyze(make_matrix(), sections=sections, reference=False).nearest
        assert (found is not None and len(found.rows) == N - 1) is (bound == products)


def test_a_comparison_searches_all_rows_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    products = (N - 1) ** 2 * D // 2
    for bound, rows in ((products, N - 1), (products - 1, 0)):
        monkeypatch.setattr(measuring, "COMPARED_PRODUCTS", bound)
        compared = embgeo.diff(make_matrix(), make_matrix(), sections=["projection"], queries=0)
        for member in compared.members:
            nearest = member.analysis.nearest
            assert (0 if nearest is None else len(nearest.rows)) == rows


def test_a_search_of_all_rows_serves_the_map_too() -> None:
    matrix = make_matrix()
    searched = embgeo.analyze(matrix, neighbors_of="all", reference=False).nearest
    mapped = embgeo.analyze(matrix, sections=["projection"], reference=False).nearest
    assert searched is not None
    assert mapped is not None
    assert np.array_equal(searched.neighbors, mapped.neighbors)


def test_sampled_queries_take_their_neighbors_from_a_search_of_all_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_large(monkeypatch)
    alone, mapped = (
        embgeo.analyze(make_matrix(), sections=sections, reference=False)
        for sections in (["frequency", "tokens"], ["frequency", "tokens", "projection"])
    )
    searched = {one.name: one for one in mapped.scalars}
    assert {"tokens.hubness", "frequency.neighbor_rarity_rare"} <= searched.keys()
    assert alone.nearest is not None
    assert len(alone.nearest.rows) < N - 1
    for scalar in alone.scalars:
        assert scalar == searched[scalar.name]
    tables = {table.name: table.rows for table in mapped.tables}
    for table in alone.tables:
        assert table.rows == tables[table.name]

"""The nearest rows of the tokens that tables name, by their obvious twin."""

from __future__ import annotations

import numpy as np
import pytest

import embgeo
from embgeo.core.options import Options
from embgeo.measure.analyze import list_rows
from embgeo.metrics import neighbors


def rows_in_a_cone() -> np.ndarray:
    W = np.random.default_rng(0).standard_normal((120, 6)) + 0.5
    W[7] = 0.0  # damaged: listed, but without a direction
    W[9] = W[8]
    return W


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbors, "ALL_ROWS", 50)
    monkeypatch.setattr(neighbors, "HUB_QUERIES", 5)


@pytest.mark.usefixtures("few_queries")
@pytest.mark.parametrize("of", ["sample", "all"])
def test_named_rows_have_their_nearest_rows(of: str) -> None:
    W = rows_in_a_cone()
    found = embgeo.analyze(
        W, sections=["tokens"], reference=False, options=Options(neighbors=4, neighbors_of=of)
    )
    near = found.nearest
    assert near is not None
    named = {number for table in found.tables for number in list_rows(table)}
    assert named & set(list_rows(found["tokens.nearest_to_mean"]))
    assert 7 in named
    assert named - {7} <= set(found.rows[near.rows])
    assert (len(near.rows) < len(found.rows)) == (of == "sample")
    assert np.all(np.diff(near.rows) > 0)
    kept = W[found.rows]
    unit = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    expected = np.argsort(-np.round(cosines, 10), axis=1, kind="stable")[near.rows, :4]
    np.testing.assert_array_equal(near.neighbors, expected)
    np.testing.assert_allclose(
        near.cosines, np.take_along_axis(cosines[near.rows], expected, axis=1), rtol=1e-6
    )

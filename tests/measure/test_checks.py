"""What cannot be measured is refused before the work begins."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.core.errors import EmbgeoError
from embgeo.core.matrix import Matrix
from embgeo.measure import passes
from embgeo.measure.analyze import analyze
from embgeo.stats.resources import SQUARE_BYTES, Resources


def test_a_matrix_of_too_many_columns_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passes, "MOST_COLUMNS", 20)
    with pytest.raises(EmbgeoError, match=r"21 columns; .* up to 20; .*transpose"):
        analyze(Matrix(np.ones((8, 21))))
    analyze(Matrix(np.eye(8, 20)), sections=["spectrum"], reference=False)


@pytest.mark.parametrize(("shape", "entries"), [((40, 20), 20 * 20), ((5, 20), 5 * 20)])
def test_a_matrix_that_memory_cannot_hold_is_refused_before_it_is_read(
    shape: tuple[int, int], entries: int
) -> None:
    """Few rows need matrices of rows × columns only."""
    matrix, need = Matrix(np.eye(*shape)), SQUARE_BYTES * entries
    with pytest.raises(EmbgeoError, match=r"memory: matrices of .* × .* than .*; allow more"):
        analyze(matrix, resources=Resources(memory=need - 1))
    for memory in (need, None):
        found = analyze(
            matrix, resources=Resources(memory=memory), sections=["spectrum"], reference=False
        )
        assert found["spectrum.numerical_rank"] == min(shape)


def test_without_a_limit_wide_matrices_get_what_they_need() -> None:
    assert not Resources().explain_refusal(10**5, 16_384)
    refused = Resources(memory=2**30).explain_refusal(10**5, 16_384)
    assert "10,737 MB at 100,000 × 16,384" in refused
    assert "1,074 MB that are allowed" in refused
    assert not Resources(memory=2**28).explain_refusal(8, 8192)

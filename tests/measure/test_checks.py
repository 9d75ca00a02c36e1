"""What cannot be measured is refused before the work begins."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.core.errors import EmbgeoError
from embgeo.core.matrix import Matrix
from embgeo.measure import passes
from embgeo.measure.analyze import analyze


def test_a_matrix_of_too_many_columns_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passes, "MOST_COLUMNS", 20)
    with pytest.raises(EmbgeoError, match=r"21 columns; .* up to 20; .*transpose"):
        analyze(Matrix(np.ones((8, 21))))
    analyze(Matrix(np.eye(8, 20)), sections=["spectrum"], reference=False)

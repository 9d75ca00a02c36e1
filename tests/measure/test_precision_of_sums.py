"""Scatter matrices that are summed in float32, and again in float64 where that would show."""

from __future__ import annotations

import numpy as np
import pytest

import embgeo
from embgeo.metrics import shared
from tests.stats.test_moments import make_rows

SECTIONS = ["spectrum", "cosine", "isotropy", "frequency"]
#: A gap between neighboring eigenvalues has the absolute error of these.
GAP = "isotropy.eigengap"


def measure(
    kind: str, n: int, monkeypatch: pytest.MonkeyPatch, least: float
) -> dict[str, float | None]:
    monkeypatch.setattr(shared, "PROBED", least)
    counts = np.floor(1e6 / np.arange(1.0, n + 1.0))
    found = embgeo.analyze(make_rows(kind, n), counts=counts, sections=SECTIONS, reference=False)
    return {scalar.name: scalar.value for scalar in found.scalars}


@pytest.mark.slow
def test_numbers_of_even_spectra_are_those_of_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    single, wide = (measure("even", 5000, monkeypatch, least) for least in (0, np.inf))
    assert single.keys() == wide.keys()
    assert single["spectrum.condition_number"] != wide["spectrum.condition_number"]
    for name, value in wide.items():
        close = {"rel": 1e-6, "abs": 1e-6 if name == GAP else 1e-9}
        assert single[name] == (None if value is None else pytest.approx(value, **close)), name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["steep", "heavy norms"])
def test_sums_are_repeated_in_float64_where_rounding_would_show(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    single, wide = (measure(kind, 1000, monkeypatch, least) for least in (0, np.inf))
    assert single == wide

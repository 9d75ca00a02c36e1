"""Names of earlier versions, and why each scalar that is left is there."""

from __future__ import annotations

import numpy as np

import embgeo
from embgeo.core.quantities import QUANTITIES
from embgeo.core.quantities.retired import RETIRED


def test_a_retired_name_is_measured_no_more_and_leads_to_one_that_is() -> None:
    for name, retired in RETIRED.items():
        assert name not in QUANTITIES
        assert retired.replacement is None or retired.replacement in QUANTITIES, name
        assert retired.reason


def test_every_scalar_says_why_it_is_there() -> None:
    rng = np.random.default_rng(0)
    counts = np.sort(rng.zipf(1.5, 400))[::-1].astype(float)
    found = embgeo.analyze(rng.standard_normal((400, 8)), counts=counts, reference=False)
    assert [one.name for one in found.scalars if not QUANTITIES[one.name].why] == []
    assert len(found.scalars) < 80

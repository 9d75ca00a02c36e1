"""docs/diff.md names every field of a comparison and every number of a pair, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embgeo.comparison.track import Places
from embgeo.core.quantities import compare as quantities
from embgeo.core.values import Quantity
from tests.support.compared import comparison, enter_pair
from tests.support.documents import ROOT, list_fields
from tests.support.matrices import gaussian

PAGE = (ROOT / "docs/diff.md").read_text("utf-8")
FREE_KEYS = ("provenance.versions", "timing")
#: Described in docs/analysis-json.md.
AS_IN_ANALYSES = tuple(
    f"pairs[].{k}" for k in ("scalars", "series", "histograms", "columns", "tables")
)


def fields(value: Any, path: str = "") -> Iterator[str]:
    if path:
        yield path
    if path in AS_IN_ANALYSES:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            name = "*" if path in FREE_KEYS else key
            yield from fields(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                for key, inner in item.items():
                    yield from fields(inner, f"{path}[].{key}")


def made() -> Any:
    """A track whose curves bend, of matrices that share some tokens."""
    runs = []
    for i, depth in enumerate([0.0] * 6 + [0.5, 1.0, 1.5, 2.0, 2.5]):
        tokens = tuple(f"t{row + i % 2}" for row in range(40))
        W = gaussian(60, n=40) + depth + 1e-3 * gaussian(61 + i, n=40)
        sections = ("cosine", "tokens")
        runs.append(enter_pair(W, f"c-{i}", tokens=tokens, sections=sections, step=float(i)))
    found = comparison(*runs, track="made")
    places = (Places(0, np.zeros((40, 2), np.float32)),)
    return replace(found, track=replace(found.track, places=places))


@pytest.mark.slow
def test_every_field_is_documented_and_the_other_way_round(tmp_path: Path) -> None:
    tracked = made()
    documented = [n for n in list_fields(PAGE) if not n.startswith("compare.")]
    assert len(documented) == len(set(documented))
    assert set(documented) - {"arrays_sha256"} == set(fields(tracked.to_dict()))
    tracked.save(tmp_path)
    with np.load(tmp_path / "arrays.npz") as stored:
        names = {re.sub(r"\d+-\d+", "FIRST-SECOND", name) for name in stored.files}
    assert names == {
        "pairs/FIRST-SECOND/matching/first",
        "pairs/FIRST-SECOND/matching/second",
        "pairs/FIRST-SECOND/columns/compare.token_overlap",
        "track/places/0",
    }


@pytest.mark.slow
def test_every_number_of_a_pair_is_documented_and_the_other_way_round() -> None:
    known = {q.name for q in vars(quantities).values() if isinstance(q, Quantity)}
    assert set(re.findall(r"`(compare\.\w+)`", PAGE)) | {"compare.overlap_histogram"} == known
    held = {v.name for p in made().pairs for v in p.values()}
    assert held == known

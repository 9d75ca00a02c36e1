"""Which suspects came, went and stayed."""

from __future__ import annotations

import numpy as np
import pytest

import embgeo
from embgeo.comparison.suspects import compare_suspects
from embgeo.result.analysis import Analysis


def analyze(zero: list[int], copies: list[int], tokens: list[str] | None = None) -> Analysis:
    rows = np.random.default_rng(0).standard_normal((80, 12))
    rows[zero] = 0.0
    rows[copies] = rows[0]
    return embgeo.analyze(rows, tokens=tokens, sections=["suspects"], reference=False)


@pytest.mark.parametrize("named", [False, True])
def test_suspects_are_matched_by_token_or_row(named):
    tokens = [f"t{i}" for i in range(80)] if named else None
    # With tokens, the rows of the second matrix are in another order.
    moved = tokens[::-1] if tokens else None
    place = (lambda row: 79 - row) if named else (lambda row: row)
    before = analyze([3, 5], [7], tokens)
    after = analyze([place(5), place(9)], [], moved)
    label = (lambda row: f"t{row}") if named else (lambda _row: None)
    changes = list(compare_suspects(before, after, 1, by_token=named))
    assert [(one.reason, one.came, one.went, one.stayed) for one in changes] == [
        ("zero", ((place(9), label(9)),), ((3, label(3)),), ((place(5), label(5)),)),
        ("duplicate", (), ((7, label(7)),), ()),
    ]


def test_a_comparison_keeps_them(tmp_path):
    found = embgeo.diff(analyze([3], []), analyze([4], [], None), match="row")
    [change] = found.suspects
    assert (change.member, change.came, change.went) == (1, ((4, None),), ((3, None),))
    found.save(tmp_path / "both")
    assert embgeo.load_comparison(tmp_path / "both").suspects == found.suspects

"""What the page of a comparison carries: the same tokens in every matrix, on shared scales."""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.film import share_rows
from embgeo.comparison.matching import Matching
from embgeo.comparison.pair import Pair
from embgeo.report.comparison import render
from embgeo.report.comparison_payload import build, choose_mapped
from tests.report.test_payload import column
from tests.support.sample_analysis import sample
from tests.support.sample_comparison import sample_comparison
from tests.support.sampling import sample_cases


def unpack(comparison: Comparison, **options: int) -> tuple[dict[str, Any], bytes]:
    payload = build(comparison, **options)
    assert payload is not None
    return payload.meta, gzip.decompress(base64.b64decode(payload.block))


def matched(first: Any, second: Any) -> Comparison:
    """Two members, the rows of which are matched like this."""
    found = sample_comparison()
    matching = Matching("token", "said so", np.asarray(first), np.asarray(second))
    return replace(found, pairs=(replace(found.pairs[0], matching=matching),))


def test_rows_of_all_members_are_those_of_the_same_tokens() -> None:
    reversed_rows = np.arange(600)[::-1]
    found = matched(np.arange(600), reversed_rows)
    meta, raw = unpack(found)
    assert (meta["rows"], meta["total"]) == (600, 600)
    first, second = meta["members"]
    assert column(raw, second["number"]).tolist() == reversed_rows.tolist()
    for member, analysis, rows in (
        (first, found.members[0].analysis, np.arange(600)),
        (second, found.members[1].analysis, reversed_rows),
    ):
        view = member["views"][0]
        points = next(p for p in analysis.points if p.name == view["key"])
        xy = np.stack([column(raw, view["x"]), column(raw, view["y"])], axis=1)
        span = view["x"]["high"] - view["x"]["low"]
        assert np.abs(xy - points.xy[rows]).max() <= span / 65535


def test_only_tokens_that_every_shown_matrix_holds_are_on_the_page() -> None:
    found = sample_comparison(members=3)
    kept = (np.array([1, 3, 5, 7]), np.array([3, 5, 7, 9]))
    pairs = tuple(
        replace(p, matching=Matching("token", "", at, at + 10))
        for p, at in zip(found.pairs, kept, strict=True)
    )
    rows = share_rows(replace(found, pairs=pairs), [0, 1, 2])
    assert rows[0].tolist() == [3, 5, 7]
    assert rows[1].tolist() == rows[2].tolist() == [13, 15, 17]


@pytest.mark.slow
def test_members_that_were_not_matched_have_no_map() -> None:
    found = sample_comparison(members=3)
    pairs = (replace(found.pairs[0], matching=Matching(None, "other sizes")), found.pairs[1])
    assert choose_mapped(replace(found, pairs=pairs)) == [0, 2]
    alone = replace(found, pairs=(pairs[0],))
    assert build(alone) is None
    text = render(replace(alone, members=found.members[:2], differences=(), suspects=()))
    assert "No interactive maps: other sizes." in text


def test_points_are_bounded_over_all_members_together() -> None:
    meta, _ = unpack(sample_comparison(members=3), most=300)
    assert (meta["rows"], meta["total"]) == (100, 590)
    assert len(meta["members"]) == 3


def test_one_box_holds_all_maps() -> None:
    meta, _ = unpack(sample_comparison())
    for key, shared in meta["boxes"].items():
        for member in meta["members"]:
            own = next(v["box"] for v in member["views"] if v["key"] == key)
            assert shared["box"][0] <= own[0]
            assert shared["box"][1] >= own[1]
    assert all(box["same"] for box in meta["boxes"].values())


def test_moved_tokens_lead_to_their_rows() -> None:
    found = sample_comparison()
    meta, _ = unpack(found)
    tokens = found.baseline.analysis.tokens
    assert tokens is not None
    lines = meta["moved"]["1"]
    row = found.pairs[0].tables[0].rows[3]
    assert [tokens[i] for i in lines[3]] == [row[0], *row[3:]]


def test_moved_rows_without_tokens_are_found_by_their_number() -> None:
    found = sample_comparison()
    pair = found.pairs[0]
    table = pair.tables[0]
    row = ("row 17", 0.4, 0.1, *(f"row {i}" for i in range(20)))
    unnamed = replace(found.members[0], analysis=replace(found.members[0].analysis, tokens=None))
    changed = replace(
        found,
        members=(unnamed, found.members[1]),
        pairs=(replace(pair, tables=(replace(table, rows=(row,)),)),),
    )
    meta, _ = unpack(changed)
    assert meta["moved"]["1"] == [[17, *(i for i in range(20) if i != 17)]]


@pytest.mark.parametrize(("n", "most"), sample_cases([(10_000, 2_000_000), (50_000, 7_500_000)], 2))
@pytest.mark.slow
def test_page_of_many_tokens_twice_stays_small(n: int, most: int) -> None:
    rows = np.arange(n, dtype=np.int64)
    members = tuple(
        Member(name, f"{name}.pt", sample(shape, n=n, d=8, untied=False, seed=i))
        for i, (name, shape) in enumerate((("a", "cone"), ("b", "isotropic")))  # type: ignore[arg-type]
    )
    pair = Pair(0, 1, Matching("token", "both have tokens", rows, rows))
    page = render(Comparison(provenance={}, members=members, pairs=(pair,)))
    assert len(page.encode()) < most

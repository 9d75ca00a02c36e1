"""The block of binary columns that the page carries: exact tokens, equal scales, fair thinning."""

from __future__ import annotations

import base64
import gzip
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.rows import NearestRows
from embgeo.report.payload import BITS_AT_ONCE, MOST_UNITS, DataBlock, build, find_near, thin
from embgeo.report.token_states import list_left_out
from embgeo.result.analysis import Analysis
from tests.support.sample_analysis import HOSTILE, sample


def unpack(analysis: Analysis) -> tuple[dict[str, Any], bytes]:
    payload = build(analysis)
    assert payload is not None
    return payload.meta, gzip.decompress(base64.b64decode(payload.block))


def column(raw: bytes, described: dict[str, Any]) -> Any:
    stored = np.frombuffer(
        raw, np.dtype(described["type"]).newbyteorder("<"), described["length"], described["at"]
    )
    if "bits" in described:
        held = np.unpackbits(stored)[: described["count"] * described["bits"]]
        return held.reshape(-1, described["bits"]) @ (2 ** np.arange(described["bits"])[::-1])
    if "low" not in described:
        return stored
    return described["low"] + stored * (described["high"] - described["low"]) / 65535


def test_block_holds_every_token_exactly() -> None:
    meta, raw = unpack(sample(hostile=True))
    lengths = column(raw, meta["tokens"]["lengths"])
    units = column(raw, meta["tokens"]["units"])
    ends = np.cumsum(lengths)
    for token, start, stop in zip(HOSTILE, ends - lengths, ends, strict=False):
        stored = units[start:stop].astype("<u2").tobytes().decode("utf-16-le", "surrogatepass")
        assert stored == token[:MOST_UNITS]


def test_block_keeps_coordinates_within_a_step_and_the_same_scale() -> None:
    analysis = sample()
    meta, raw = unpack(analysis)
    for view, points in zip(meta["views"], analysis.points, strict=True):
        x, y = column(raw, view["x"]), column(raw, view["y"])
        step = (view["x"]["high"] - view["x"]["low"]) / 65535
        assert view["y"]["high"] - view["y"]["low"] == pytest.approx(step * 65535)
        assert np.abs(np.stack([x, y], 1) - points.xy).max() <= step * 0.51
        left, right, bottom, top = view["box"]
        assert left < 0 < right
        assert bottom < 0 < top


def test_the_first_plane_has_the_mean_row_and_the_reach_of_isotropic_rows() -> None:
    analysis = sample()
    (view,) = (one for one in unpack(analysis)[0]["views"] if "mean" in one)
    (points,) = (one for one in analysis.points if one.name == view["key"] == "projection.svd2")
    assert view["mean"] == points.xy.mean(axis=0).tolist()
    scale = analysis.scalar("tokens.norm_rms").value / 4.0  # of 16 coordinates
    drawn = scale * np.random.default_rng(0).standard_normal((100_000, 2))
    within = np.hypot(*drawn.T) < view["isotropic"]
    assert within.mean() == pytest.approx(0.95, abs=0.005)


def test_heavy_tails_keep_their_bulk() -> None:
    analysis = deepcopy(sample())
    norms = next(c for c in analysis.columns if c.name == "tokens.norm")
    norms.values[0] = 1e6
    meta, raw = unpack(analysis)
    described = next(c for c in meta["columns"] if c["key"] == "tokens.norm")["values"]
    assert described["type"] == "float32"
    assert column(raw, described) == pytest.approx(norms.values, rel=1e-6)
    # The largest entries of float32 have longer rows.
    assert DataBlock().add_floats(np.array([1e39, np.nan]), 0.0, 1.0)["type"] == "float32"


def test_thinning_keeps_every_stratum_of_frequency() -> None:
    counts = np.floor(1e6 / np.arange(1.0, 100_001.0))
    rows = thin(counts, len(counts), 10_000)
    assert len(rows) == len(set(rows.tolist())) == 10_000
    assert np.all(np.histogram(rows, bins=10, range=(0, 100_000))[0] == 1000)
    assert np.array_equal(thin(counts, len(counts), 100_000), np.arange(100_000))
    assert len(thin(None, 1003, 17)) == 17


def test_thinned_page_says_how_many_there_are() -> None:
    payload = build(sample(), most=100)
    assert payload is not None
    assert (payload.meta["rows"], payload.meta["total"]) == (100, 600)
    assert payload.meta["views"][0]["x"]["length"] == 100


def test_nearest_rows_have_their_places_on_the_page() -> None:
    analysis = sample()
    assert analysis.nearest is not None
    payload = build(analysis, most=100)
    assert payload is not None
    raw = gzip.decompress(base64.b64decode(payload.block))
    described = payload.meta["nearest"]
    near, cosines = (column(raw, described[key]) for key in ("near", "cosines"))
    assert described["rows"] is None  # all
    asked = payload.rows
    assert set(asked) == set(payload.rows) & set(analysis.nearest.rows)
    places = np.searchsorted(analysis.nearest.rows, asked)
    expected = analysis.nearest.neighbors[places]
    shown = np.isin(expected, payload.rows)
    assert 0 < shown.sum() < shown.size
    # A neighbor that is left out has the place of the row itself.
    found = payload.rows[near.reshape(expected.shape)]
    assert np.array_equal(found, np.where(shown, expected, asked[:, None]))
    assert cosines.reshape(expected.shape) == pytest.approx(
        analysis.nearest.cosines[places], abs=2e-5
    )


def test_places_of_neighbors_take_as_many_bits_as_the_largest() -> None:
    rng = np.random.default_rng(0)
    for largest, bits in ((2**16 - 1, 16), (2**16, 17), (1, 1)):
        block = DataBlock()
        values = rng.integers(0, largest, (BITS_AT_ONCE + 3, 2), endpoint=True)
        described = block.add_bits(values, largest.bit_length())
        assert described["bits"] == bits
        assert described["length"] == -(-2 * bits * len(values) // 8)
        assert np.array_equal(column(b"".join(block.parts), described), values.ravel())


def test_some_nearest_rows_have_the_places_of_those_that_were_asked() -> None:
    analysis = sample()
    assert analysis.nearest is not None
    some = NearestRows(*(part[::2] for part in nearest_parts(analysis)))
    meta, raw = unpack(replace(analysis, nearest=some))
    assert np.array_equal(column(raw, meta["nearest"]["rows"]), some.rows)
    assert np.array_equal(column(raw, meta["nearest"]["near"]), some.neighbors.ravel())


def nearest_parts(analysis: Analysis) -> tuple[Any, Any, Any]:
    assert analysis.nearest is not None
    return analysis.nearest.rows, analysis.nearest.neighbors, analysis.nearest.cosines


def test_a_page_without_nearest_rows_says_so() -> None:
    payload = build(replace(sample(), nearest=None))
    assert payload is not None
    assert payload.meta["nearest"] is None


def test_a_token_says_which_tables_list_it() -> None:
    analysis = sample()
    payload = build(analysis, most=100)
    assert payload is not None
    expected: dict[int, list[str]] = {}
    for table in analysis.tables:
        for cells in table.rows if table.columns[0] == "row" else ():
            places = np.flatnonzero(payload.rows == cells[0])
            if len(places):
                expected.setdefault(int(places[0]), []).append(table.quantity.title)
    assert expected
    assert payload.meta["listed"] == expected


def test_the_suspects_are_packed_with_their_numbers() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 8))
    rows[7], rows[11], rows[13] = 0.5, rows[9], 0.0
    names = [f"t{i}" for i in range(60)]
    analysis = embgeo.analyze(
        rows, tokens=names, sections=["suspects", "projection"], reference=False
    )
    meta, raw = unpack(analysis)
    found = {one["reason"]: column(raw, one["rows"]).tolist() for one in meta["suspects"]}
    assert found == {"zero": [13], "constant": [7], "duplicate": [11]}
    [duplicate] = [one for one in meta["suspects"] if one["reason"] == "duplicate"]
    assert column(raw, duplicate["group"]).tolist() == [9]
    assert column(raw, duplicate["norms"]).tolist() == pytest.approx([np.linalg.norm(rows[11])])
    assert column(raw, duplicate["tokens"]["units"]).tolist() == [ord(c) for c in "t11"]
    assert meta["left_out"] == {13: {"state": "zero row", "norm": 0.0}}
    places = {one["word"]: column(raw, one["rows"]).tolist() for one in meta["states"]}
    assert places == {"constant row": [7], "duplicate": [11]}


def test_a_kept_row_of_a_very_large_matrix_that_is_not_listed_is_not_called_left_out() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 8))
    rows[7], rows[9] = 0.5, 0.0
    analysis = embgeo.analyze(rows, sections=["suspects"], reference=False)
    assert list_left_out(analysis) == {9: {"state": "zero row", "norm": 0.0}}
    assert list_left_out(replace(analysis, rows=np.setdiff1d(analysis.rows, [7]))) == {}


@pytest.mark.slow
def test_the_state_of_a_token_is_said_in_words() -> None:
    analysis = with_a_clump()
    meta, raw = unpack(analysis)
    found = {one["word"]: set(column(raw, one["rows"]).tolist()) for one in meta["states"]}
    assert found["row in a clump of hardly trained tokens"] == set(range(60))
    assert found["unused by its spelling"] == set(range(30))
    assert found["special by its spelling"] == {599}
    assert found["never counted"] == {0, 1, 2, 3}
    assert meta["left_out"] == {600: {"state": "zero row", "norm": 0.0}}


def with_a_clump() -> embgeo.Analysis:
    rows = np.random.default_rng(4).standard_normal((601, 8))
    rows[:60] = 0.02 * rows[:60] + 0.1
    rows[600] = 0.0
    names = [
        *(f"[unused{i}]" for i in range(30)),
        *(f"t{i}" for i in range(30, 599)),
        "<s>",
        "gone",
    ]
    counts = np.array([0, 0, 0, 0, *range(4, 601)], dtype=float)
    return embgeo.analyze(
        rows,
        tokens=names,
        counts=counts,
        sections=["tokens", "suspects", "projection", "cosine", "frequency"],
        reference=False,
    )


def test_the_last_row_of_a_page_may_be_nobodys_neighbor() -> None:
    own, near, shown = find_near(np.array([1, 2]), np.array([[0], [1]]), np.array([0, 1, 5]))
    assert (own.tolist(), near.tolist(), shown.tolist()) == ([1], [[0]], [True, False])

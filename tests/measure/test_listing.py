"""Very large matrices list some of their rows; their numbers are of all."""

from __future__ import annotations

import numpy as np
import pytest

import embgeo
from embgeo.comparison.differences import PAIRED, have_same_halves, population_error
from embgeo.comparison.matching import match_rows
from embgeo.core import rows as listed_rows
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.options import Options
from embgeo.core.rows import choose_bound, find_listed, is_listed
from embgeo.measure.analyze import list_rows
from embgeo.metrics import neighbors
from embgeo.result.analysis import load_analysis
from tests.support.in_parts import in_parts
from tests.support.outlined import outline_figures

N, D = 1_500, 12


def matrix(seed=0, shift=0.4, rows=N):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((rows, D)) + shift
    W[7] = 0.0
    counts = np.floor(1e6 / (1.0 + np.arange(rows)))
    tokens = tuple(f"token{row}" for row in range(rows))
    return Matrix(W, tokens=tokens, frequency=Frequency("counts", counts, "made up"))


QUICK = {"options": embgeo.Options(), "reference": False}


def set_limits(monkeypatch):
    monkeypatch.setattr(listed_rows, "EVERY", 1_000)
    monkeypatch.setattr(listed_rows, "LISTED", 400)


@pytest.fixture
def small_limit(monkeypatch):
    set_limits(monkeypatch)


@pytest.fixture(scope="module")
def whole():
    return embgeo.analyze(matrix(), **QUICK)


@pytest.fixture(scope="module")
def listed():
    with pytest.MonkeyPatch.context() as monkeypatch:
        set_limits(monkeypatch)
        return embgeo.analyze(matrix(), **QUICK)


def test_numbers_are_of_all_rows(whole, listed):
    assert [one.name for one in listed.values()] == [one.name for one in whole.values()]
    for name in ("series", "histograms", "tables"):
        assert repr(getattr(listed, name)) == repr(getattr(whole, name))
    for one, other in zip(listed.scalars, whole.scalars, strict=True):
        assert one == other


def test_whatever_has_an_entry_a_row_is_that_of_the_listed_rows(whole, listed):
    places = np.flatnonzero(np.isin(whole.rows, listed.rows))
    assert 300 < len(places) == len(listed.rows) == listed.provenance["listed"] < 500
    assert listed.provenance["kept"] == listed.kept == whole.kept == len(whole.rows) == N - 1
    assert "listed" not in whole.provenance
    assert [note.code for note in listed.notes] == ["zero", "listed"]
    np.testing.assert_array_equal(listed.counts, whole.counts[places])
    np.testing.assert_array_equal(listed.popular, whole.popular[places])
    assert listed.tokens == tuple(whole.tokens[place] for place in places)
    for one, other in zip(listed.points, whole.points, strict=True):
        np.testing.assert_allclose(one.xy, other.xy[places], rtol=1e-12, atol=1e-12)
    for one, other in zip(listed.columns, whole.columns, strict=True):
        np.testing.assert_array_equal(one.values, other.values[places])
    assert listed.nearest is None


@pytest.mark.slow
@pytest.mark.usefixtures("small_limit")
def test_parts_list_the_rows_of_the_whole(listed):
    whole = matrix()
    cuts = [(0, 1_100), (1_100, 1_101), (1_101, N)]
    merged = in_parts(whole, cuts, **QUICK)
    np.testing.assert_array_equal(merged.rows, listed.rows)
    for one, other in zip(merged.points, listed.points, strict=True):
        np.testing.assert_allclose(one.xy, other.xy, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_it_is_saved_and_shown(listed, tmp_path):
    listed.save(tmp_path)
    loaded = load_analysis(tmp_path)
    assert loaded.to_dict() == listed.to_dict()
    with outline_figures():
        page = embgeo.render(loaded)
    assert f"maps and columns show {len(listed.rows):,} of 1,499 rows" in page


@pytest.mark.slow
@pytest.mark.usefixtures("small_limit")
def test_differences_are_judged_by_the_rows_that_both_list():
    old, new = (embgeo.analyze(matrix(shift=shift), **QUICK) for shift in (0.4, 0.5))
    matching = match_rows(old, new)
    assert matching.by == "row"
    assert matching.shared == len(old.rows)
    assert match_rows(old, new, "token").by is None
    means = (old["cosine.mean"], new["cosine.mean"])
    found = population_error(*means, (old, new), have_same_halves((old, new), matching))
    assert found.note == PAIRED
    assert found.standard_error < 0.5 * np.hypot(*(mean.population_error for mean in means))
    with outline_figures():
        assert "1,499 × 12" in embgeo.render(embgeo.diff(old, new))


@pytest.mark.usefixtures("small_limit")
def test_of_other_numbers_of_rows_nothing_is_matched_unless_asked():
    old, new = (
        embgeo.analyze(matrix(rows=rows), sections=["projection"], **QUICK) for rows in (N, 1_200)
    )
    assert match_rows(old, new).by is None
    common = match_rows(old, new, "row")
    assert common.by == "row"
    # Fewer rows have a higher bound: what the larger one lists of them, both do.
    assert common.shared == np.count_nonzero(old.rows < 1_200)


@pytest.mark.parametrize("rows", [1_001, 5_000, 123_456])
@pytest.mark.usefixtures("small_limit")
def test_as_many_as_said_are_chosen_uniformly(rows):
    bound = choose_bound(rows)
    listed = find_listed(np.arange(rows), bound)
    share = 400 / rows
    assert abs(len(listed) - 400) < 5 * np.sqrt(rows * share * (1 - share))
    half = np.count_nonzero(listed < rows / 2)
    assert abs(half - 200) < 5 * np.sqrt(200)
    assert abs(np.count_nonzero(listed % 2) - 200) < 5 * np.sqrt(200)


def test_a_choice_does_not_depend_on_blocks():
    numbers = np.arange(10_000)
    bound = 2**61
    blocks = [is_listed(numbers[at : at + 7], bound) for at in range(0, 10_000, 7)]
    np.testing.assert_array_equal(np.concatenate(blocks), is_listed(numbers, bound))
    np.testing.assert_array_equal(
        np.flatnonzero(is_listed(numbers, bound)), find_listed(numbers, bound)
    )
    assert choose_bound(listed_rows.EVERY) is None
    assert choose_bound(listed_rows.EVERY + 1) is not None


# --- The nearest rows of the tokens that tables name, by their obvious twin -----------------------


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
    options = Options(neighbors=4, neighbors_of=of)
    found = embgeo.analyze(W, sections=["suspects", "tokens"], reference=False, options=options)
    near = found.nearest
    assert near is not None
    named = {number for table in found.tables for number in list_rows(table)}
    named |= {row for own in found.suspects for row in own.rows.tolist()}
    assert named & set(list_rows(found["tokens.nearest_to_mean"]))
    assert 7 in named
    assert named - {7} <= set(found.rows[near.rows])
    assert (len(near.rows) < len(found.rows)) == (of == "sample")
    assert np.all(np.diff(near.rows) > 0)
    kept = W[found.rows]
    unit = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    # Rows 7 and 8 are equal: chance of a fixed seed orders them.
    expected = np.argsort(-np.round(cosines, 10), axis=1, kind="stable")[near.rows, :4]
    differ = near.neighbors != expected
    assert set(near.neighbors[differ]) <= {7, 8}
    np.testing.assert_allclose(
        near.cosines, np.take_along_axis(cosines[near.rows], expected, axis=1), rtol=1e-6
    )

"""The numbers after a treatment are those of an analysis of the treated matrix."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.arrays import FloatArray, WorkingArray
from embgeo.core.treated import (
    REMOVED,
    TREATMENTS,
    UNIT_AFTER,
    UNIT_FIRST,
    Treated,
    base_of,
    place_treated,
    write_code,
)
from embgeo.measure import what_if
from embgeo.result.analysis import Analysis
from embgeo.stats.resources import Resources

SECTIONS = ("spectrum", "cosine", "isotropy", "projection")
N, D = 400, 12
CHANGED = list(TREATMENTS)[1:]
NAMES = ["none", *CHANGED, *(name + UNIT_AFTER for name in TREATMENTS)]
NAMES += [UNIT_FIRST + name for name in CHANGED]


def make_rows(seed: int = 2, n: int = N) -> FloatArray:
    """Rows off the origin whose columns have unlike variances and whose norms are unlike."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, D)) @ np.diag(np.linspace(3.0, 0.4, D))
    turn = np.linalg.qr(rng.standard_normal((D, D)))[0]
    return np.asarray((rows @ turn + 0.7) * rng.lognormal(0.0, 0.3, (n, 1)))


def divide(rows: FloatArray) -> FloatArray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def treat(rows: FloatArray, name: str) -> FloatArray:
    """The treatment as the papers write it, by another way than the code."""
    base = base_of(name)
    rows = divide(rows) if name.startswith(UNIT_FIRST) else rows
    if base != "none":
        rows = rows - rows.mean(axis=0)
        u, s, vt = np.linalg.svd(rows, full_matrices=False)
        if base.startswith("top-"):
            s = np.where(np.arange(D) < int(base[-1]), 0.0, s)
        elif base == "whiten":
            s, vt = np.full(D, np.sqrt(len(rows))), np.eye(D)
        rows = u * s @ vt
        if base == "standardize":
            rows = rows / np.sqrt(np.square(rows).mean(axis=0))
    return divide(rows) if name.endswith(UNIT_AFTER) else rows


def measure(rows: FloatArray, name: str) -> tuple[float, float, float]:
    """Mean cosine over all pairs, effective rank and top share of the treated rows."""
    treated = treat(rows, name)
    unit = divide(treated)
    cosines = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    sigma = np.linalg.svd(treated, compute_uv=False)
    share = sigma / sigma.sum()
    share = share[share > 1e-12]
    rank = np.exp(-(share * np.log(share)).sum())
    return float(cosines.mean()), float(rank), float(sigma[0] ** 2 / (sigma**2).sum())


def analyze(rows: WorkingArray) -> Analysis:
    return embgeo.analyze(rows, sections=SECTIONS, reference=False)


def by_name(analysis: Analysis) -> dict[str, Treated]:
    return {one.name: one for one in analysis.treated}


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyze(make_rows())


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a matrix of which not all rows are sampled."""
    monkeypatch.setattr(what_if, "SAMPLED", 600)
    monkeypatch.setattr(what_if, "MOST_PRODUCTS", 0)


def test_every_treatment_is_measured_before_and_after_unit_rows(analysis: Analysis) -> None:
    assert by_name(analysis).keys() == set(NAMES)
    assert not any(one.sampled for one in analysis.treated)


def test_numbers_are_those_of_the_treated_matrix(analysis: Analysis) -> None:
    for name, one in by_name(analysis).items():
        cosine, rank, share = measure(make_rows(), name)
        assert one.mean_cosine == pytest.approx(cosine, abs=1e-13), name
        assert one.effective_rank == pytest.approx(rank, rel=1e-12), name
        assert one.top_share == pytest.approx(share, rel=1e-12), name


def test_the_spectrum_after_a_treatment_follows_from_the_moments(analysis: Analysis) -> None:
    for name, one in by_name(analysis).items():
        if not name.endswith(UNIT_AFTER):
            _, rank, share = measure(make_rows(), name)
            assert one.effective_rank == pytest.approx(rank, rel=3e-14), name
            assert one.top_share == pytest.approx(share, rel=3e-14), name


@pytest.mark.slow
def test_i1_and_places_are_those_of_the_treated_matrix(analysis: Analysis) -> None:
    assert analysis.treated_places is not None
    for name, one in by_name(analysis).items():
        found = analyze(treat(make_rows(), name))
        assert (one.i1 is None) == (base_of(name) == "whiten" and not name.endswith(UNIT_AFTER))
        if one.i1 is not None:
            assert one.i1 == pytest.approx(found["isotropy.i1_unit_rows"].value, rel=1e-7), name
        exact = name in CHANGED and name != "whiten"
        if exact or name in ("mean" + UNIT_AFTER, UNIT_FIRST + "mean"):
            xy, true = place_treated(analysis.treated_places, name), found.points[0].xy
            shares = [abs(np.corrcoef(a, b)[0, 1]) for a, b in zip(xy.T, true.T, strict=True)]
            assert min(shares) > (1.0 - 1e-9 if exact else 0.9), name
            if exact:
                assert np.allclose(np.abs(xy), np.abs(true), atol=1e-5), name


def test_places_of_whitened_rows_have_one_variance(analysis: Analysis) -> None:
    assert analysis.treated_places is not None
    u = np.linalg.svd(make_rows() - make_rows().mean(axis=0), full_matrices=False)[0]
    xy = place_treated(analysis.treated_places, "whiten")
    assert np.allclose(np.abs(xy), np.abs(u[:, :2]) * np.sqrt(N), atol=1e-5)
    xy = place_treated(analysis.treated_places, f"{UNIT_FIRST}whiten")
    assert np.allclose(xy.T @ xy / N, np.eye(2), atol=1e-5)


def test_places_of_rows_on_a_line_are_numbers() -> None:
    """They have no deviation across it, and some of them no length along it."""
    rows = np.column_stack([np.full(41, 0.25), np.arange(41.0)])
    found = embgeo.analyze(rows)
    assert found.treated_places is not None
    for one in found.treated:
        assert np.isfinite(place_treated(found.treated_places, one.name)).all()


def test_rows_divided_afterwards_are_divided_by_their_norms(analysis: Analysis) -> None:
    places = analysis.treated_places
    assert places is not None
    for name in CHANGED:
        lengths = np.linalg.norm(treat(make_rows(), name), axis=1)
        xy = place_treated(places, name) / lengths[:, None]
        assert np.allclose(place_treated(places, name + UNIT_AFTER), xy, atol=1e-5), name


def test_neighbors_are_those_of_the_treated_matrix(analysis: Analysis) -> None:
    for name, one in by_name(analysis).items():
        assert bool(one.neighbors.size) == (name in CHANGED)
        if one.neighbors.size:
            unit = divide(treat(make_rows(), name))
            cosines = unit @ unit.T
            np.fill_diagonal(cosines, -2.0)
            assert np.array_equal(one.neighbors, np.argsort(-cosines, axis=1)[:, :10]), name


def test_the_lines_of_numpy_apply_it(analysis: Analysis) -> None:
    for name, one in by_name(analysis).items():
        held = {"W": make_rows(), "np": np}
        exec(write_code(name), held)
        rows = np.asarray(held["W"])
        total = divide(rows).sum(axis=0)
        assert one.mean_cosine == pytest.approx((total @ total - N) / (N * (N - 1)), abs=1e-10)
        energy = np.linalg.svd(rows, compute_uv=False) ** 2
        assert one.top_share == pytest.approx(energy[0] / energy.sum(), rel=1e-10)


def test_cosines_of_pairs_have_their_mean(analysis: Analysis) -> None:
    for one in analysis.treated:
        middles = np.linspace(-1.0, 1.0, what_if.BINS, endpoint=False) + 1.0 / what_if.BINS
        mean = float((one.cosines @ middles) / one.cosines.sum())
        assert mean == pytest.approx(one.mean_cosine, abs=0.02)


@pytest.mark.usefixtures("few")
def test_of_a_large_matrix_only_what_needs_rows_is_sampled() -> None:
    rows = make_rows(n=2000)
    found = analyze(rows)
    assert found.treated_places is not None
    assert (found.treated_places.sampled, len(found.treated_places.xs)) == (600, 2000)
    for name, one in by_name(found).items():
        exact = measure(rows, name)
        numbers = one.mean_cosine, one.effective_rank, one.top_share
        assert (one.i1 is None) == (name.endswith(UNIT_AFTER) or base_of(name) == "whiten")
        sampled = set() if one.i1 is None or name == "none" else {"i1"}
        if name == UNIT_FIRST + "whiten":
            sampled |= {"mean_cosine"}
        elif name.endswith(UNIT_AFTER) and name != "none" + UNIT_AFTER:
            sampled |= {"effective_rank", "top_share"}
        assert set(one.sampled) == sampled | {"cosines"}, name
        for field, number, true in zip(
            ("mean_cosine", "effective_rank", "top_share"), numbers, exact, strict=True
        ):
            near = 2e-3 if field == "mean_cosine" else 0.08 * true
            assert number == pytest.approx(true, abs=near if field in sampled else 1e-12), name


@pytest.mark.usefixtures("few")
def test_of_many_columns_spectra_of_rows_divided_afterwards_are_absent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for columns, absent in ((D, False), (D - 1, True)):
        monkeypatch.setattr(what_if, "MOST_COLUMNS", columns)
        found = by_name(analyze(make_rows(n=2000)))
        for name in ("mean" + UNIT_AFTER, "whiten" + UNIT_AFTER):
            one = found[name]
            assert (one.effective_rank is None) is (one.top_share is None) is absent
            assert one.mean_cosine == found[name.removesuffix(UNIT_AFTER)].mean_cosine


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("full_rank", [True, False])
def test_of_many_columns_only_i1_takes_all_eigenvectors(
    full_rank: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = make_rows(n=2000)
    if not full_rank:
        rows[:, -1] = rows[:, 0]
    analyses = []
    for columns in (D, D - 1):
        monkeypatch.setattr(what_if, "MOST_COLUMNS", columns)
        analyses.append(analyze(rows))
    every, few = map(by_name, analyses)
    assert every.keys() == few.keys()
    for name in NAMES:
        one, other = every[name], few[name]
        fields = ("mean_cosine", "effective_rank", "top_share")
        if name.endswith(UNIT_AFTER):
            assert other.i1 is None
            fields = ("mean_cosine",)
        elif base_of(name) == "standardize" or (full_rank and name.startswith(UNIT_FIRST)):
            assert other.i1 is None
        else:
            assert other.i1 == one.i1
        for field in fields:
            at_most = 1e-6 if name == UNIT_FIRST + "whiten" else 3e-14
            assert getattr(other, field) == pytest.approx(getattr(one, field), rel=at_most), name
        assert np.abs(other.cosines - one.cosines).max() <= 2  # of 130,816 pairs, at edges of bins
    one, other = (analysis.treated_places for analysis in analyses)
    assert one is not None
    assert other is not None
    assert np.allclose(one.xs, other.xs, atol=1e-5)


def test_rows_in_float32_and_in_a_narrow_cone_are_measured_as_well() -> None:
    rows = (make_rows(n=2000) + 60.0).astype(np.float32)
    for name, one in by_name(analyze(rows)).items():
        cosine, rank, share = measure(rows.astype(np.float64), name)
        assert one.mean_cosine == pytest.approx(cosine, abs=1e-7), name
        assert one.effective_rank == pytest.approx(rank, rel=1e-6), name
        assert one.top_share == pytest.approx(share, rel=1e-6), name


def test_rows_of_large_matrices_have_no_neighbors(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(**options: Any) -> int:
        found = embgeo.analyze(make_rows(), reference=False, **options)
        return sum(one.neighbors.size > 0 for one in found.treated)

    products = len(CHANGED) * N * N * D // 2
    for most, searched in ((products, len(CHANGED)), (products - 1, 0)):
        monkeypatch.setattr(what_if, "MOST_NEIGHBOR_PRODUCTS", most)
        monkeypatch.setattr(what_if, "MOST_ASKED_PRODUCTS", 0)
        assert count() == searched
        assert count(neighbors_of="all") == 0
        monkeypatch.setattr(what_if, "MOST_ASKED_PRODUCTS", most)
        assert count(neighbors_of="all") == searched
        monkeypatch.setattr(what_if, "COPIES", 2**30)
        assert count(neighbors_of="all", resources=Resources(memory=2**33)) == 0
        monkeypatch.setattr(what_if, "COPIES", 5)


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_row_that_is_the_mean_has_no_direction_after_it_is_subtracted(size: float) -> None:
    rows = size * make_rows()
    rows[0] = rows[1:].mean(axis=0)
    left = {*by_name(analyze(rows))}
    assert left == {"none", "none" + UNIT_AFTER, *(UNIT_FIRST + name for name in CHANGED)}


def test_as_many_directions_are_removed_as_leave_a_plane() -> None:
    for width in (2, 3, 7, 8):
        names = by_name(analyze(make_rows()[:, :width]))
        removed = {f"top-{k}" for k in REMOVED if k <= width - 2}
        assert {name for name in names if name in CHANGED} == removed | {
            "mean",
            "standardize",
            "whiten",
        }


def test_columns_that_do_not_differ_are_left_as_they_are() -> None:
    rows = np.column_stack([make_rows(), np.full(N, 3.0), np.zeros(N)])
    narrow = by_name(analyze(make_rows()))
    for name, one in by_name(analyze(rows)).items():
        if name in CHANGED:
            assert one.mean_cosine == pytest.approx(narrow[name].mean_cosine, abs=1e-12), name
            assert one.effective_rank == pytest.approx(narrow[name].effective_rank, rel=1e-7), name


@pytest.mark.parametrize(
    ("shape", "size", "treated"),
    [
        ((11, 2), 1.0, True),
        ((10, 2), 1.0, False),  # no more rows than neighbors
        ((41, 40), 1.0, True),
        ((40, 40), 1.0, False),  # nor than columns
        ((400, 1), 1.0, False),
        ((40, 2), 1e-28, True),
        ((40, 2), 1e-31, False),
    ],
)
def test_what_can_be_treated(shape: tuple[int, int], size: float, treated: bool) -> None:
    rows = size * (np.random.default_rng(3).random(shape) * 2 + 0.1)
    assert bool(embgeo.analyze(rows, reference=False).treated) is treated


def test_equal_rows_are_not_treated() -> None:
    assert embgeo.analyze(np.ones((40, 3)), reference=False).treated == ()


def test_without_its_sections_nothing_is_treated() -> None:
    assert embgeo.analyze(make_rows(), sections=["spectrum"], reference=False).treated == ()


def test_a_comparison_measures_no_treatments_which_it_does_not_show() -> None:
    W = np.random.default_rng(0).standard_normal((60, 4))
    compared = embgeo.diff(embgeo.Matrix(W), embgeo.Matrix(W + 0.1))
    assert not any(member.analysis.treated for member in compared.members)
    assert embgeo.analyze(W).treated


def test_a_saved_analysis_whose_treatments_do_not_fit_is_refused(analysis: Analysis) -> None:
    from embgeo.result.saved import check_treated

    places = analysis.treated_places
    assert places is not None
    check_treated(analysis.treated, places, N)
    for changed in (
        None,
        replace(places, xs=places.xs[:, 1:]),
        replace(places, norms=places.norms[1:]),
        replace(places, deviations=places.deviations[1:]),
        replace(places, norms=0.0 * places.norms),
        replace(places, xs=places.xs + np.float32(np.nan)),
    ):
        with pytest.raises(ValueError, match="after a treatment"):
            check_treated(analysis.treated, changed, N)

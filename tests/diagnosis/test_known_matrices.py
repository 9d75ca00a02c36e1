"""The verdict about matrices of known state: each was once judged wrongly."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import embgeo
from embgeo.core.numbers import format_number
from embgeo.diagnosis.verdict import Verdict
from embgeo.measure.analyze import analyze
from tests.support.sampling import each_value

SECTIONS = ("spectrum", "cosine", "isotropy", "coordinates", "suspects", "tokens")


def verdict(W: np.ndarray, sections=SECTIONS) -> Verdict:
    """The verdict, without what only a page shows."""
    options = embgeo.Options(pairs=500)
    return analyze(embgeo.Matrix(W), sections=sections, options=options, page=False).verdict


def isotropic(n: int, d: int, seed: int = 0, spread: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return np.asarray(rows * np.exp(spread * rng.standard_normal((n, 1))))


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def sentence(verdict: Verdict, key: str) -> str:
    finding = verdict.finding(key)
    assert finding is not None, key
    return finding.sentence


@each_value
@pytest.mark.parametrize("n", [500, 3000, 20_000])
@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.slow
def test_norms_and_the_number_of_rows_do_not_change_the_verdict(n, drawn, monkeypatch):
    if not drawn:
        monkeypatch.setattr("embgeo.numerics.isotropic_rows.DRAWN_ENTRIES", 0)
    assert verdict(isotropic(n, 16, spread=1.0)).state == "healthy"


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_the_verdict_of_many_rows_is_that_of_few(spread):
    W = isotropic(626_000, 64, spread=spread).astype(np.float32)
    found = embgeo.analyze(embgeo.Matrix(W), sections=("spectrum", "cosine", "isotropy"), pairs=500)
    assert found.verdict.state == "healthy"
    assert found["spectrum.effective_rank"].reference is not None
    assert found["isotropy.i1_unit_rows"].reference == pytest.approx(1.0, abs=0.01)
    raw = found["isotropy.i1"]
    if spread == 0.3:
        assert raw.value == pytest.approx(raw.reference, abs=0.001)
    else:
        # The longest rows alone decide Z, so that a draw says nothing of other draws.
        assert raw.reference is None


@each_value
@pytest.mark.parametrize("n", [300, 5000])
@pytest.mark.parametrize(("rho", "state"), [(0.0, "healthy"), (0.2, "mild"), (0.5, "degenerate")])
@pytest.mark.slow
def test_a_cone_is_as_narrow_with_any_number_of_rows(n, rho, state):
    W = isotropic(n, 32)
    W[:, 0] += np.sqrt(rho / (1 - rho))
    found = verdict(W @ np.linalg.qr(normal(32, 32))[0])
    assert found.state == state


def test_the_sentence_begins_with_the_test_that_decided():
    rng = np.random.default_rng(0)
    found = verdict(rng.standard_normal((1000, 5)) @ rng.standard_normal((5, 64)))
    assert found.state == "degenerate"
    assert sentence(found, "spectrum").startswith("Collapsed spectrum: the effective rank is 4.")


@pytest.mark.slow
def test_an_ordinary_decay_is_healthy_in_any_dimension():
    for d in (16, 64, 256):
        basis = np.linalg.qr(normal(d, d, 1))[0]
        W = normal(800, d) * np.arange(1, d + 1) ** -0.5 @ basis
        assert verdict(W).state == "healthy"


@pytest.mark.slow
def test_a_steep_decay_is_a_fault_in_any_dimension():
    for d in (16, 64, 256):
        basis = np.linalg.qr(normal(d, d, 1))[0]
        W = normal(800, d) / np.arange(1, d + 1) ** 1.5 @ basis
        assert verdict(W).finding("spectrum").state == "degenerate"


@cache
def two_raised() -> Verdict:
    W = normal(800, 256)
    W[:, :2] += 3.0
    return verdict(W)


@pytest.mark.slow
def test_a_faint_cone_is_said():
    assert sentence(two_raised(), "cone").startswith("Faint cone: the mean cosine of two rows")
    assert "standard errors" in sentence(two_raised(), "cone")


def test_coordinates_that_make_a_faint_cone_are_named_and_no_fault():
    found = two_raised()
    assert found.state == "healthy"
    assert "2 coordinates contribute most of it" in sentence(found, "cone")
    assert found.finding("coordinate") is None


@each_value
@pytest.mark.parametrize(("shift", "state"), [(0.1, "healthy"), (0.5, "mild"), (1.0, "degenerate")])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.slow
def test_a_state_is_that_of_the_rows_in_their_principal_axes(shift, state, center):
    """As stored, in the axes of an SVD, and in those of a PCA; in float32, too."""
    X = normal(1500, 32) + shift
    axes = np.linalg.svd(X - X.mean(axis=0) * center, full_matrices=False)[2]
    for W in (X, X @ axes.T, (X @ axes.T).astype(np.float32)):
        found = verdict(W)
        assert found.state == state
        assert found.finding("coordinate") is None


def widened(count, factor, d=64):
    W = normal(1500, d)
    W[:, :count] *= factor
    return W


@pytest.mark.slow
def test_a_state_is_that_of_the_rotated_rows():
    """A coordinate is wide in one basis only: it is named there, and the state stays."""
    for W, state in (
        (widened(1, 10.0, 512), "healthy"),  # 16% of the variance in one coordinate
        (widened(3, 15.0), "mild"),
        (widened(1, 10.0), "degenerate"),
        (normal(1500, 64) + 3.0 * np.eye(64)[0], "mild"),
    ):
        axes = np.linalg.svd(W, full_matrices=False)[2]
        basis = np.linalg.qr(normal(W.shape[1], W.shape[1]))[0]
        as_stored, *others = (verdict(X) for X in (W, W @ axes.T, W @ basis))
        assert [found.state for found in (as_stored, *others)] == [state] * 3
        assert as_stored.finding("coordinate") is not None
        assert all(found.finding("coordinate") is None for found in others)


@pytest.mark.slow
def test_a_coordinate_is_no_worse_than_the_cone_it_makes():
    """Of 64 dimensions one has all of the mean, and so nearly all of the mean cosine."""
    for mean, state in ((0.09, ""), (0.1, "mild"), (0.3, "degenerate")):
        W = normal(1500, 64)
        W[:, 3] += np.sqrt(64 * (mean + 0.004) / (1 - mean))
        found = verdict(W)
        finding = found.finding("coordinate")
        assert (finding.state if finding else "") == state
        assert found.state == (state or "healthy")


@pytest.mark.parametrize(
    ("power", "cut", "fault"), [(0.5, 256, False), (0.7, 256, False), (0.5, 5, True)]
)
def test_variances_that_fall_gradually_are_no_rogue_coordinates(power, cut, fault):
    """λ_k ∝ k^(−2·power) in nearly principal axes; the same first five, and a gap below them."""
    scale = np.arange(1.0, 257.0) ** -power
    scale[cut:] = scale[-1]
    found = verdict(normal(1500, 256) * scale)
    assert (found.finding("coordinate") is not None) is fault


def test_the_cone_is_compared_with_isotropic_rows_of_the_same_size():
    found = embgeo.analyze(embgeo.Matrix(isotropic(300, 8)), sections=("cosine",), pairs=500)
    angle = found["cosine.cone_half_angle_median"]
    assert angle.reference != 90
    assert f"(isotropic rows: {format_number(angle.reference, 3)}°)" in sentence(
        found.verdict, "cone"
    )


def test_an_insignificant_mean_cosine_is_no_cone():
    assert sentence(verdict(isotropic(1000, 64)), "cone").startswith("No cone")


@pytest.mark.slow
def test_a_mild_coordinate_is_named_next_to_the_direction_that_it_makes():
    W = normal(800, 64)
    W[:, 5] *= 9.0
    found = verdict(W)
    assert found.state == "degenerate"
    assert found.finding("coordinate").state == "mild"
    assert "Collapsed spectrum" in found.headline


@pytest.mark.slow
def test_a_coordinate_of_twice_the_spread_is_not_rogue():
    W = normal(1500, 64)
    W[:, 5] *= 2.0
    assert verdict(W).state == "healthy"


@pytest.mark.slow
def test_a_few_long_rows_are_named():
    W = isotropic(3000, 64)
    W[17] *= 500.0
    found = verdict(W)
    assert found.state == "mild"
    assert found.headline == "Mildly degenerate: unequal norms."
    assert "1 long row carries 9" in sentence(found, "spectrum")
    assert "The directions of the rows are spread out" in sentence(found, "spectrum")


def clustered(clusters: int, noise: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    centers = np.linalg.qr(rng.standard_normal((32, 32)))[0][:clusters]
    return np.asarray(centers[rng.integers(0, clusters, 800)] + noise * isotropic(800, 32))


def test_clusters_are_named_in_place_of_a_cone():
    found = verdict(clustered(4, 0.2))
    assert "eparate clusters" in found.headline
    assert "wide cone" not in found.headline
    assert "form 4 clusters" in sentence(found, "clusters")
    assert "the mean cosine between clusters is 0.00" in sentence(found, "cone")


def test_loose_clusters_are_none():
    assert verdict(clustered(30, 1.0)).finding("clusters") is None


def test_duplicates_are_named_in_place_of_a_cone():
    W = isotropic(1000, 32)
    W[np.random.default_rng(0).permutation(1000)[:470]] = W[0]
    found = verdict(W)
    assert "470 duplicates of 1 token" in sentence(found, "suspects")
    assert "wide cone" not in found.headline
    assert "without them the mean cosine is" in sentence(found, "cone")


@pytest.mark.slow
def test_several_long_rows_are_named():
    W = isotropic(3000, 64)
    W[[5, 17, 99, 1000, 2000]] *= 500.0
    found = verdict(W)
    assert "5 long rows carry 99" in sentence(found, "spectrum")


def test_long_rows_are_named_although_none_of_them_holds_most_energy():
    W = isotropic(1000, 16)
    W[[5, 17, 99]] *= 35.0
    found = verdict(W)
    assert "3 long rows carry 79" in sentence(found, "spectrum")


def test_long_rows_on_a_cloud_along_a_line_hold_their_own_share():
    """Not the share of the top direction, of which each has its own."""
    W = isotropic(1000, 16)
    W[:, 0] *= 3.0
    W /= np.linalg.norm(W, axis=1)[:, None]
    W[[5, 17, 99], :] = 0.0
    W[[5, 17, 99], [3, 4, 5]] = 900.0, 300.0, 200.0
    found = verdict(W)
    assert "3 long rows carry 99.9" in sentence(found, "spectrum")
    assert "Unit rows would not put such a share" in sentence(found, "spectrum")


def test_lognormal_norms_have_no_long_rows():
    found = embgeo.analyze(isotropic(500, 16, spread=1.0), sections=["tokens"], reference=False)
    assert found["tokens.long_rows"] == 0
    assert found["tokens.long_rows_energy"] == 0


def test_rows_that_are_all_constant_leave_no_others():
    assert "60 faulty tokens" in verdict(np.ones((60, 8))).headline
    W = np.random.default_rng(0).standard_normal((200, 8))
    W[3] = 1.0
    assert verdict(W).headline.startswith("Untrained, with 1 faulty token: ")
    assert "1 constant row" in sentence(verdict(W), "suspects")


@pytest.mark.slow
def test_a_part_of_the_rows_that_is_far_shorter_or_longer_is_said():
    """Spread over a decade, so that no gap lies between them and the others."""
    for share, times, state in (
        (0.3, (20, 150), "mild"),
        (0.3, (1 / 150, 1 / 20), "mild"),
        (0.3, (5, 9), "healthy"),
    ):
        W, count = normal(2000, 64) * np.arange(1.0, 65.0) ** -0.3, int(2000 * share)
        W[:count] /= np.exp(np.random.default_rng(1).uniform(*np.log(times), (count, 1)))
        found = verdict(W, sections=("spectrum", "cosine", "suspects"))
        assert found.state == state
        word = "shorter" if times[0] > 1 else "longer"
        assert ("norms of two modes" in found.headline) == (state == "mild")
        told = sentence(found, "norms") if state == "mild" else ""
        assert (f"{count} rows are about" in told) == (state == "mild")
        assert (f"times {word} than the others" in told) == (state == "mild")


def test_few_rows_of_odd_norms_are_no_finding():
    for few in (True, False):
        W = normal(2000, 64) * np.arange(1.0, 65.0) ** -0.3
        W[: 15 if few else 25] *= 1000.0 / np.arange(10.0, 85.0, 3.0)[: 15 if few else 25, None]
        found = verdict(W, sections=("spectrum", "cosine", "suspects")).finding("norms")
        assert (found is None) == few

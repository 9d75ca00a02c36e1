"""Every scalar next to its slow twin, over hostile matrices and several block sizes."""

from __future__ import annotations

from itertools import cycle, product

import numpy as np
import pytest

from embgeo.numerics.scores import auc, error_of
from tests.support import naive, naive_frequency
from tests.support.matrices import BLOCKS, NAMES, analysis, analyze_matrix, case, rng
from tests.support.sampling import sample_cases
from tests.support.twins import twins

EPS = np.finfo(float).eps
#: Wherever nothing else is said: both sides are sums in float64.
RELATIVE = 1e-9
LOOSER = {
    # Both sides stop a search when it no longer gains.
    "hidden.hull_distance": 2e-6,
    "hidden.margin": 2e-6,
    # Of eigenvalues of the Gram matrix, where those of a narrow cone differ by 1e6.
    "isotropy.eigengap": 1e-7,
    # Chiani 2014 prints five digits of the constants of his distribution.
    "spectrum.largest_p": 1e-3,
}
#: Taken in the precision of the stored entries; float32 errs by less than 1e-6.
STORED = {
    "cosine.std",
    *(f"isotropy.{pair}{of}" for pair in ("i1", "i2") for of in ("", "_unit", "_unit_rows")),
    *(f"isotropy.{pair}_{of}" for pair in ("i1", "i2") for of in ("mean_sign", "sampled")),
}
#: Rounding of a sum of numbers of size one that cancel.
ABSOLUTE = 1e-13


def tolerance(scalar, expected, working=np.float64):
    if scalar == "spectrum.condition_number":
        # σ_d is known to about ε·σ_1, whatever the algorithm.
        return expected * max(RELATIVE, 30 * EPS * expected)
    if scalar in STORED and working is np.float32:
        return 1e-6 * abs(expected)
    return max(ABSOLUTE, LOOSER.get(scalar, RELATIVE) * abs(expected))


#: The size of blocks at which ordinary runs take each matrix; the nightly run takes all three.
SIZES = dict(zip(NAMES, cycle(BLOCKS), strict=False))
#: What the fast tests take.
FAST = ("gaussian", "two-sided", "fp16")
CASES = sample_cases(product(NAMES, BLOCKS), lambda case: SIZES[case[0]] == case[1])
each_matrix = pytest.mark.parametrize(
    ("name", "block_rows"),
    [
        case
        if hasattr(case, "marks") or case[0] in FAST
        else pytest.param(*case, marks=pytest.mark.slow)
        for case in CASES
    ],
)


#: Counts of a list of rows: tests/metrics/test_suspects.py compares the rows.
LISTED = "suspects."
_CLUSTERS = ("cosine.clusters", "cosine.silhouette", "cosine.mean_between_clusters")
#: What the twins do not do: join pieces of a cloud (tests/metrics/test_clusters.py), and split
#: duplicates that tie by chance (tests/stats/test_near_ties.py).
APART = {
    "rogue coordinates": _CLUSTERS,
    "d = 2": _CLUSTERS,
    "dirty": ("frequency.neighbor_rarity_rare",),
}


@each_matrix
@pytest.mark.slow
def test_every_scalar_equals_its_twin(name, block_rows):
    wrong = []
    for scalar in analysis(name, block_rows).scalars:
        if scalar.name.startswith(LISTED) or scalar.name in APART.get(name, ()):
            continue
        assert scalar.name in twins(name), f"{scalar.name} has no twin in tests/support/twins.py"
        expected = twins(name)[scalar.name]
        if expected is None:
            agrees = scalar.value is None and scalar.undefined
        elif scalar.value is None:
            agrees = False
        elif "not_converged" in scalar.caveats:
            agrees = scalar.value >= expected
        else:
            working = case(name).matrix.working
            agrees = abs(scalar.value - expected) <= tolerance(scalar.name, expected, working)
        if not agrees:
            wrong.append(f"{scalar.name}: {scalar.value!r}, twin {expected!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_no_twin_stands_beside_nothing():
    measured = {
        scalar.name
        for name, rows in SIZES.items()
        for scalar in analysis(name, rows).scalars
        if not scalar.name.startswith(LISTED)
    }
    known = {twin for name in NAMES for twin in twins(name)}
    assert known == measured, f"in tests/support/twins.py or measured: {sorted(known ^ measured)}"


@each_matrix
def test_singular_values(name, block_rows):
    c, s = case(name), naive.singular_values(case(name).W)
    series = analysis(name, block_rows)["spectrum.singular_values"]
    for label, W in (("uncentered", c.W), ("centered", naive.subtract_mean(c.W))):
        expected = naive.singular_values(W) / s[0]
        allowed = np.where(expected > 1e-6, 1e-9 * expected, 20 * EPS)
        assert np.all(np.abs(series.y[label] - expected) <= allowed), label


def errors_apart(a, b, *errors):
    return abs(a - b) / np.sqrt(sum(e**2 for e in errors))


@pytest.mark.slow
def test_sampled_pairs_are_within_four_standard_errors():
    for name in ("gaussian", "negative", "two-sided", "fp16"):
        found = analyze_matrix(case(name).matrix, sections=("cosine",), pairs=400)
        scalar = found["cosine.positive_share"]
        assert scalar.sample == "400 of 1,770 pairs, drawn uniformly"
        assert errors_apart(scalar.value, twins(name)[scalar.name], scalar.standard_error) < 4
        assert found["cosine.cone_aperture"].value <= twins(name)["cosine.cone_aperture"] + 1e-9
        assert "lower bound" in found["cosine.cone_aperture"].convention


@pytest.mark.nightly
def test_standard_errors_of_pairs_are_calibrated():
    """Over 60 seeds the deviations from the truth, in standard errors, have size one."""
    truth = twins("gaussian")["cosine.positive_share"]
    deviations = []
    for seed in range(60):
        found = analyze_matrix(case("gaussian").matrix, sections=("cosine",), pairs=300, seed=seed)
        scalar = found["cosine.positive_share"]
        deviations.append((scalar.value - truth) / scalar.standard_error)
    assert 0.75 < np.sqrt(np.mean(np.square(deviations))) < 1.25
    assert abs(np.mean(deviations)) < 4 / np.sqrt(60)


def test_a_sampled_share_is_never_certain():
    """All sampled cosines are positive: that is no proof that all pairs are."""
    scalar = analyze_matrix(case("narrow cone").matrix, sections=("cosine",), pairs=100)[
        "cosine.positive_share"
    ]
    assert scalar.value == 1.0
    assert 0.005 < scalar.standard_error < 0.05


def test_probe_standard_errors_agree_with_the_bootstrap():
    g = rng(3)
    positive = np.arange(400) % 4 == 0
    score = g.standard_normal(400) + 1.2 * positive
    draws = []
    high, low = np.flatnonzero(positive), np.flatnonzero(~positive)
    for _ in range(400):
        at = np.concatenate([g.choice(high, len(high)), g.choice(low, len(low))])
        draws.append(auc(score[at], positive[at])[0])
    assert error_of(auc(score, positive)[1]) == pytest.approx(np.std(draws), rel=0.15)
    assert auc(score, positive)[0] == pytest.approx(naive_frequency.auc(score, positive))


def test_large_classes_ask_a_sample_of_queries(monkeypatch):
    """With fewer queries than tokens the rarity carries an error that covers the truth."""
    monkeypatch.setattr("embgeo.metrics.neighbors.CLASS_QUERIES", (30, 30))
    found = analyze_matrix(case("gaussian").matrix, sections=("frequency",))
    scalar = found["frequency.neighbor_rarity_rare"]
    assert scalar.sample == "30 of 48 queries"
    assert errors_apart(scalar.value, twins("gaussian")[scalar.name], scalar.standard_error) < 4
    assert found["frequency.neighbor_rarity_popular"].standard_error is None


def test_probe_on_a_sample_of_rows(monkeypatch):
    """A sample keeps the classes' shares, and its AUC lies near that of all rows."""
    monkeypatch.setattr("embgeo.metrics.probe.MAX_ROWS", 40)
    monkeypatch.setattr("embgeo.metrics.probe.MIN_ROWS", 40)
    scalar = analyze_matrix(case("fp16").matrix, sections=("frequency",))["frequency.probe_auc"]
    assert scalar.sample == "40 of 60 tokens, 5 folds"
    assert errors_apart(scalar.value, twins("fp16")[scalar.name], scalar.standard_error) < 4


# Wang's protocol --------------------------------------------------------------------------------


def test_sampled_isotropy_is_that_of_row_samples():
    """Mean and spread over runs agree with those of independent samples of the same size."""
    W, rows = case("negative").W, 25
    g = rng(4)
    logs = [naive.both_signs(W[g.choice(len(W), rows, replace=False)]) for _ in range(400)]
    found = analyze_matrix(
        case("negative").matrix,
        sections=("isotropy",),
        isotropy_rows=rows,
        isotropy_runs=40,
    )
    for key, measure in (("i1", naive.i1), ("i2", naive.i2)):
        values = np.array([measure(log) for log in logs])
        scalar = found[f"isotropy.{key}_sampled"]
        error = scalar.standard_error
        assert errors_apart(scalar.value, values.mean(), error, values.std() / 20) < 4
        assert error * np.sqrt(40) == pytest.approx(values.std(), rel=0.4)


def test_samples_are_drawn_from_kept_rows_only():
    found = analysis("dirty")
    assert found["isotropy.i1_sampled"].value == pytest.approx(
        found["isotropy.i1"].value, rel=1e-12
    )

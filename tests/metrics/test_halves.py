"""A literal slow twin: every number with an error, measured again on the 30 halves of the matrix.

The list is closed: a number with an error over tokens that has no twin here fails.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.comparison.comparison import Member
from embgeo.comparison.differences import differences
from embgeo.comparison.matching import match_rows
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.values import Scalar
from embgeo.metrics.by_half import LARGEST_ROW, note_dominant_row
from embgeo.metrics.isotropy import APART, is_turning
from embgeo.numerics.halves import GROUPS, HALVES, deal_groups, hash_numbers, hash_stems
from embgeo.stats import GroupSquares
from tests.support import naive

Rows = npt.NDArray[np.float64]
N, D, K = 400, 6, 10
#: By how much an error may differ from the literal one: numbers of spectra are known to first
#: order, angles within a bin.
EXACT, FIRST_ORDER = 1e-6, 0.06
TOLERANCE = {
    "spectrum.effective_rank": 0.1,
    "spectrum.top_share": FIRST_ORDER,
    "spectrum.mean_norm_ratio": EXACT,
    "cosine.mean": EXACT,
    "cosine.cone_half_angle_median": 0.03,
    "isotropy.i1_unit_rows": EXACT,
    "isotropy.isoscore": FIRST_ORDER,
    "frequency.norm_ratio": EXACT,
    "frequency.norm_spearman": EXACT,
    "frequency.neighbor_rarity_rare": EXACT,
    "frequency.neighbor_rarity_popular": EXACT,
    "tokens.norm_median": EXACT,
    "tokens.norm_rms": EXACT,
    "tokens.intrinsic_dimension": EXACT,
}


def spell(number: int) -> str:
    """In five letters: a token with a digit has no stem."""
    return "".join("abcdefghij"[int(digit)] for digit in f"{number:05d}")


@cache
def tokens() -> tuple[str, ...]:
    """Families of one to three words with the same first five letters."""
    g = np.random.default_rng(2)
    names = [f"{spell(stem)}{end}" for stem in range(N) for end in "abc"[: g.integers(1, 4)]]
    return tuple(names[:N])


@cache
def rows() -> Rows:
    g = np.random.default_rng(3)
    stem = np.unique([token[:5] for token in tokens()], return_inverse=True)[1]
    found = g.standard_normal((N, D))[stem] + 0.5 * g.standard_normal((N, D))
    found *= 0.45 ** np.arange(D)
    found[:, 0] += 1.5 - 0.004 * np.arange(N)
    return found * np.exp(0.2 * g.standard_normal((N, 1)))


COUNTS = np.arange(N, 0.0, -1.0)


def measure(W: Rows, **more: Any) -> embgeo.Analysis:
    matrix = Matrix(W, tokens=tokens(), frequency=Frequency("counts", COUNTS, "drawn"))
    return embgeo.analyze(matrix, reference=False, pairs=0, **more)


@cache
def whole() -> embgeo.Analysis:
    return measure(rows())


@cache
def groups() -> npt.NDArray[np.int64]:
    found = deal_groups(hash_stems(tokens()))
    assert found is not None
    return found


def nearest(near: Rows, count: int) -> npt.NDArray[np.int64]:
    near = near.copy()
    np.fill_diagonal(near, -np.inf)
    return np.argsort(-near, axis=1)[:, :count]


def measure_literally(W: Rows, counts: Rows, directions: Rows) -> dict[str, float]:
    """Every number with an error, by the plainest reading of its definition."""
    norms, unit = np.linalg.norm(W, axis=1), naive.unit(W)
    total = unit.sum(axis=0)
    n = len(W)
    popular = np.zeros(n, dtype=bool)
    popular[np.argsort(-counts)[: round(0.2 * n)]] = True
    sigma = naive.singular_values(W)
    ranks = [np.argsort(np.argsort(x)).astype(float) for x in (norms, counts)]
    cosines = unit @ unit.T
    share = (~popular[nearest(cosines, K)]).mean(axis=1)
    distances = np.sort(np.linalg.norm(W[:, None] - W, axis=2), axis=1)
    z = np.exp(np.r_[(unit @ directions).T, -(unit @ directions).T]).sum(axis=1)
    angles = np.arccos(unit @ total / np.linalg.norm(total))
    return {
        "spectrum.effective_rank": naive.effective_rank(sigma),
        "spectrum.top_share": sigma[0] ** 2 / (sigma**2).sum(),
        "spectrum.mean_norm_ratio": float(np.linalg.norm(W.mean(axis=0)) / norms.mean()),
        "cosine.mean": float(cosines[~np.eye(n, dtype=bool)].mean()),
        "cosine.cone_half_angle_median": float(np.degrees(np.median(angles))),
        "isotropy.i1_unit_rows": z.min() / z.max(),
        "isotropy.isoscore": naive.isoscore(W),
        "frequency.norm_ratio": float(np.median(norms[popular]) / np.median(norms[~popular])),
        "frequency.norm_spearman": float(np.corrcoef(*ranks)[0, 1]),
        "frequency.neighbor_rarity_rare": float(share[~popular].mean()),
        "frequency.neighbor_rarity_popular": float(share[popular].mean()),
        "tokens.norm_median": float(np.median(norms)),
        "tokens.norm_rms": float(np.sqrt((norms**2).mean())),
        "tokens.intrinsic_dimension": (n - 1) / np.log(distances[:, 2] / distances[:, 1]).sum(),
    }


@cache
def literal_halves(shifted: bool) -> dict[str, Rows]:
    W = change(rows()) if shifted else rows()
    directions = np.linalg.svd(W)[2].T
    measured = [
        measure_literally(W[half[groups()]], COUNTS[half[groups()]], directions) for half in HALVES
    ]
    return {name: np.array([one[name] for one in measured]) for name in TOLERANCE}


def literal_error(halves: Rows) -> float:
    return float(np.sqrt(sum((one - halves.mean()) ** 2 for one in halves) / 28))


def change(W: Rows) -> Rows:
    g = np.random.default_rng(7)
    return W + 0.2 * g.standard_normal(W.shape) + 0.1


@pytest.mark.slow
def test_an_error_is_the_spread_over_thirty_halves() -> None:
    for name in TOLERANCE:
        literal = measure_literally(rows(), COUNTS, np.linalg.svd(rows())[2].T)[name]
        found = whole().find_scalar(name)
        assert found is not None
        assert found.value == pytest.approx(literal, rel=1e-9)
        assert found.population_error == pytest.approx(
            literal_error(literal_halves(False)[name]), rel=TOLERANCE[name]
        )
        halves = whole().by_half(name)
        assert halves is not None
        # To first order halves are off by what all of them are off by.
        common = 0.0 if TOLERANCE[name] < FIRST_ORDER else literal_halves(False)[name].mean()
        common -= halves.mean() if common else 0.0
        atol = 8 * TOLERANCE[name] * found.population_error
        np.testing.assert_allclose(halves + common, literal_halves(False)[name], rtol=0, atol=atol)


@pytest.mark.parametrize("pairs", ["all", 60_000])
def test_the_share_of_positive_cosines_has_an_error_from_a_sample_of_pairs(pairs: Any) -> None:
    """It includes that of the sample, of which halves have half as many."""
    W = rows() - 0.6 * rows().mean(axis=0)
    matrix = Matrix(W, tokens=tokens())
    found = embgeo.analyze(matrix, sections=["cosine"], pairs=pairs, reference=False)
    scalar = found["cosine.positive_share"]
    literal = literal_error(np.array([naive.positive_share(W[half[groups()]]) for half in HALVES]))
    sampling = np.sqrt(scalar.value * (1 - scalar.value) / 60_000)
    assert literal > 5 * sampling
    assert scalar.population_error == pytest.approx(np.hypot(literal, 1.4 * sampling), rel=0.1)


def test_every_error_over_tokens_has_a_twin() -> None:
    printed = {scalar.name for scalar in whole().scalars if scalar.population_error is not None}
    assert printed == {*TOLERANCE, "frequency.probe_auc"}
    assert {one.name for one in whole().halves} == printed


def test_numbers_without_an_error_say_why_or_are_extremes_and_counts() -> None:
    assert not any({"few_rows", "turning"} & {*scalar.caveats} for scalar in whole().scalars)
    for name in ("tokens.hubness", "spectrum.condition_number",
                 "cosine.cone_half_angle_max", "spectrum.energy_90", "isotropy.i1"):  # fmt: skip
        assert whole()[name].population_error is None, name


def test_the_error_of_a_difference_is_the_spread_of_the_differences() -> None:
    for name in TOLERANCE:
        first, second = literal_halves(False)[name], literal_halves(True)[name]
        found = changed()[name]
        assert found.error_note == "paired, token by token"
        tolerance = 4 * TOLERANCE[name]  # of a difference less is left
        assert found.standard_error == pytest.approx(literal_error(second - first), rel=tolerance)
        low, high = found.interval
        assert (high - low) / 2 == pytest.approx(2.1315 * found.standard_error, rel=1e-3)


@cache
def changed() -> dict[str, Any]:
    return compare_both(whole(), measure(change(rows())))


def compare_both(first: embgeo.Analysis, second: embgeo.Analysis) -> dict[str, Any]:
    members = [Member("a", "a", first), Member("b", "b", second)]
    found = differences(members, {1: match_rows(first, second)})
    return {one.name: one for one in found}


# Reasons for absence --------------------------------------------------------------------------


@pytest.mark.parametrize("rows_each", [5.99, 6.0])
def test_numbers_need_six_rows_for_each_dimension(rows_each: float) -> None:
    W = np.random.default_rng(0).standard_normal((300, 50 if rows_each == 6.0 else 51))
    found = embgeo.analyze(W, reference=False, sections=["spectrum", "tokens"])
    few = {s.name for s in found.scalars if "few_rows" in s.caveats}
    errors = {s.name for s in found.scalars if s.population_error is not None}
    assert bool(errors) == (rows_each == 6.0)
    assert ("spectrum.top_share" in few) == (rows_each < 6.0)


def test_rows_that_are_left_out_count_for_nothing() -> None:
    W = np.random.default_rng(0).standard_normal((301, 50))
    for zero in (1, 2):
        W[:zero] = 0.0
        found = embgeo.analyze(W, reference=False, sections=["spectrum"])["spectrum.top_share"]
        assert ("few_rows" in found.caveats) == (zero == 2)


@pytest.mark.parametrize("stems", [159, 160])
def test_numbers_need_160_stems(stems: int) -> None:
    W = np.random.default_rng(0).standard_normal((500, 6))
    names = [spell(i % stems) + spell(i) for i in range(500)]
    found = embgeo.analyze(Matrix(W, tokens=names), reference=False, sections=["cosine"])
    assert (found["cosine.mean"].population_error is None) == (stems == 159)
    assert ("few_rows" in found["cosine.mean"].caveats) == (stems == 159)


@pytest.mark.parametrize(("rows_each", "known"), [(4, False), (1, True)])
def test_a_dimension_that_halves_do_not_show_has_no_error(rows_each: int, known: bool) -> None:
    """Of four rows around each center, the two nearest of many lie elsewhere in a half."""
    g = np.random.default_rng(1)
    W = np.repeat(g.standard_normal((400 // rows_each, 8)), rows_each, axis=0)
    W += 1e-3 * g.standard_normal((400, 8))
    found = embgeo.analyze(W, reference=False, sections=["tokens"])["tokens.intrinsic_dimension"]
    assert (found.population_error is not None) == known
    assert ("size_dependent" in found.caveats) == (not known)


@pytest.mark.parametrize(("errors", "turning"), [(APART - 0.1, True), (APART + 0.1, False)])
def test_eigenvectors_turn_within_five_errors(errors: float, turning: bool) -> None:
    squares = GroupSquares("eigenvectors", np.eye(3), np.zeros(1, dtype=np.int64))
    squares.squares = np.ones((GROUPS, 3)) * [10.0, 1.0, 0.1]
    # Only the difference of the first two moves: by 2·8 in one half, −2·8 in the other.
    contrast = np.where(HALVES[0], 1.0, -1.0)
    squares.squares[:, 0] += contrast
    error = np.sqrt(2 * 16.0**2 / 28)
    gap = squares.squares[:, :2].sum(axis=0) @ [1.0, -1.0]
    squares.squares[:, 1] += (gap - errors * error) / GROUPS
    log_z = np.array([[5.0, 3.0, 3.0], [3.0, 3.0, 1.0]])  # the first and the last make I1
    assert is_turning(squares, log_z) == turning
    # Neither of the first two makes I1.
    assert not is_turning(squares, np.array([[3.0, 3.0, 5.0], [3.0, 3.0, 1.0]]))


@pytest.mark.parametrize("factor", [2.0**-90, 2.0**80])
def test_errors_of_rows_in_float32_do_not_depend_on_their_length(factor: float) -> None:
    W = np.random.default_rng(0).standard_normal((500, 6)).astype(np.float32)
    sections = ["spectrum", "isotropy"]
    base, far = (
        embgeo.analyze(rows, reference=False, sections=sections)
        for rows in (W, W * np.float32(factor))
    )
    for name in ("spectrum.effective_rank", "spectrum.top_share", "isotropy.isoscore"):
        error = base[name].population_error
        assert error is not None
        assert far[name].population_error == pytest.approx(error, rel=1e-6)
    assert far["isotropy.i1_unit_rows"].caveats == ("turning",)


def test_i1_of_turning_eigenvectors_says_so() -> None:
    found = embgeo.analyze(
        np.random.default_rng(0).standard_normal((500, 6)), reference=False, sections=["isotropy"]
    )["isotropy.i1_unit_rows"]
    assert found.population_error is None
    assert found.caveats == ("turning",)


@pytest.mark.parametrize(("share", "noted"), [(0.29, False), (0.31, True)])
def test_one_row_that_holds_much_of_an_eigenvalue_is_noted(share: float, noted: bool) -> None:
    assert LARGEST_ROW == 0.3
    W = np.random.default_rng(0).standard_normal((400, 4))
    W[:, 3] *= 0.01
    W[0, 3] = np.sqrt(share / (1 - share) * (W[1:, 3] ** 2).sum())
    found = embgeo.analyze(W, reference=False, sections=["spectrum", "isotropy"])
    for name in ("spectrum.effective_rank", "spectrum.top_share", "isotropy.isoscore"):
        assert ("dominant_row" in found[name].caveats) == noted, name
        assert found[name].population_error is not None


def test_a_note_needs_an_error() -> None:
    squares = GroupSquares("eigenvectors", np.eye(1), np.zeros(1, dtype=np.int64))
    squares.squares[0], squares.largest[0] = 1.0, 0.9
    scalar = whole().find_scalar("spectrum.condition_number")
    assert isinstance(scalar, Scalar)
    assert note_dominant_row(squares, [scalar])[0].caveats == ()


# Vocabularies ---------------------------------------------------------------------------------


def analyze_part(W: Rows, keep: npt.NDArray[np.bool_], named: bool = True) -> embgeo.Analysis:
    names = [tokens()[i] for i in np.flatnonzero(keep)]
    matrix = Matrix(W[keep], tokens=names if named else None)
    return embgeo.analyze(matrix, reference=False, sections=["cosine"], pairs=0)


def test_two_vocabularies_share_the_halves_of_what_they_share() -> None:
    """Nine tenths are shared: what these do drops out, and the rest is about what is not shared."""
    keep = np.random.default_rng(4).random((2, N)) < 0.95
    analyses = [analyze_part(rows(), one) for one in keep]
    found = compare_both(*analyses)["cosine.mean"]
    alone = np.hypot(*(a["cosine.mean"].population_error for a in analyses))
    assert found.error_note == "paired, token by token"
    assert 0.1 * alone < found.standard_error < 0.7 * alone


def test_rows_with_and_without_tokens_are_in_other_halves() -> None:
    every = np.ones(N, dtype=bool)
    analyses = [analyze_part(rows(), every), analyze_part(change(rows()), every, named=False)]
    found = compare_both(*analyses)["cosine.mean"]
    alone = np.hypot(*(a["cosine.mean"].population_error for a in analyses))
    assert found.error_note.startswith("errors of both sides")
    assert found.standard_error == pytest.approx(alone)


def test_row_numbers_are_the_stems_of_rows_without_tokens() -> None:
    found = analyze_part(rows(), np.ones(N, dtype=bool), named=False)
    dealt = deal_groups(hash_numbers(np.arange(N)))
    assert dealt is not None
    unit = naive.unit(rows())
    means = []
    for half in HALVES:
        some = unit[half[dealt]]
        means.append(((some @ some.T).sum() - len(some)) / (len(some) * (len(some) - 1)))
    np.testing.assert_allclose(found.by_half("cosine.mean"), means, rtol=1e-9)

"""Numbers of two matrices against obvious twins, and against what theory says."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import embgeo
from embgeo.comparison import overlap
from embgeo.comparison.overlap import NEIGHBORS, expected_jaccard
from embgeo.comparison.shared import GRAM_IS_ENOUGH, Shared, add_row, factor_scatter
from embgeo.comparison.similarity import PERMUTATIONS, PERMUTED
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.quantities.compare import OF_EQUALS
from embgeo.core.rows import NearestRows
from embgeo.metrics.neighbors import ALL_ROWS
from embgeo.numerics.sampling import generator
from embgeo.stats.resources import Resources
from tests.support import naive, naive_compare
from tests.support.compared import comparison, enter_pair, in_small_blocks, number, numbers, pair_of
from tests.support.matrices import from_spectrum, gaussian, narrow_cone, rng, two_sided
from tests.support.sampling import each_value, sample_cases


def rotation(d, seed=1):
    return np.linalg.qr(rng(seed).standard_normal((d, d)))[0]


def near(W, size, seed=9):
    return W + size * np.abs(W).mean() * rng(seed).standard_normal(W.shape)


PAIRS = {
    "unrelated": lambda: (gaussian(1), gaussian(2)),
    "alike": lambda: (gaussian(1), near(gaussian(1), 0.3)),
    "nearly equal": lambda: (gaussian(1), near(gaussian(1), 1e-6)),
    "wider": lambda: (gaussian(3), gaussian(4, d=9)),
    "narrower": lambda: (gaussian(5, d=9), gaussian(6, d=4)),
    "contained": lambda: (gaussian(7, d=9), gaussian(7, d=9)[:, :4] @ gaussian(8, n=4, d=4)),
    "cones": lambda: (narrow_cone(), narrow_cone(seed=5)),
    "two-sided": lambda: (two_sided(), two_sided(6)),
    "other scale": lambda: (gaussian(9) * 1e4, near(gaussian(9), 0.2) * 1e-4),
    "rank-deficient": lambda: (gaussian(10, d=3) @ gaussian(11, n=3), gaussian(12)),
    "more columns than rows": lambda: (gaussian(13, n=14, d=17), gaussian(14, n=14, d=5)),
    "dead column": lambda: (gaussian(15) * [1, 1, 0, 1, 1, 1], gaussian(16)),
    "float16": lambda: (gaussian(17).astype(np.float16), gaussian(18).astype(np.float16)),
    "bfloat16 and float32": lambda: (
        gaussian(19).astype(ml_dtypes.bfloat16),
        gaussian(19).astype(np.float32),
    ),
}
each_pair = pytest.mark.parametrize("name", PAIRS)


def both(name):
    return tuple(np.asarray(W, dtype=np.float64) for W in PAIRS[name]())


def orders(n, seed=0):
    """The permutations that a comparison draws."""
    g = generator(seed, "permutations of tokens")
    return [g.permutation(n) for _ in range(PERMUTATIONS)]


@pytest.mark.parametrize(("rows", "name"), sample_cases(itertools.product((7, 1000), PAIRS), 3))
@pytest.mark.slow
def test_every_number_agrees_with_its_twin(name, rows, monkeypatch):
    in_small_blocks(monkeypatch, rows)
    pair = pair_of(*PAIRS[name]())
    X, Y = both(name)
    expected = {
        "subspace_distance": naive_compare.subspace_distance(X, Y),
        "cka": naive_compare.cka(X, Y),
        "cka_debiased": naive_compare.cka_debiased(X, Y),
        "cka_p": naive_compare.cka_p(X, Y, orders(len(X))),
        "procrustes": naive_compare.procrustes(X, Y),
        "neighbor_overlap": naive_compare.jaccards(X, Y, 10).mean(),
    }
    if X.shape == Y.shape:
        change = np.linalg.norm(Y - X) / np.linalg.norm(X)
        expected["relative_change"] = change
        expected["token_cosine"] = np.mean(
            [x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in zip(X, Y, strict=True)]
        )
        expected["matrix_cosine"] = (X * Y).sum() / np.linalg.norm(X) / np.linalg.norm(Y)
        expected["change_effective_rank"] = naive_compare.effective_rank_of_change(X, Y)
    found = {name: value for name, value in numbers(pair).items() if value is not None}
    assert set(found) == set(expected)
    for key, value in expected.items():
        # Effective ranks of tiny changes live on rounding errors of the matrices themselves.
        tolerance = 1e-6 if key == "change_effective_rank" else 1e-9
        np.testing.assert_allclose(found[key], value, rtol=tolerance, atol=1e-14, err_msg=key)


@each_pair
def test_angles_agree_with_their_twin(name):
    X, Y = both(name)
    angles = pair_of(*PAIRS[name]())["compare.principal_angles"].y["principal angle"]
    np.testing.assert_allclose(angles, naive_compare.principal_angles(X, Y), atol=1e-6)
    assert np.all(np.diff(angles) >= 0)


# Theorems ---------------------------------------------------------------------------------------


def test_tokens_that_moved_are_those_that_lost_most_cosine():
    X, Y = gaussian(20, n=70), near(gaussian(20, n=70), 0.3)
    table = pair_of(X, Y)["compare.moved"]
    drops = naive_compare.drops(X, Y, 10)
    np.testing.assert_allclose([row[1] for row in table.rows], np.sort(drops)[::-1][:30], rtol=1e-9)
    jaccards = naive_compare.jaccards(X, Y, 10)
    assert table.columns[:4] == ("token", "cosine lost", "overlap", "before 1")
    assert len(table.columns) == 23
    for row in table.rows:
        at = int(str(row[0]).removeprefix("row "))
        assert row[2] == pytest.approx(jaccards[at], rel=1e-12)
        for W, shown in ((X, row[3:13]), (Y, row[13:])):
            cosines = naive.unit(W) @ naive.unit(W)[at]
            cosines[at] = -2.0
            assert list(shown) == [f"row {i}" for i in np.argsort(-cosines)[:10]]


def test_of_tokens_that_moved_alike_the_frequent_come_first():
    # Pairs of equal rows lose the same.
    X, Y = (np.repeat(gaussian(seed, n=35), 2, axis=0) for seed in (21, 22))
    counts = Frequency("counts", rng(23).permutation(70).astype(float), "made")
    inputs = [enter_pair(Matrix(W, frequency=counts), sections=("tokens",)) for W in (X, Y)]
    rows = pair_of(*inputs)["compare.moved"].rows
    at = [int(str(row[0]).removeprefix("row ")) for row in rows]
    twins = [(one, other) for one, other in itertools.pairwise(at) if one // 2 == other // 2]
    assert twins
    assert all(counts.counts[one] > counts.counts[other] for one, other in twins)


def test_tokens_that_kept_all_their_neighbors_did_not_move():
    W = gaussian(24, n=70)
    pair = pair_of(W, W)
    assert pair["compare.moved"].rows == ()
    assert number(pair, "procrustes") == 0.0  # not the 1e-15 that rounding leaves


def same_geometry(pair, residual=1e-13):
    assert number(pair, "subspace_distance") <= residual
    assert number(pair, "procrustes") <= residual
    assert number(pair, "cka") == pytest.approx(1.0, abs=1e-12)
    assert number(pair, "cka_debiased") == pytest.approx(1.0, abs=1e-12)
    assert number(pair, "cka_p") == 1 / (1 + PERMUTATIONS)
    assert number(pair, "neighbor_overlap") == 1.0
    assert np.all(pair["compare.principal_angles"].y["principal angle"] <= residual * 180)


ROTATED = {
    "plain": lambda: gaussian(30, n=200),
    "narrow cone": narrow_cone,
    "ill-conditioned": lambda: from_spectrum([9, 2.7, 0.09, 9e-4], 31, n=90),
}


def test_a_rotated_copy_is_the_same():
    for name in ROTATED:
        # Rounding the rotated rows moves their space by ε times the condition number.
        W, residual = ROTATED[name](), 1e-12
        same_geometry(pair_of(W, W @ rotation(W.shape[1])), residual)
        same_geometry(pair_of(W @ rotation(W.shape[1], 2), W), residual)


@pytest.mark.slow
def test_a_scaled_and_mirrored_copy_is_the_same():
    W = gaussian(32, n=200)
    same_geometry(pair_of(W, -1e5 * W))
    same_geometry(pair_of(W, W * [1, 1, -1, 1, 1, 1]))


def test_a_permuted_vocabulary_matched_by_token_is_the_same():
    W, order = gaussian(33, n=200), rng(33).permutation(200)
    tokens = tuple(f"t{i}" for i in range(200))
    moved = tuple(tokens[i] for i in order)
    pair = pair_of(
        enter_pair(W, "one", tokens=tokens),
        enter_pair((W @ rotation(6))[order], "two", tokens=moved),
    )
    same_geometry(pair)
    assert pair.matching.by == "token"
    np.testing.assert_array_equal(order[pair.matching.second], pair.matching.first)


def test_rows_matched_by_number_see_a_permutation():
    W, order = gaussian(34, n=200), rng(34).permutation(200)
    pair = pair_of(W, W[order])
    assert pair.matching.by == "row"
    assert number(pair, "cka") < 0.2
    assert number(pair, "neighbor_overlap") < 0.2


def test_equal_matrices_are_exactly_unchanged():
    pair = pair_of(gaussian(35), gaussian(35))
    assert number(pair, "relative_change") == 0.0
    assert pair["compare.change_effective_rank"].undefined == "nothing changed"
    for quantity, expected in OF_EQUALS.items():
        assert pair.scalar(quantity).value == pytest.approx(expected, abs=1e-7), quantity.name
    same_geometry(pair)


def test_orthogonal_subspaces_are_at_distance_one():
    Q = np.linalg.qr(gaussian(36, n=40, d=10))[0]
    X, Y = Q[:, :6] @ gaussian(37, n=6), Q[:, 6:]
    pair = pair_of(X, Y)
    assert number(pair, "subspace_distance") == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(pair["compare.principal_angles"].y["principal angle"], 90.0)
    # Nothing of Y can be rotated onto X: what is left is √2 of two matrices of norm 1.
    assert number(pair, "procrustes") == pytest.approx(np.sqrt(2.0), abs=1e-12)


def test_small_angles_are_not_lost():
    """1 − cos² of an angle below 1e-8 is 0: the residual is formed instead."""
    for angle in (1.0, 1e-3, 1e-8, 1e-9, 1e-12):
        Q = np.linalg.qr(gaussian(38, n=60, d=6))[0]
        X, Y = Q[:, :3], np.cos(angle) * Q[:, :3] + np.sin(angle) * Q[:, 3:]
        pair = pair_of(X @ rotation(3), Y @ rotation(3, 2))
        error = 1e-15 / angle
        assert number(pair, "subspace_distance") == pytest.approx(np.sin(angle), rel=1e-8 + error)
        expected = 2 * np.sin(
            angle / 2
        )  # the residual of the best rotation, which is the given one
        assert number(pair, "procrustes") == pytest.approx(expected, rel=1e-8 + error)
        np.testing.assert_allclose(
            pair["compare.principal_angles"].y["principal angle"],
            np.degrees(angle),
            rtol=1e-8 + error,
        )


def test_a_contained_space_is_at_distance_zero_from_either_side():
    X = gaussian(39, n=80, d=9)
    Y = X @ gaussian(40, n=9, d=4)
    assert number(pair_of(X, Y), "subspace_distance") < 1e-13
    assert number(pair_of(Y, X), "subspace_distance") < 1e-13


def test_every_number_is_the_same_from_either_side():
    X, Y = gaussian(41, n=80), near(gaussian(41, n=80), 0.5)
    one, other = numbers(pair_of(X, Y)), numbers(pair_of(Y, X))
    for name in one.keys() - {"relative_change"}:
        assert one[name] == pytest.approx(other[name], rel=1e-12), name


def test_cka_knows_no_shift_of_all_rows():
    X, Y = gaussian(42, n=80), near(gaussian(42, n=80), 0.5)
    plain = number(pair_of(X, Y), "cka")
    shifted = pair_of(X + 1000.0, Y - 300.0)
    assert number(shifted, "cka") == pytest.approx(plain, rel=1e-9)
    debiased = number(pair_of(X, Y), "cka_debiased")
    assert number(shifted, "cka_debiased") == pytest.approx(debiased, rel=1e-8)


def test_procrustes_of_a_shrunken_direction():
    """Closed form: orthonormal columns, one of them shortened to c in the other matrix."""
    Q, c = np.linalg.qr(gaussian(43, n=50, d=4))[0], 0.25
    scale = np.array([1, 1, 1, c])
    common = (3 + c) / (2 * np.sqrt(3 + c**2))
    pair = pair_of(Q, Q * scale @ rotation(4))
    assert number(pair, "procrustes") == pytest.approx(np.sqrt(2 - 2 * common), abs=1e-12)
    assert number(pair, "subspace_distance") < 1e-13


@pytest.mark.slow
def test_a_low_rank_update_has_its_rank():
    W = gaussian(44, n=200, d=12)
    update = gaussian(45, n=200, d=2) @ np.linalg.qr(gaussian(46, n=12, d=2))[0].T * 1e-3
    assert 1.5 < number(pair_of(W, W + update), "change_effective_rank") < 2.001


# Chance levels ----------------------------------------------------------------------------------


def test_chance_of_cka_is_its_mean_over_all_pairings():
    X, Y = gaussian(47, n=6, d=3), gaussian(48, n=6, d=2) + 1.0
    reference = pair_of(X, Y)["compare.cka"].reference
    assert reference == pytest.approx(naive_compare.mean_cka(X, Y), rel=1e-12)


@pytest.mark.slow
def test_debiased_cka_is_zero_on_average_where_cka_is_large():
    """More columns than rows: unrelated matrices look alike to the biased CKA (Murphy 2024)."""
    pairs = [pair_of(gaussian(60 + i, n=25, d=50), gaussian(90 + i, n=25, d=40)) for i in range(20)]
    debiased = [number(pair, "cka_debiased") for pair in pairs]
    assert min(number(pair, "cka") for pair in pairs) > 0.5
    assert abs(np.mean(debiased)) < 3 * np.std(debiased) / np.sqrt(20)
    assert np.std(debiased) < 0.1
    assert pairs[0]["compare.cka_debiased"].reference == 0.0


def test_the_mean_of_debiased_cka_over_all_pairings_is_zero():
    X, Y = gaussian(61, n=6, d=3), gaussian(62, n=6, d=2) + 1.0
    found = [naive_compare.cka_debiased(X, Y[list(o)]) for o in itertools.permutations(range(6))]
    assert np.mean(found) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.slow
def test_unrelated_matrices_have_any_p():
    """It is uniform: of 25 pairs, one or two lie below 0.05."""
    found = [
        number(pair_of(gaussian(i, n=30), gaussian(200 + i, n=30), queries=0), "cka_p")
        for i in range(25)
    ]
    assert sum(p < 0.05 for p in found) < 6
    assert 0.3 < np.mean(found) < 0.7


def test_the_unbiased_estimate_knows_no_shift_of_all_rows():
    X, Y = gaussian(69, n=20), gaussian(70, n=20)
    plain, shifted = (naive_compare.hsic(A @ A.T, Y @ Y.T) for A in (X, X + 5.0))
    assert plain == pytest.approx(shifted, rel=1e-10)


def test_of_many_tokens_some_are_permuted():
    X = gaussian(63, n=PERMUTED + 50)
    scalar = pair_of(X, near(X, 0.3))["compare.cka_p"]
    assert scalar.value == 1 / (1 + PERMUTATIONS)
    assert scalar.sample == "499 permutations of 250 of 300 shared tokens"
    assert 0 < scalar.standard_error < 0.003
    assert scalar.error_kind == "monte_carlo"


def test_chance_of_the_overlap_is_its_mean_over_all_sets():
    for n, k in ((7, 3), (8, 1), (5, 4), (6, 5)):
        expected = naive_compare.mean_jaccard_of_random_sets(n, k)
        assert expected_jaccard(n, k) == pytest.approx(expected, rel=1e-12)


def test_chance_of_the_distance_is_what_random_subspaces_give():
    pair = pair_of(gaussian(49, n=500, d=5), gaussian(50, n=500, d=5))
    scalar = pair["compare.subspace_distance"]
    assert scalar.reference == pytest.approx(np.sqrt(1 - 5 / 500))
    assert scalar.value == pytest.approx(scalar.reference, abs=0.01)


# The factor -------------------------------------------------------------------------------------


@each_value
@pytest.mark.parametrize("name", ["unrelated", "alike", "cones", "wider"])
@pytest.mark.parametrize("far", [1.0, 1e3])
def test_the_factor_of_the_gram_matrix_is_that_of_the_rows(name, far):
    W = np.hstack(both(name))
    mean = W.mean(axis=0)
    factor, _ = factor_scatter((W - mean).T @ (W - mean), GRAM_IS_ENOUGH)
    found = add_row(factor, far * np.sqrt(len(W)) * mean)
    assert np.array_equal(found, np.triu(found))
    exact = np.linalg.qr(W - mean + far * mean, mode="r")
    exact *= np.sign(np.diag(exact))[:, None]
    scale = np.linalg.norm(exact, axis=1, keepdims=True)
    np.testing.assert_allclose(found / scale, exact / scale, atol=1e-10)


def test_where_the_scatter_matrix_is_not_enough_it_is_not_used():
    for name in (
        "nearly equal",
        "contained",
        "rank-deficient",
        "more columns than rows",
        "dead column",
    ):
        W = np.hstack(both(name))
        W -= W.mean(axis=0)
        assert factor_scatter(W.T @ W, GRAM_IS_ENOUGH)[1] <= GRAM_IS_ENOUGH


# Passes -----------------------------------------------------------------------------------------


@pytest.fixture
def passes(monkeypatch):
    """How many rows each pass over both matrices has read."""
    read = []
    for name in ("fold", "fold_sides"):
        method = getattr(Shared, name)

        def counted(shared, *arguments, method=method):
            read.append(shared.n)
            method(shared, *arguments)

        monkeypatch.setattr(Shared, name, counted)
    return read


@pytest.mark.parametrize(
    ("name", "enough"),
    [("unrelated", 2), ("alike", 2), ("nearly equal", 2), ("cones", 2), ("contained", 3)],
)
def test_two_passes_are_enough_and_three_where_columns_depend_on_each_other(name, enough, passes):
    pair = pair_of(*PAIRS[name]())
    assert number(pair, "neighbor_overlap") >= 0
    assert passes == [60] * enough


@pytest.mark.parametrize(
    ("name", "enough"), [("alike", 2), ("near", 2), ("equal", 2), ("shorter", 3), ("contained", 3)]
)
@pytest.mark.slow
def test_sums_in_float32_are_repeated_where_their_rounding_may_show(
    name, enough, passes, monkeypatch
):
    """The columns of a far shorter matrix and of its difference from the other nearly agree."""
    monkeypatch.setattr("embgeo.comparison.shared.PROBED", 0)
    monkeypatch.setattr("embgeo.comparison.shared.ROUGH", 2e-5)  # of one block
    X, E = gaussian(1, n=600), gaussian(2, n=600)
    second = {
        "alike": X + 0.3 * E,
        "near": X + 1e-4 * E,
        "equal": X,
        "shorter": 0.03 * E,
        "contained": X @ gaussian(8, n=6, d=6),
    }
    X, Y = (W.astype(np.float32) for W in (X, second[name]))
    found = numbers(pair_of(X, Y))
    assert passes == [600] * enough
    monkeypatch.undo()
    exact = numbers(pair_of(X.astype(np.float64), Y.astype(np.float64)))
    for key, value in exact.items():
        close = None if value is None else pytest.approx(value, rel=2e-5, abs=1e-9)
        assert found[key] == close, key


@pytest.mark.slow
def test_neighbors_that_both_analyses_have_found_are_not_searched_again(monkeypatch):
    X = gaussian(1, n=5100, d=3)
    X[100:120] = X[5]
    Y = X + 0.3 * gaussian(2, n=5100, d=3)
    searched = []
    monkeypatch.setattr(
        overlap, "searches", lambda *a, plain=overlap.searches: (searched.append(1), plain(*a))[1]
    )
    sections = {"sections": "tokens,projection", "reference": False}
    (known,) = embgeo.diff(X, Y, **sections).pairs
    assert not searched
    monkeypatch.setattr(overlap, "recall_neighbors", lambda *_: None)
    (found,) = embgeo.diff(X, Y, **sections).pairs
    assert searched
    assert numbers(known) == numbers(found)
    assert known.tables == found.tables


def test_an_analysis_knows_neighbors_among_all_of_its_rows_in_order():
    for change, found in (
        ({}, True),
        ({"rows": ALL_ROWS}, False),
        ({"order": -1}, False),
        ({"precision": "float32"}, False),
        ({"k": NEIGHBORS - 1}, False),
        ({"queries": [3, 8, 10]}, False),
        ({"queries": [3, 8, 12]}, False),
        ({"nearest": None}, False),
    ):
        given = {"rows": ALL_ROWS + 1, "order": 1, "precision": "float64", "k": NEIGHBORS, **change}
        near = np.arange(4 * given["k"]).reshape(4, -1)
        nearest = NearestRows(np.array([3, 7, 8, 11]), near, near.astype(np.float32))
        analysis = SimpleNamespace(
            rows=np.arange(given["rows"]) + 5,
            nearest=given.get("nearest", nearest),
            provenance={"options": {"precision": given["precision"]}},
        )
        places, queries = np.arange(given["rows"]), np.array(given.get("queries", [3, 8, 11]))
        known = overlap.recall_neighbors(analysis, places[:: given["order"]], queries)
        assert (known is not None) == found
        if known is not None:
            np.testing.assert_array_equal(known, near[[0, 2, 3]])


def test_very_many_queries_are_asked_in_several_passes(passes, monkeypatch):
    X, Y = PAIRS["alike"]()
    plain = numbers(pair_of(X, Y))
    monkeypatch.setattr("embgeo.comparison.overlap.MOST_CHUNK", 25)
    monkeypatch.setattr("embgeo.comparison.overlap.LEAST_CHUNK", 1)
    assert numbers(pair_of(X, Y)) == plain
    assert passes == [60] * 6


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_no_number(threads, monkeypatch):
    in_small_blocks(monkeypatch, 7)
    X, Y = PAIRS["alike"]()
    found = numbers(pair_of(X, Y, resources=Resources(threads=threads)))
    assert found == pytest.approx(numbers(pair_of(X, Y)), rel=1e-12)


# Undefined --------------------------------------------------------------------------------------


def test_equal_rows_have_no_cka():
    pair = pair_of(np.ones((30, 4)) * [1, 2, 3, 4], gaussian(51, n=30, d=4))
    assert "centering leaves nothing" in pair["compare.cka"].undefined
    assert "centering leaves nothing" in pair["compare.cka_debiased"].undefined
    assert "equally far apart" in pair["compare.cka_p"].undefined
    assert number(pair, "subspace_distance") >= 0.0


def test_rows_equally_far_apart_have_no_debiased_cka():
    """A regular simplex: only the diagonal of its Gram matrix is not constant."""
    pair = pair_of(np.eye(12), gaussian(66, n=12))
    assert number(pair, "cka") > 0
    for name in ("cka_debiased", "cka_p"):
        assert "equally far apart" in pair[f"compare.{name}"].undefined


def test_three_tokens_are_too_few_for_an_unbiased_estimate():
    pair = pair_of(gaussian(67, n=3, d=2), gaussian(68, n=3, d=2))
    for name in ("cka_debiased", "cka_p"):
        assert "takes 4 shared tokens" in pair[f"compare.{name}"].undefined
    four = pair_of(gaussian(67, n=4, d=2), gaussian(68, n=4, d=2))
    assert -1.0 <= number(four, "cka_debiased") <= 1.0


def test_few_tokens_have_no_ten_neighbors():
    pair = pair_of(gaussian(52, n=10, d=3), gaussian(53, n=10, d=3))
    assert "10 shared tokens have no 10 neighbors" in pair["compare.neighbor_overlap"].undefined
    assert number(pair, "cka") > 0


def test_one_shared_token_is_not_enough():
    one = enter_pair(gaussian(54, n=20), "one", tokens=tuple(f"a{i}" for i in range(20)))
    two = enter_pair(gaussian(55, n=20), "two", tokens=("a3", *(f"b{i}" for i in range(19))))
    pair = pair_of(one, two)
    assert {s.undefined for s in pair.scalars} == {
        "one token is shared; --match row pairs equal row numbers"
    }
    assert pair.matching.left_out[0].missing == 19


def test_huge_and_tiny_entries_do_not_overflow():
    W = gaussian(56, n=60)
    pair = pair_of(W * 1e120, near(W, 0.3) * 1e-120)
    plain = pair_of(W, near(W, 0.3))
    for name in ("subspace_distance", "cka", "cka_debiased", "cka_p", "procrustes"):
        assert number(pair, name) == pytest.approx(number(plain, name), rel=1e-9), name


@pytest.mark.slow
def test_a_view_of_any_order_is_read_alike():
    X, Y = gaussian(57, n=70), near(gaussian(57, n=70), 0.4)
    plain = numbers(pair_of(X, Y))
    for turned in (np.asfortranarray(Y), Y[::-1][::-1], Y.astype(">f8")):
        assert numbers(pair_of(Matrix(X), enter_pair(turned))) == pytest.approx(plain, rel=1e-12)


@pytest.mark.slow
def test_chance_of_the_distance_takes_the_wider_space():
    for X, Y in ((5, 20), (20, 5)):
        pair = pair_of(gaussian(49, n=500, d=X), gaussian(50, n=500, d=Y))
        scalar = pair["compare.subspace_distance"]
        assert scalar.reference == pytest.approx(np.sqrt(1 - 20 / 500))
        assert scalar.value == pytest.approx(scalar.reference, abs=0.02)


def test_rows_in_another_order_are_said():
    """By row number all numbers of one matrix agree, and none of two; tokens tell them apart."""
    W = gaussian(60, n=80)
    order = rng(61).permutation(80)
    made = comparison(W, W[order])
    assert made.pairs[0].reordered
    assert "The same rows in another order." in made.sentences
    other = W[order].copy()
    other[3, 2] += 1e-9
    for one in (other, W[order].astype(np.float32), W[order][:79], W):
        assert not comparison(W, one).pairs[0].reordered
    names = np.array([f"t{i}" for i in range(80)])
    sides = ((W, names), (W[order], names[order]))
    made = comparison(*(enter_pair(rows, f"W{len(n)}", tokens=tuple(n)) for rows, n in sides))
    assert not made.pairs[0].reordered

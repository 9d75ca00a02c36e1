"""Spellings of tokens, hubs and intrinsic dimension on planted matrices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.core.matrix import Matrix
from embgeo.core.special import classify_token
from embgeo.core.values import Scalar, Table
from embgeo.numerics.hubness import count_occurrences, jackknife_error, share_among_equals
from tests.support import naive
from tests.support.sampling import each_value

Array = npt.NDArray[np.float64]


def tokens_of(matrix: Matrix, seed: int = 0) -> embgeo.Analysis:
    options = embgeo.Options(seed=seed)
    return embgeo.analyze(matrix, sections=["tokens"], options=options, reference=False)


def scalar(analysis: embgeo.Analysis, name: str) -> Scalar:
    found = analysis[f"tokens.{name}"]
    assert isinstance(found, Scalar)
    return found


def table(analysis: embgeo.Analysis, name: str) -> Table:
    found = analysis[f"tokens.{name}"]
    assert isinstance(found, Table)
    return found


# Spellings --------------------------------------------------------------------------------------


def test_spellings_of_real_vocabularies() -> None:
    for kind, spellings in (
        (
            "special",
            "<s> </s> <pad> <unk> <mask> <eos> <bos> <extra_id_0> <unk_2> <start_of_turn> "
            "[CLS] [SEP] [PAD] [UNK] [MASK] [INST] [/INST] [TOOL_CALLS] <|endoftext|> <|im_start|> "
            "<|fim_prefix|> <|start_header_id|> <｜begin▁of▁sentence｜> <table> </td>",
        ),
        (
            "unused",
            "[unused1] [unused12] [UNUSED_TOKEN_145] <unused7> <unused_3> <|unused_1|> <reserved_2>"
            " <|reserved_special_token_3|> <|reserved_200000|> <|extra_7|> [control_8] <dummy4> "
            "<placeholder_1> <|placeholder1|> madeupword0002 </s>NOTUSED",
        ),
        ("byte", "<0x0A> <0xff> <0x00>"),
        (
            "",
            "< > [ ] << >> <= </ /> <> [] [] a<b> [sic] [A] <3 <-- --> => the [the] (x) {x} | <| "
            "<|> <s><s> unused extra reserved [1] [12] <0x0> <0x0AB> Ġ< ▁[ █ dummy control_8",
        ),
    ):
        found = {spelling: classify_token(spelling) for spelling in spellings.split()}
        assert found == dict.fromkeys(found, kind)


def test_labels_with_blanks() -> None:
    for token in ("", " ", "<unused id 7>", "<row 3>", "<padding row 2>", "<a\n>"):
        assert classify_token(token) == ("unused" if token.endswith(("7>", "3>", "2>")) else "")


def test_long_hostile_tokens_are_read_in_linear_time() -> None:
    for token in ("<" + "a" * 10**6, "<|" + "unused" * 10**5, "[" + "A_" * 10**6, "<" * 10**6):
        assert classify_token(token) == ""


# Hubs -------------------------------------------------------------------------------------------


def test_a_planted_hub_is_found() -> None:
    g = np.random.default_rng(1)
    rows = g.standard_normal((400, 30)) + 0.8
    plain = scalar(tokens_of(Matrix(rows)), "hubness").value
    hub = np.vstack([rows, rows.mean(axis=0)])
    analysis = tokens_of(Matrix(hub))
    skew = scalar(analysis, "hubness").value
    assert plain is not None
    assert skew is not None
    assert skew > plain + 3
    assert table(analysis, "hubs").rows[0][0] == 400


@pytest.mark.parametrize("n", [12, 40])
def test_a_regular_simplex_has_no_hubs(n: int) -> None:
    """All rows are equally near: no order of rows and no rounding makes one of them a hub."""
    g = np.random.default_rng(n)
    rotation = np.linalg.qr(g.standard_normal((n, n)))[0]
    found = scalar(tokens_of(Matrix((np.eye(n) - 1 / n) @ rotation)), "hubness")
    assert "equally often" in found.undefined


def test_ties_do_not_depend_on_the_order_of_rows() -> None:
    g = np.random.default_rng(2)
    lattice = naive.unit(g.integers(-1, 2, size=(80, 3)) + np.array([0.5, 0.25, 0.125]))
    order = g.permutation(80)
    np.testing.assert_allclose(
        count_occurrences(lattice, 5)[0][order], count_occurrences(lattice[order], 5)[0]
    )
    np.testing.assert_allclose(count_occurrences(lattice, 5)[0], naive.occurrences(lattice, 5))


@each_value
@pytest.mark.parametrize(
    ("rows", "base"),
    [
        (np.sign(np.random.default_rng(0).standard_normal((1500, 8))), 0.8),
        (np.eye(300), 0.8),
        (np.round(np.random.default_rng(0).standard_normal((1500, 3))) + 0.25, 0.8),
    ],
    ids=["signs", "one-hot", "rounded"],
)
@pytest.mark.parametrize("how", ["sample", "all"])
def test_neighbors_of_tied_rows_do_not_depend_on_their_order(
    rows: npt.NDArray[np.float64], base: float, how: str
) -> None:
    """Sorted by frequency, four fifths of them are rare, and so are four fifths of neighbors."""
    found = embgeo.analyze(
        rows, rank_order=True, sections=["frequency", "tokens"], neighbors_of=how, reference=False
    )
    for name in ("rare", "popular"):
        assert found[f"frequency.neighbor_rarity_{name}"].value == pytest.approx(base, abs=0.04)
    nearest = found.nearest
    assert nearest is not None
    # None is preferred by all others, and none by its place.
    counts = np.bincount(nearest.neighbors.ravel(), minlength=len(rows))
    assert counts[: len(rows) // 5].mean() == pytest.approx(counts.mean(), rel=0.15)


@pytest.mark.parametrize("asked", [90, 60], ids=["all rows", "a sample"])
def test_the_nearest_rows_are_those_of_largest_cosine(
    asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(9).standard_normal((91, 6))
    rows[7] = 0.0  # left out: places are not row numbers
    monkeypatch.setattr("embgeo.metrics.neighbors.ALL_ROWS", asked)
    monkeypatch.setattr("embgeo.metrics.neighbors.HUB_QUERIES", 60)
    nearest = tokens_of(Matrix(rows)).nearest
    assert nearest is not None
    assert len(nearest.rows) >= asked  # with those that tables list
    unit = naive.unit(np.delete(rows, 7, axis=0))
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    order = np.argsort(-cosines, axis=1)[:, :10]
    assert np.array_equal(nearest.neighbors, order[nearest.rows])
    expected = np.take_along_axis(cosines, order, axis=1)[nearest.rows]
    np.testing.assert_allclose(nearest.cosines, expected, rtol=1e-6)


@pytest.mark.slow
def test_hubness_of_some_queries_estimates_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """With equal rows among them, which share their places."""
    g = np.random.default_rng(3)
    rows = g.standard_normal((900, 40)) * np.exp(0.5 * g.standard_normal((900, 1))) + 0.5
    rows[-60:] = rows[:60]
    exact = scalar(tokens_of(Matrix(rows)), "hubness").value
    monkeypatch.setattr("embgeo.metrics.neighbors.ALL_ROWS", 800)
    monkeypatch.setattr("embgeo.metrics.neighbors.HUB_QUERIES", 300)
    found = [scalar(tokens_of(Matrix(rows), seed), "hubness") for seed in range(12)]
    assert found[0].sample == "300 queries against all 900 rows"
    assert (found[0].size, found[0].freedom) == (900, 19)
    values = np.array([float(one) for one in found])
    errors = np.array([one.standard_error for one in found], dtype=float)
    assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(12)
    assert errors.mean() == pytest.approx(values.std(), rel=0.5)


def test_all_queries_give_the_skewness_itself() -> None:
    rows = naive.unit(np.random.default_rng(5).standard_normal((90, 4)))
    rows[30:36] = rows[0]
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -np.inf)
    near = np.argsort(-cosines, axis=1, kind="stable")[:, :5]
    group = np.unique(rows.round(12), axis=0, return_inverse=True)[1].ravel()
    places = share_among_equals(near, np.arange(90), group)
    every = np.ones(90, dtype=bool)
    counts = naive.occurrences(rows, 5)
    np.testing.assert_allclose(places.sums(every)[0], counts, atol=1e-12)
    assert places.skewness(every, 5) == pytest.approx(naive.skewness(counts), rel=1e-9)


def test_the_error_of_hubness_is_the_literal_jackknife() -> None:
    """√((1 − n/m)·(g − 1)/g·Σ(θ_i − θ̄)²), with every g-th query left out in turn."""
    others = np.random.default_rng(6).integers(1, 60, (24, 5))
    near, parts = (np.arange(24)[:, None] + others) % 60, 4
    places = share_among_equals(near, np.arange(24), np.arange(60))
    number = np.arange(24) % parts
    left = np.array([places.skewness(number != part, 5) for part in range(parts)], dtype=float)
    spread = sum((value - left.mean()) ** 2 for value in left)
    expected = np.sqrt((1 - 24 / 60) * (parts - 1) / parts * spread)
    assert jackknife_error(places, 5, parts) == pytest.approx(expected, rel=1e-12)


# Intrinsic dimension ----------------------------------------------------------------------------


def cube(k: int, d: int, n: int, seed: int) -> Array:
    """Uniform on a k-dimensional cube, turned into d dimensions away from the origin."""
    g = np.random.default_rng(seed)
    frame = np.linalg.qr(g.standard_normal((d, d)))[0][:k]
    return g.random((n, k)) @ frame + 0.3


@pytest.mark.slow
def test_two_nn_finds_the_dimension_of_a_cube() -> None:
    for k, d in ((1, 3), (2, 2), (2, 20), (3, 10)):
        found = scalar(tokens_of(Matrix(cube(k, d, 3000, seed=k))), "intrinsic_dimension")
        assert found.value is not None
        assert found.standard_error is not None
        # The edge of the cube costs a few percent more than the error of the sample.
        assert abs(found.value - k) < 4 * found.standard_error + 0.03 * k
        assert found.sample == "600 queries against 3,000 rows"


def test_two_nn_does_not_depend_on_the_scale_of_float32() -> None:
    """Squares that overflow there, vanish, or lose their digits are looked at in float64."""
    for exponent in (-100, -70, -50, 50, 100):
        rows = cube(3, 7, 500, seed=5).astype(np.float32)
        scaled = np.ldexp(rows, exponent)
        values = [scalar(tokens_of(Matrix(w)), "intrinsic_dimension").value for w in (rows, scaled)]
        assert values[1] == pytest.approx(values[0], rel=1e-9)


def test_two_nn_is_unchanged_by_duplicates() -> None:
    rows = cube(2, 5, 600, seed=9)
    once = scalar(tokens_of(Matrix(rows)), "intrinsic_dimension")
    twice = scalar(tokens_of(Matrix(np.tile(rows, (2, 1)))), "intrinsic_dimension")
    assert twice.value == pytest.approx(once.value, rel=1e-12)
    assert "600 duplicate rows left out" in twice.convention
    assert once.sample == "all 600 queries against 600 rows"


def test_two_nn_is_unchanged_by_rotation_shift_and_scale() -> None:
    rows = cube(3, 6, 400, seed=10)
    rotation = np.linalg.qr(np.random.default_rng(4).standard_normal((6, 6)))[0]
    moved = 70.0 * (rows @ rotation) + 5.0
    values = [scalar(tokens_of(Matrix(w)), "intrinsic_dimension").value for w in (rows, moved)]
    assert values[1] == pytest.approx(values[0], rel=1e-9)


def test_two_nn_of_equally_near_rows_is_undefined() -> None:
    found = scalar(tokens_of(Matrix(np.eye(8))), "intrinsic_dimension")
    assert "every query are equally far" in found.undefined


@pytest.mark.parametrize(("length", "known"), [(4, True), (5, False)])
def test_two_nn_of_a_grid_is_undefined(length: int, known: bool) -> None:
    """Of four rows in a line two have neighbors at one distance, of five three."""
    lines = 1000.0 * np.random.default_rng(2).standard_normal((30, 1, 2))
    rows = (lines + np.arange(length)[:, None] * np.array([1.0, 0.0])).reshape(-1, 2)
    found = scalar(tokens_of(Matrix(np.round(rows * 2.0**10) / 2.0**10)), "intrinsic_dimension")
    assert (found.value is not None) is known
    assert known or "most queries are equally far" in found.undefined
    few = scalar(tokens_of(Matrix(np.repeat(np.eye(2), 9, axis=0))), "intrinsic_dimension")
    assert few.undefined == "2 distinct rows have no two neighbors each"

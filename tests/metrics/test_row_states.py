"""Damaged, constant, mean-initialized and one-sided rows; special tokens; both sides' norms."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from embgeo.core.special import SpecialToken
from embgeo.measure.analyze import analyze
from embgeo.metrics import rows
from embgeo.metrics.facts import Facts
from tests.support.matrices import gaussian
from tests.support.sampling import each_value

N, D = 200, 8
SPECIAL = (
    SpecialToken("<pad>", 0, ("pad",)),
    SpecialToken("<|im_start|>", 3, ("added", "template")),
    SpecialToken("<s>", 10, ("bos",)),
    SpecialToken("<extra>", None, ("added",)),
)


def untied() -> Matrix:
    """Zero padding, a damaged row on either side, a constant one, one equal to the mean, twins."""
    W, U = gaussian(310, N, D), gaussian(311, N, 5) + 3.0
    W[0] = 0.0
    W[3] *= 1e-17
    W[5] = -0.25
    W[11] = W[10]
    U[0] = U[7] = 0.0
    U[8, 2] = np.inf
    W[6] = np.delete(W, [0, 3, 6, N - 1], axis=0).mean(axis=0)
    return Matrix(
        W,
        tokens=tuple(f"t{row}" for row in range(N)),
        output=Matrix(U),
        special=SPECIAL,
        vocabulary_size=N + 1,
        tied_as_configured=False,
        masked={"padding beyond the vocabulary": np.array([N - 1])},
    )


@pytest.fixture(scope="module")
def found():
    return analyze(untied(), sections=("tokens",), reference=False)


def test_counts(found):
    expected = {
        "damaged_rows": 2,
        "output_damaged_rows": 3,
        "constant_rows": 1,
        "mean_rows": 1,
        "special_damaged_rows": 1,
        "missing_rows": 1,
        "tied_as_configured": 0,
    }
    assert {name: found[f"tokens.{name}"].value for name in expected} == expected


def test_norms_are_those_of_the_vocabulary(found):
    norms = np.linalg.norm(untied().data[: N - 1], axis=1)
    norms = norms[np.isfinite(norms)]
    assert found["tokens.norm_median"].value == pytest.approx(np.median(norms))


def test_every_row_that_is_not_healthy_is_listed(found):
    table = found["tokens.damaged"]
    assert table.columns == ("row", "token", "count", "state", "‖w‖", "output", "‖u‖")
    assert [(row[0], row[3], row[5]) for row in table.rows] == [
        (3, "damaged", "healthy"),
        (5, "constant", "healthy"),
        (6, "mean-initialized", "healthy"),
        (7, "healthy", "zero"),
        (8, "healthy", "non-finite"),
    ]


def test_special_tokens(found):
    table = found["tokens.special"]
    states = {row[0]: (row[1], row[2], row[4], row[7]) for row in table.rows}
    assert states == {
        "<extra>": (None, "added", "no row", None),
        "<pad>": (0, "pad", "padding", "padding"),
        "<|im_start|>": (3, "added, template", "damaged", "healthy"),
        "<s>": (10, "bos", "identical", "healthy"),
    }
    # The gravest first, one without a row before all.
    assert [row[0] for row in table.rows] == ["<extra>", "<|im_start|>", "<s>", "<pad>"]
    shares = {row[0]: row[6] for row in table.rows}
    norms = np.linalg.norm(untied().data[: N - 1], axis=1)
    assert shares["<s>"] == pytest.approx(100 * (norms <= norms[10]).mean())
    assert shares["<|im_start|>"] == pytest.approx(100 * 2 / (N - 1))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_mean_initialized_rows_of_any_type(dtype):
    W = (gaussian(312, 100, 32) + 0.5).astype(dtype).astype(np.float64)
    W[[4, 40]] = np.delete(W, [4, 40], axis=0).mean(axis=0)
    table = analyze(Matrix(W.astype(dtype)), sections=("tokens",), reference=False)[
        "tokens.damaged"
    ]
    assert [(row[0], row[3]) for row in table.rows] == [
        (4, "mean-initialized"),
        (40, "mean-initialized"),
    ]


@pytest.mark.parametrize(("spread", "seen"), [(3.2e-5, 20), (5e-3, 0)])
def test_rows_that_were_added_around_the_mean(spread, seen):
    """As `resize_token_embeddings` does since transformers 4.46, and an init of some structure."""
    old = gaussian(315, 500, 32) + 0.3
    W = np.r_[old, old.mean(axis=0) + spread * gaussian(316, 20, 32)].astype(np.float32)
    found = analyze(Matrix(W), sections=("tokens",), reference=False)
    assert found["tokens.mean_rows"].value == seen


@each_value
@pytest.mark.parametrize(
    ("distance", "length", "found"),
    [(0.99e-3, 1.0, True), (1.01e-3, 1.0, False), (0.9e-3, 0.091, True), (0.9e-3, 0.089, False)],
)
@pytest.mark.parametrize("d", [2, 3])
def test_both_sides_of_a_thousandth_of_the_median_distance(distance, length, found, d):
    """And of a hundredth of the mean row's length."""
    shared = SimpleNamespace(
        mean_distances=np.r_[distance, np.ones(99)],
        norms=np.ones(100),
        moments=SimpleNamespace(mean=np.r_[length, np.zeros(d - 1)]),
    )
    facts = Facts(n=100, d=d, kept=np.arange(100))
    assert len(rows.find_mean_rows(facts, shared)) == (found and d > 2)


@pytest.mark.parametrize("d", [1, 2])
def test_rows_come_near_the_mean_by_chance(d):
    W = gaussian(317, 200, d) + 2.0
    W[7] = W.mean(axis=0) + 1e-4
    assert analyze(Matrix(W), sections=("tokens",), reference=False)["tokens.mean_rows"].value == 0


def test_a_short_row_is_not_the_mean_of_rows_that_cancel():
    W = gaussian(318, 500, 8)
    W -= W.mean(axis=0) * (1 - 1e-3)
    W[3] *= 1e-4
    assert analyze(Matrix(W), sections=("tokens",), reference=False)["tokens.mean_rows"].value == 0


def test_rows_of_a_narrow_cone_are_not_mean_initialized():
    """All of them equal the mean row but for the rounding of bfloat16."""
    W = (1.0 + 1e-4 * gaussian(313, 100, 8)).astype(ml_dtypes.bfloat16)
    found = analyze(Matrix(W), sections=("tokens",), reference=False)
    assert found["tokens.mean_rows"].value == 0


def test_two_equal_columns_are_constant():
    W = gaussian(316, 60, 2)
    W[[4, 9], 1] = W[[4, 9], 0]
    found = analyze(Matrix(W), sections=("tokens",), reference=False)
    assert found["tokens.constant_rows"].value == 2


def test_constant_rows_among_all_patterns_of_two_values_are_chance():
    """Expert: the corners of a cube are a codebook of ten bits, and none of its rows is a fault."""
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=10)))
    found = analyze(Matrix(corners), sections=("tokens",), reference=False)
    assert found["tokens.constant_rows"].value == 0
    grid = np.array(list(itertools.product(range(1, 33), repeat=2)), dtype=float)
    found = analyze(Matrix(grid), sections=("tokens",), reference=False)
    assert found["tokens.constant_rows"].value == 0


@pytest.mark.parametrize(("constant", "found"), [(10, 0), (11, 11)])
def test_both_sides_of_constant_rows_by_chance(constant, found, monkeypatch):
    """Half of the entries of two columns are equal: of 1,024 rows of nine, 4 ± 3·2 are constant."""
    compared = np.array([[1.0] * 9, [0.0] * 9])
    monkeypatch.setattr(rows, "draw_compared", lambda _: np.array([0, 1]))
    flat = np.arange(500, 500 + constant)
    taken = {2: compared, constant: np.ones((constant, 9))}
    m = SimpleNamespace(
        facts=Facts(n=1024, d=9, kept=np.arange(1024), flat=flat),
        reader=SimpleNamespace(take=lambda index: taken[len(index)]),
    )
    assert len(rows.find_constant_rows(m)) == found


def test_a_single_column_is_not_constant():
    found = analyze(Matrix(gaussian(314, 30, 1)), sections=("tokens",), reference=False)
    assert found["tokens.constant_rows"].value == 0

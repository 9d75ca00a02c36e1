"""Suspects: each reason on both sides of its limit, and which of them are serious."""

from __future__ import annotations

import numpy as np
import pytest

import embgeo
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.special import SpecialToken
from embgeo.core.suspects import REASONS
from tests.support.matrices import rng

N, D = 1500, 48


def ordinary(n=N, d=D, mean=0.3, seed=0):
    return rng(seed).standard_normal((n, d)) + mean


def suspects_of(rows, **named):
    matrix = rows if isinstance(rows, Matrix) else Matrix(np.asarray(rows), **named)
    found = embgeo.analyze(matrix, sections=["suspects"], reference=False)
    return {own.name: own for own in found.suspects}, found


def rows_of(rows, reason, **named):
    own = suspects_of(rows, **named)[0].get(f"{reason}.input")
    return [] if own is None else own.rows.tolist()


def test_an_ordinary_matrix_has_none():
    found, analysis = suspects_of(ordinary())
    assert found == {}
    assert all(not s.value for s in analysis.scalars if s.name != "suspects.mean_cosine_others")


def test_a_row_has_the_most_serious_reason_only():
    W = ordinary()
    W[5:8] = 0.0
    W[9:12] = 0.5
    found, _ = suspects_of(W)
    assert [own.reason for own in found.values()] == ["zero", "constant"]
    assert found["constant.input"].rows.tolist() == [9, 10, 11]
    order = list(REASONS)
    assert order.index("zero") < order.index("constant") < order.index("duplicate")


@pytest.mark.parametrize("seed", range(3))
def test_plain_reasons_equal_a_loop_over_all_rows(seed):
    g, W = rng(seed), ordinary(400, 6, seed=seed)
    for row, kind in zip(g.permutation(400)[:60], g.integers(0, 4, 60), strict=True):
        W[row] = (0.0, np.r_[np.nan, W[row, 1:]], 0.7, W[g.integers(0, 400)])[kind]
    expected = {"nonfinite": [], "zero": [], "constant": [], "duplicate": []}
    for i, row in enumerate(W):
        if not np.isfinite(row).all():
            expected["nonfinite"].append(i)
        elif not row.any():
            expected["zero"].append(i)
        elif np.std(row) < 1e-8 * np.linalg.norm(row):
            expected["constant"].append(i)
        elif any((row == W[j]).all() for j in range(i)):
            expected["duplicate"].append(i)
    found, analysis = suspects_of(W, tokens=tuple(f"word{row}" for row in range(400)))
    assert {own.reason: own.rows.tolist() for own in found.values()} == expected
    for reason, rows in expected.items():
        assert analysis[f"suspects.{reason}"].value == len(rows)


# --- at the mean ----------------------------------------------------------------------------------


def resized(old, added, factor, seed=1):
    """Return rows that transformers adds: from the mean and a multiple of the covariance."""
    spread = factor * np.cov(old.T)
    return rng(seed).multivariate_normal(old.mean(axis=0), spread, added)


def test_rows_that_a_resize_adds_are_at_the_mean():
    for factor, found in ((0.0, True), (1e-9, True), (1e-7, True), (1e-3, False), (1.0, False)):
        old = ordinary()
        W = np.concatenate([old, resized(old, 30, factor)])
        assert rows_of(W, "mean") == (list(range(N, N + 30)) if found else [])


def test_a_single_row_at_the_mean():
    W = ordinary()
    W[7] = np.delete(W, 7, axis=0).mean(axis=0)
    assert rows_of(W, "mean") == [7]
    W[7] += 0.01 * rng(3).standard_normal(D)
    assert rows_of(W, "mean") == []


def test_the_mean_is_that_of_the_rows_that_lived_then():
    W = rng(0).standard_normal((3000, 64)) + 0.05
    W[:60] = 0.02 * rng(1).standard_normal((60, 64))
    W[100:110] = W.mean(axis=0)
    assert rows_of(W, "mean") == list(range(100, 110))


def test_short_rows_near_a_short_mean_are_not_at_it():
    W = ordinary(mean=0.0)
    W[:40] *= 0.02
    assert rows_of(W, "mean") == []


# --- equal and near-identical rows ----------------------------------------------------------------


def test_duplicates_are_the_later_rows_of_each_group():
    W = ordinary()
    W[[40, 50, 60]] = W[7]
    W[70] = W[30]
    own = suspects_of(W)[0]["duplicate.input"]
    assert own.rows.tolist() == [40, 50, 60, 70]
    assert own.group.tolist() == [7, 7, 7, 30]


def test_near_identical_rows_do_not_count_the_copies_of_one_row():
    W = ordinary()
    W[20] = 1.5 * W[19] + 1e-3 * rng(2).standard_normal(D)
    W[21] = W[20]
    found, _ = suspects_of(W)
    assert found["near_identical.input"].rows.tolist() == [19, 20]
    assert found["near_identical.input"].values.min() > 0.999
    assert found["duplicate.input"].rows.tolist() == [21]


def test_where_near_rows_are_ordinary_their_number_is_undefined():
    _, cone = suspects_of(ordinary(mean=12.0))
    assert cone["suspects.near_identical"].undefined
    _, narrow = suspects_of(ordinary(d=2, mean=0.0))
    assert narrow["suspects.near_identical"].undefined


# --- norms ----------------------------------------------------------------------------------------


def test_rows_of_an_initialization_were_never_trained():
    W = ordinary(mean=0.0)
    W[:300] *= 0.2
    W[300:] *= np.exp(0.3 * rng(1).standard_normal((N - 300, 1)))
    assert rows_of(W, "untrained") == list(range(300))
    W[:300] += 0.1  # a common direction: something moved them
    assert rows_of(W, "untrained") == []


@pytest.mark.parametrize("d", [16, 64, 256])
def test_rows_are_not_called_untrained_for_their_norm_alone(d):
    """Shorter rows, and norms that fall with the row: all directions are those of chance."""
    order, W = rng(1).permutation(2000), rng(0).standard_normal((2000, d))
    shorter = np.where(np.arange(2000) < 500, 0.5, 1.0)
    for scale in (shorter[order], shorter, np.linspace(2.0, 1.0, 2000)):
        assert rows_of(W * scale[:, None], "untrained") == []
    ordered = W * np.where(np.arange(d) < d // 4, 2.0, 1.0)
    ordered[:500] = 0.5 * W[:500]
    if d > 16:
        assert set(rows_of(ordered, "untrained")) >= set(range(300))


def test_added_rows_with_norms_among_the_others_were_never_trained():
    others = rng(0).standard_normal((2000, 64)) * np.exp(0.3 * rng(1).standard_normal((2000, 1)))
    added = 0.9 * rng(2).standard_normal((300, 64))
    assert set(rows_of(np.concatenate([others, added]), "untrained")) >= set(range(2000, 2300))
    shuffled = rng(3).permutation(np.concatenate([others, added]))
    drawn = rng(2).multivariate_normal(others.mean(axis=0), np.cov(others.T), 300)
    for last in (added + 0.1, added[:20], drawn, shuffled):
        assert rows_of(np.concatenate([others, last]), "untrained") == []
    assert rows_of(added, "untrained") == []


def test_norms_of_rounded_rows_have_no_modes():
    for step in (0.8, 1.2, 1.7, 2.5):
        W = np.round(rng(0).standard_normal((2000, 32)) / step) * step
        found, _ = suspects_of(W)
        assert not {"untrained.input", "short.input", "long.input"} & found.keys()


def test_rows_twenty_to_a_hundred_fifty_times_shorter_are_said():
    for share in (0.12, 0.3, 0.49):
        W, count = ordinary(2000, 64, mean=0.0), int(share * 2000)
        W[:count] /= np.exp(rng(1).uniform(np.log(20), np.log(150), (count, 1)))
        assert rows_of(W, "short") == list(range(count))


def test_a_few_rows_much_longer():
    for factor, found in ((1.0, False), (2.5, False), (12.0, True)):
        W = ordinary()
        W[:5] *= factor
        assert rows_of(W, "long") == (list(range(5)) if found else [])


def test_the_smaller_mode_is_the_odd_one():
    W = ordinary(mean=0.0)
    W[:500] *= 8.0
    W *= np.exp(0.2 * rng(1).standard_normal((N, 1)))
    assert rows_of(W, "long") == list(range(500))
    assert rows_of(W, "short") == []


# --- tokens ---------------------------------------------------------------------------------------


NAMES = [f"word{row}" for row in range(N)]


def named(**others):
    tokens = list(NAMES)
    for row, token in others.items():
        tokens[int(row[1:])] = token
    return tuple(tokens)


def test_tokens_that_nothing_uses_are_not_serious():
    for token, roles, serious in (
        ("word", (), True),
        ("<0x0A>", (), False),
        ("[unused7]", (), False),
        ("<|reserved_special_token_3|>", (), False),
        ("<|reserved_special_token_3|>", ("template",), True),
        ("<extra_1>", ("added",), True),
        ("word", ("unused",), False),
        ("<|im_start|>", ("special",), True),
    ):
        W = ordinary()
        W[9] = 0.0
        special = (SpecialToken(token, 9, roles),) if roles else ()
        found, analysis = suspects_of(W, tokens=named(r9=token), special=special)
        assert found["zero.input"].serious.tolist() == [serious]
        assert found["zero.input"].tokens == (token,)
        assert analysis["suspects.zero"].value == serious


def test_padding_and_rows_beyond_the_vocabulary_are_rows_of_no_token():
    W = ordinary()
    W[3] = 0.0
    special = (SpecialToken("<pad>", 3, ("pad",)),)
    masked = {"padding beyond the vocabulary": np.arange(N - 10, N)}
    found, _ = suspects_of(W, tokens=named(r3="<pad>"), special=special, masked=masked)
    assert [*found] == ["no_token.input"]
    assert found["no_token.input"].rows.tolist() == [3, *range(N - 10, N)]
    assert not found["no_token.input"].serious.any()


def test_a_special_token_among_unused_ones_looks_untrained():
    W = ordinary(mean=0.0)
    W[100:140] = 0.5 * rng(1).standard_normal(D) + 0.1 * W[100:140]
    tokens = named(**{f"r{row}": f"[unused{row}]" for row in range(100, 140)})
    special = (SpecialToken("<|im_start|>", 120, ("special",)), SpecialToken("<s>", 9, ("bos",)))
    tokens = (*tokens[:120], "<|im_start|>", *tokens[121:])
    found, _ = suspects_of(W, tokens=tokens, special=special)
    assert found["special.input"].rows.tolist() == [120]


def test_a_short_special_token_looks_untrained():
    W = ordinary(mean=0.0)
    W[[9, 10]] /= 6.0
    special = (SpecialToken("<|im_start|>", 9, ("special",)),)
    found, _ = suspects_of(W, tokens=named(r9="<|im_start|>"), special=special)
    assert found["special.input"].rows.tolist() == [9]
    assert found["short.input"].rows.tolist() == [10]


# --- clumps ---------------------------------------------------------------------------------------


def clumped(unused):
    """150 rows around the mean direction with short norms, some of them of unused tokens."""
    W = rng(0).standard_normal((3000, 24))
    W[:150] = 0.4 * (1.0 + 0.25 * W[:150])
    return W, tuple(f"[unused{row}]" if row in unused else f"w{row}" for row in range(3000))


def test_a_clump_with_most_of_the_unused_tokens_is_hardly_trained():
    for unused, found in (
        (range(0), False),
        (range(9), False),
        (range(10), True),
        (range(100, 200), True),
        (range(100, 201), False),
    ):
        W, tokens = clumped(unused)
        assert rows_of(W, "clump", tokens=tokens) == (list(range(150)) if found else [])


@pytest.mark.parametrize("gathered", [True, False])
def test_unused_tokens_around_a_direction_of_their_own_are_a_clump(gathered):
    """Away from the mean direction and with ordinary norms; two of three are spelled as unused."""
    W, away = ordinary(mean=0.0), rng(3).standard_normal(D)
    if gathered:
        W[:60] = np.linalg.norm(away) * W[:60] / 3 + away * np.linalg.norm(W[0])
        W[:60] *= (np.linalg.norm(W[60:], axis=1)[:60] / np.linalg.norm(W[:60], axis=1))[:, None]
    tokens = [f"[unused{i}]" if i < 40 else f"t{i}" for i in range(N)]
    assert rows_of(W, "clump", tokens=tokens) == (list(range(60)) if gathered else [])


@pytest.mark.parametrize(("rarer", "found"), [(130, True), (100, False)])
def test_a_clump_of_rare_tokens_is_hardly_trained(rarer, found):
    W, _ = clumped(range(0))
    counts = rng(1).integers(100, 200, 3000).astype(float)
    counts[:rarer] = 1.0
    frequency = Frequency("counts", counts, "made counts")
    assert rows_of(W, "clump", frequency=frequency) == (list(range(150)) if found else [])


@pytest.mark.parametrize("change", ["norms", "angles"])
def test_a_clump_needs_norms_and_angles_of_its_own(change):
    W, tokens = clumped(range(100))
    if change == "norms":
        W[:150] *= (np.linalg.norm(W[-150:], axis=1) / np.linalg.norm(W[:150], axis=1))[:, None]
    else:
        W[:150] = 0.4 * rng(3).standard_normal((150, 24))
    assert rows_of(W, "clump", tokens=tokens) == []


# --- both sides -----------------------------------------------------------------------------------


def test_each_side_of_an_untied_model_has_its_own():
    W, U = ordinary(), ordinary(seed=5)
    W[9], U[9], U[20] = 0.0, 0.0, U[21]
    found, analysis = suspects_of(Matrix(W, output=Matrix(U)))
    assert {name: own.rows.tolist() for name, own in found.items()} == {
        "zero.input": [9],
        "zero.output": [9],
        "duplicate.output": [21],
    }
    # A token that is wrong on both sides counts once.
    assert analysis["suspects.zero"].value == 1
    assert analysis["suspects.duplicate"].value == 1


def test_rows_that_the_input_leaves_out_are_no_suspects_of_the_output():
    W, U = ordinary(), ordinary(seed=5)
    U[N - 10 :] = 0.0
    masked = {"padding beyond the vocabulary": np.arange(N - 10, N)}
    tokens = named(r9="[unused1]")
    U[9] = 0.0
    found, analysis = suspects_of(Matrix(W, tokens=tokens, masked=masked, output=Matrix(U)))
    assert [*found] == ["no_token.input", "zero.output", "no_token.output"]
    assert found["zero.output"].rows.tolist() == [9]
    assert found["zero.output"].tokens == ("[unused1]",)
    assert analysis["suspects.zero"].value == 0


def test_an_output_matrix_without_a_living_row():
    found, analysis = suspects_of(Matrix(ordinary(), output=Matrix(np.full((N, D), np.nan))))
    assert found["nonfinite.output"].rows.tolist() == list(range(N))
    assert analysis["suspects.nonfinite"].value == N


def test_a_narrow_cone_names_the_rows_along_it():
    W = ordinary(mean=1.0)
    W[:10] = 1.0 + 0.1 * rng(1).standard_normal((10, D))
    assert rows_of(W, "cone") == list(range(10))
    assert rows_of(W - 1.0, "cone") == []


def test_the_mean_cosine_of_the_others():
    W = ordinary(mean=0.0)
    W[:400] = W[0]
    _, analysis = suspects_of(W)
    unit = W[399:] / np.linalg.norm(W[399:], axis=1)[:, None]
    gram = unit @ unit.T
    expected = (gram.sum() - np.trace(gram)) / (len(unit) * (len(unit) - 1))
    assert analysis["suspects.mean_cosine_others"].value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("left", [9, 10])
def test_few_others_have_no_mean_cosine(left):
    W = ordinary(mean=0.0)
    W[left:] = W[0]
    _, analysis = suspects_of(W)
    assert (analysis["suspects.mean_cosine_others"].value is None) == (left == 9)

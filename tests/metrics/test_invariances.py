"""What must not change a number, what must, and traps that other tools fell into."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.quantities import cosine, frequency
from tests.support import naive, sampling
from tests.support.matrices import (
    ASKED,
    analysis,
    analyze_matrix,
    case,
    gaussian,
    narrow_cone,
    rng,
)

EXACT = {"isotropy_rows": None}
#: Drawn anew with the seed, so tied to rows or columns by number.
#: Starts of k-means go by row number.
STARTS = {"cosine.clusters", "cosine.silhouette", "cosine.mean_between_clusters"}
#: Folds go by row number, and standardized columns by column.
PROBES = {"frequency.probe_auc"}


def scalars(matrix, **options):
    found = analyze_matrix(matrix, 23, **{**EXACT, **options})
    return {s.name: s.value for s in found.scalars}


def cone(n=80, d=6):
    """A matrix with a common direction, no ties and no near-equal eigenvalues."""
    spread = np.array([1.0, 0.8, 0.6, 0.45, 0.3, 0.2])[:d]
    return gaussian(71, n, d) * spread + np.linspace(0.5, -0.3, d)


def matrix(W, **parts):
    n = len(W)
    counts = rng(72).permutation(np.floor(5000.0 / (1 + np.arange(n))) + np.arange(n) % 2)
    defaults = {
        "tokens": tuple(f"t{i}" for i in range(n)),
        "frequency": Frequency("counts", counts, "made counts"),
        "output": Matrix(rng(73).standard_normal((n, 4)) + W[:, :4], name="output"),
    }
    return Matrix(W, **{**defaults, **parts})


@cache
def base_scalars():
    return scalars(matrix(cone()))


def same(found, expected, left_out=(), rel=1e-8):
    assert found.keys() == expected.keys()
    for name in found.keys() - set(left_out):
        if expected[name] is None:
            assert found[name] is None, name
        else:
            assert found[name] == pytest.approx(expected[name], rel=rel, abs=1e-12), name


# Columns ----------------------------------------------------------------------------------------


def test_rotating_the_columns():
    W = cone()
    rotated = replace(matrix(W), data=W @ np.linalg.qr(gaussian(80, 6, 6))[0])
    of_coordinates = {name for name in base_scalars() if name.startswith("coordinates.")}
    of_coordinates.add("cosine.max_dimension_share")
    same(scalars(rotated), base_scalars(), PROBES | of_coordinates)


def test_swapping_and_flipping_columns():
    W = cone()
    order, signs = rng(81).permutation(6), np.array([1, -1, -1, 1, -1, 1])
    same(scalars(replace(matrix(W), data=W[:, order] * signs)), base_scalars())


@pytest.mark.slow
def test_headline_isotropy_under_four_bases():
    """As measured elsewhere, one sign per eigenvector gave two answers for one geometry."""
    for name in ("gaussian", "negative", "narrow cone", "fp16"):
        W = case(name).W
        keys = [f"isotropy.{i}{sign}" for i in ("i1", "i2") for sign in ("", "_mean_sign")]
        seen = set()
        for turn in range(4):
            g = rng(90 + turn)
            basis = np.linalg.qr(g.standard_normal((6, 6)))[0] if turn % 2 else np.eye(6)
            turned = (W @ basis)[:, g.permutation(6)]
            found = analyze_matrix(Matrix(turned), sections=("isotropy",))
            seen.add(tuple(round(found[key].value, 9) for key in keys))
        assert len(seen) == 1


def test_turning_the_matrix_over():
    """−W has the same geometry: E holds v and −v."""
    W = cone()
    same(scalars(replace(matrix(W), data=-W)), base_scalars())


# Rows -------------------------------------------------------------------------------------------


def test_order_of_the_rows():
    base = matrix(cone())
    order = rng(82).permutation(base.n)
    moved = replace(
        base,
        data=base.data[order],
        tokens=tuple(base.tokens[i] for i in order),
        frequency=replace(base.frequency, counts=base.frequency.counts[order]),
        output=replace(base.output, data=base.output.data[order]),
    )
    same(scalars(moved), base_scalars(), PROBES | STARTS)


def padded(base, extra, masked):
    """The matrix with extra rows put between its own."""
    n = base.n + len(extra)
    own = np.sort(rng(83).permutation(n)[: base.n])
    foreign = np.setdiff1d(np.arange(n), own)
    data = np.empty((n, base.d), dtype=base.data.dtype)
    data[own], data[foreign] = base.data, extra
    output = np.ones((n, base.output.d))
    output[own] = base.output.data
    counts = np.full(n, 10.0**6)
    counts[own] = base.frequency.counts
    tokens = np.full(n, "padding", dtype=object)
    tokens[own] = base.tokens
    return replace(
        base,
        data=data,
        tokens=tuple(tokens),
        frequency=replace(base.frequency, counts=counts),
        output=replace(base.output, data=output),
        masked={"padding": foreign} if masked else {},
    )


#: What damaged rows, and the output rows of their tokens, belong to.
OF_ALL_ROWS = ("tokens.damaged", "tokens.norm")


@pytest.mark.slow
def test_unusable_rows_change_nothing():
    """20% zero rows moved I1 from 0.223 to 0.256 where they were not left out."""
    for kind in ("zero", "NaN", "masked"):
        base = matrix(cone())
        extra = {"zero": np.zeros((16, 6)), "NaN": np.full((16, 6), np.nan), "masked": 9 * cone(16)}
        found, expected = scalars(padded(base, extra[kind], kind == "masked")), base_scalars()
        if (
            kind != "masked"
        ):  # they are suspects, as are the constant rows of the output beside them
            of_all = ("suspects.", *OF_ALL_ROWS)
            found, expected = (
                {name: value for name, value in numbers.items() if not name.startswith(of_all)}
                for numbers in (found, expected)
            )
        same(found, expected, rel=1e-10)


@pytest.mark.slow
def test_storage_does_not_matter():
    """float32 values stored as float64 give the same again, but for products taken as stored."""
    W = cone().astype(np.float32)
    same(scalars(matrix(W)), scalars(replace(matrix(W), data=W.astype(np.float64))), rel=1e-6)
    columns_first = np.asfortranarray(W)
    same(scalars(replace(matrix(W), data=columns_first)), scalars(matrix(W)), rel=1e-10)


# Scale ------------------------------------------------------------------------------------------

#: Z is not scale-free; everything else is.
MOVES = {f"isotropy.{key}" for key in (*("i1", "i2", "i1_mean_sign", "i2_mean_sign"),)} | {
    f"tokens.norm_{key}" for key in ("median", "rms")
}


@pytest.mark.slow
def test_scale():
    base, expected = matrix(cone()), base_scalars()
    for factor in (1e-3, 4.0, 3e5):
        found = scalars(replace(base, data=base.data * factor))
        same(found, expected, MOVES)
        for name in MOVES:
            assert found[name] is None or found[name] != pytest.approx(expected[name], rel=1e-3)


def test_raw_i1_falls_with_the_norms_and_unit_i1_does_not():
    """As measured on one matrix: times 0.25 / 1 / 4 gave 0.687 / 0.223 / 0.002."""
    W = case("fp16").W
    raw, unit = [], []
    for factor in (0.25, 1.0, 4.0):
        found = analyze_matrix(Matrix(W * factor), sections=("isotropy",))
        raw.append(found["isotropy.i1"].value)
        unit.append(found["isotropy.i1_unit"].value)
    assert raw[0] > 2 * raw[1] > 20 * raw[2] > 0
    np.testing.assert_allclose(unit, unit[0], rtol=1e-10)


def test_one_output_scale_is_as_good_as_another():
    base = matrix(cone())
    output = replace(base.output, data=base.output.data * np.array([1e-6, 1, 1e3, 1e6]))
    assert scalars(replace(base, output=output))["subspace.distance"] == pytest.approx(
        base_scalars()["subspace.distance"], rel=1e-8
    )


def test_only_the_order_of_the_counts_makes_a_token_popular():
    base = matrix(cone())
    squared = replace(base.frequency, counts=base.frequency.counts**2)
    found = scalars(replace(base, frequency=squared))
    same(found, base_scalars(), {name for name in found if "weighted" in name})


# Seeds ------------------------------------------------------------------------------------------


def as_bytes(found):
    content = found.to_dict()
    assert content.pop("timing")
    return json.dumps(content)


def test_equal_runs_are_equal_byte_for_byte():
    options = {"pairs": 500, "isotropy_rows": 30, "show_neighbors": ASKED}
    base = matrix(cone())
    once, again = analyze_matrix(base, **options), analyze_matrix(base, **options)
    assert as_bytes(once) == as_bytes(again)
    for a, b in zip((*once.points, *once.columns), (*again.points, *again.columns), strict=True):
        np.testing.assert_array_equal(getattr(a, "xy", None), getattr(b, "xy", None))
        np.testing.assert_array_equal(getattr(a, "values", None), getattr(b, "values", None))


@pytest.mark.slow
def test_leaving_sections_out_moves_no_number():
    """Each purpose draws from a generator of its own."""
    base = matrix(cone())
    options = {"pairs": 500, "isotropy_rows": 30}
    every = scalars(base, **options)
    for section in ("spectrum", "projection", "cosine", "isotropy", "frequency", "subspace"):
        alone = scalars(base, sections=(section,), **options)
        assert alone
        for name, value in alone.items():
            expected = every[name]
            assert value == expected or value == pytest.approx(expected, rel=1e-12), name


def test_another_seed_moves_sampled_values_only():
    base = matrix(cone())
    options = {"pairs": 500, "isotropy_rows": 30}
    first, second = analyze_matrix(base, seed=1, **options), analyze_matrix(base, seed=2, **options)
    moved = set()
    for a, b in zip(first.scalars, second.scalars, strict=True):
        if a.value != b.value:
            moved.add(a.name)
            assert a.sample or a.convention.startswith("a lower bound"), a.name
    assert moved >= {"cosine.positive_share", "isotropy.i1_sampled"}
    assert moved >= {"frequency.probe_auc"}


# Order of the isotropy measures -----------------------------------------------------------------


@settings(max_examples=60 if sampling.AT_NIGHT else 25)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    d=st.integers(1, 5),
    scale=st.sampled_from([1e-9, 1e-3, 1.0, 30.0, 1e4]),
    offset=st.sampled_from([0.0, 1.0, 100.0]),
    whole=st.booleans(),
)
@pytest.mark.slow
def test_one_sign_is_never_below_both(seed, n, d, scale, offset, whole):
    W = rng(seed).standard_normal((n, d)) + offset
    W = (np.round(W) + (np.round(W) == 0)) * scale if whole else W * scale
    found = analyze_matrix(Matrix(W), 5, sections=("isotropy",))
    one, both = found["isotropy.i1_mean_sign"].value, found["isotropy.i1"].value
    assert one is None or both is None or both <= one
    for key in ("i1", "i1_unit", "i1_mean_sign", "isoscore"):
        scalar = found[f"isotropy.{key}"]
        assert scalar.value is None or 0 < scalar.value <= 1 or key == "isoscore"
    assert all(scalar.value is not None or scalar.undefined for scalar in found.scalars)


# Traps that other tools fell into ---------------------------------------------------------------


@pytest.mark.slow
def test_mean_cosine_of_a_half_precision_file():
    """Summed in fp16 one matrix gave 0.066 for 0.385."""
    W = (gaussian(84, 3000, 32) + 0.8).astype(np.float16)
    found = analyze_matrix(Matrix(W), sections=("cosine",))
    rows = naive.unit(W.astype(np.float64))
    exact = ((rows @ rows.T).sum() - len(W)) / (len(W) * (len(W) - 1))
    assert 0.3 < exact < 0.5
    assert found["cosine.mean"].value == pytest.approx(exact, rel=1e-10)
    pairs = naive.pair_cosines(W[:400].astype(np.float64)).astype(np.float16)
    assert float(np.cumsum(pairs, dtype=np.float16)[-1]) / len(pairs) < 0.1  # a real trap


def test_a_hundred_times_the_norm():
    """In float32 without logsumexp I1 was exactly 0."""
    found = analysis("x100")
    assert 0 < found["isotropy.i1"].value < 1e-30
    with np.errstate(over="ignore"):
        assert np.isinf(
            np.exp(np.float32(case("x100").W @ naive.right_vectors(case("x100").W)))
        ).any()


def test_a_cone_far_narrower_than_float32():
    """Mean over spread 1e3: the centered values come out as if the mean had never been there."""
    W = narrow_cone(length=2.0, ratio=1e3)
    found = analyze_matrix(Matrix(W), 7, sections=("spectrum", "isotropy"))
    assert found["isotropy.isoscore"].value == pytest.approx(naive.isoscore(W), rel=1e-9)


def test_a_duplicate_is_a_neighbor_and_not_the_token_itself():
    W = cone()
    W[9] = W[4]
    tokens = tuple(f"t{i}" for i in range(len(W)))
    found = analyze_matrix(
        matrix(W, tokens=tokens),
        sections=("frequency",),
        show_neighbors=(("t4", ("t9",)), ("t9", ())),
    )
    first = {row[0]: row[3] for row in found["frequency.neighbors"].rows}
    assert first == {"t4": "t9", "t9": "t4"}
    assert found["frequency.neighbor_ranks"].rows[0][3] == 1


def test_asked_neighbors_are_the_same_without_frequencies():
    W = cone()
    tokens = tuple(f"t{i}" for i in range(len(W)))
    asked = {"sections": ("frequency",), "show_neighbors": (("t4", ("t9",)), ("t0", ()))}
    known = analyze_matrix(matrix(W, tokens=tokens), **asked)
    found = analyze_matrix(Matrix(W, tokens=tokens), **asked)
    near = found["frequency.neighbors"]
    assert near.columns[:2] == ("token", "neighbor 1")
    assert near.rows == tuple((r[0], *r[3:]) for r in known["frequency.neighbors"].rows)
    assert found["frequency.neighbor_ranks"].rows == known["frequency.neighbor_ranks"].rows
    assert near.rare == found["frequency.neighbor_ranks"].rare == ()
    assert "no token frequencies" in found.absent["frequency"]


# --- The laws of weights: equal ones change nothing, integer ones repeat rows ---------------------


SECTIONS = ("cosine", "frequency")
WEIGHTED = frequency.WEIGHTED_MEAN_COSINE.name


def measured(W, counts, kind="counts"):
    known = Frequency(kind, np.asarray(counts, dtype=np.float64), "made counts")
    return analyze_matrix(Matrix(W, frequency=known), 13, sections=SECTIONS)


@pytest.fixture(scope="module")
def rows():
    return rng(601).standard_normal((60, 5)) + 0.4


@pytest.fixture(scope="module")
def repeated(rows):
    counts = 1 + np.arange(60) % 4
    return measured(rows, counts), measured(np.repeat(rows, counts, axis=0), np.ones(counts.sum()))


def test_equal_weights_change_nothing(rows):
    # Exactly equal counts leave the whole section out: there are no frequent tokens.
    found = measured(rows, 1e15 + (np.arange(60) == 0))
    assert found[WEIGHTED].value == pytest.approx(found[cosine.MEAN.name].value, rel=1e-12)


def test_the_weighted_mean_cosine_leaves_out_pairs_of_a_token_with_itself(repeated):
    """Repeated rows have such pairs, of cosine 1: Σn_i(n_i − 1) of them."""
    weighted, plain = repeated
    n = 1 + np.arange(60) % 4
    total, own = n.sum() * (n.sum() - 1), (n * (n - 1)).sum()
    expected = (plain[cosine.MEAN.name].value * total - own) / (total - own)
    assert weighted[WEIGHTED].value == pytest.approx(expected, rel=1e-12)


def test_tokens_without_a_count_have_no_weight(rows):
    counts = np.r_[np.arange(1, 41), np.zeros(20)]
    all_rows, seen = measured(rows, counts), measured(rows[:40], counts[:40])
    assert all_rows[WEIGHTED].value == pytest.approx(seen[WEIGHTED].value, rel=1e-12)


def test_an_order_of_frequencies_gives_no_weights(rows):
    found = measured(rows, np.arange(60, 0, -1), kind="rank")
    assert found[WEIGHTED].undefined == "only the order of the frequencies is known"

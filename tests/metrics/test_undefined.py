"""What has no value says why; nothing is NaN, infinite, or a warning (which here is an error)."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embgeo
from embgeo.core.errors import BadOption, EmbgeoError
from embgeo.core.matrix import FinalNorm, Frequency, Matrix
from embgeo.core.options import Options
from embgeo.measure.analyze import analyze
from tests.support import naive, sampling
from tests.support.matrices import gaussian, rng
from tests.support.refusals import refusal
from tests.support.sampling import each_value

#: Shapes of hidden states that small matrices are given.
HIDDEN = ("none", "one", "few", "equal", "zero", "broken")
EVERYTHING = Options(isotropy_rows=1, isotropy_runs=2, show_neighbors=(("t0", ()),))


def matrix(W, counts=True, **parts):
    W = np.asarray(W)
    n = len(W)
    frequency = Frequency("counts", np.floor(1000 / (1.0 + np.arange(n))), "made counts")
    return Matrix(
        W,
        tokens=tuple(f"t{i}" for i in range(n)),
        frequency=frequency if counts else None,
        output=Matrix(rng(5).standard_normal((n, 3)), name="output"),
        **parts,
    )


def hidden_states(kind, d, seed=7):
    H = rng(seed).standard_normal((25, d))
    if kind == "broken":
        H[::2, 0] = np.nan
    return {
        "none": None,
        "one": H[:1],
        "few": H[: max(1, d // 2)],
        "equal": np.tile(H[0], (9, 1)),
        "zero": np.zeros((3, d)),
        "broken": H,
    }[kind]


def checked(m, options=EVERYTHING, reference=True):
    """An analysis in which every number is finite and every gap explained."""
    found = analyze(m, options=options, reference=reference)
    json.dumps(found.to_dict(), allow_nan=False)
    for scalar in found.scalars:
        if scalar.value is None:
            assert scalar.undefined, scalar.name
            assert scalar.text == f"not defined: {scalar.undefined}"
        else:
            assert not scalar.undefined
            assert math.isfinite(scalar.value)
            assert scalar.standard_error is None or scalar.standard_error >= 0
    for points in found.points:
        assert np.isfinite(points.xy).all()
    for column in found.columns:
        assert np.isfinite(column.values).all()
        assert len(column.values) == len(found.rows)
    assert all(found.absent.values())
    return found


def reasons(found):
    return {scalar.name: scalar.undefined for scalar in found.scalars if scalar.undefined}


def test_no_counts():
    found = checked(matrix(gaussian(), counts=False))
    assert "analyze --counts" in found.absent["frequency"]
    named = {value.name for value in found.values() if value.name.startswith("frequency.")}
    assert named == {"frequency.neighbors"}  # of the asked token
    assert found.provenance["frequency"] is None
    assert found.counts is None


def test_no_output():
    m = Matrix(gaussian())
    found = analyze(m, reference=False)
    assert "no output matrix found" in found.absent["subspace"]


def test_equal_counts_make_no_token_popular():
    frequency = Frequency("counts", np.full(60, 7.0), "made counts")
    found = analyze(Matrix(gaussian(), frequency=frequency), reference=False)
    assert "same count" in found.absent["frequency"]


def test_one_row():
    found = checked(matrix(gaussian(n=1)))
    assert "too few" in found.absent["frequency"]
    gaps = reasons(found)
    for key in ("mean", "std", "positive_share", "cone_aperture"):
        assert gaps[f"cosine.{key}"] == "a single row has no pairs"
    assert "all kept rows are equal" in gaps["isotropy.isoscore"]
    assert found["cosine.cone_half_angle_max"].value == pytest.approx(0, abs=1e-12)


def test_few_rows():
    for n in (2, 3, 4):
        found = checked(matrix(gaussian(n=n, d=3)))
        assert f"{n} rows are too few" in found.absent["frequency"]
        assert ("spectrum.condition_number" in reasons(found)) == (n < 3)


def test_one_column():
    for sign in (1, -1, 0):
        W = gaussian(n=30, d=1)
        found = checked(matrix(W if sign == 0 else sign * np.abs(W)))
        assert "two columns" in found.absent["projection"]
        gaps = reasons(found)
        assert gaps["isotropy.isoscore"] == "d = 1: one direction cannot be compared with others"
        assert "fewer than two" in gaps["isotropy.eigengap"]
        assert found["spectrum.effective_rank"].value == 1
        assert found["spectrum.condition_number"].value == 1
        assert found["spectrum.decay"].rows == ()
        assert "cannot be fitted to 1 values" in found["spectrum.decay"].note
        assert found["cosine.cone_half_angle_median"].value == pytest.approx(0, abs=1e-12)


@each_value
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("row", [[0.1] * 4, [0.3, -1.7, 2.2, 0.05]])
@pytest.mark.slow
def test_all_rows_equal(dtype, row):
    found = checked(matrix(np.tile(np.array(row, dtype), (30, 1))))
    gaps = reasons(found)
    assert "all kept rows are equal" in gaps["isotropy.isoscore"]
    assert "same norm" in gaps["frequency.norm_spearman"]
    assert "rank 1 of 4" in gaps["spectrum.condition_number"]
    equal = [found[f"suspects.{reason}"].value for reason in ("constant", "duplicate")]
    assert equal == ([30, 0] if len(set(row)) == 1 else [0, 29])
    assert gaps["tokens.hubness"] == "every token is a neighbor equally often"
    assert gaps["tokens.intrinsic_dimension"] == "1 distinct rows have no two neighbors each"
    # All cosines tie: chance of a fixed seed splits them.
    neighbors = found["frequency.neighbors"].rows[0][3:]
    assert len(set(neighbors)) == len(neighbors)


def test_fewer_rows_than_neighbors():
    found = checked(matrix(gaussian(n=9)))
    assert found["tokens.hubness"].undefined == "9 rows have no 10 neighbors each"
    for of in ("rare", "popular"):
        assert "9 rows have no 10" in found[f"frequency.neighbor_rarity_{of}"].undefined
    assert "frequency.neighbors" not in found
    ten = checked(matrix(gaussian(n=11)))
    assert ten["frequency.neighbor_rarity_rare"].value is not None


def test_one_token_in_a_class():
    found = checked(matrix(gaussian(n=30)), Options(popular_share=0.001))
    gaps = reasons(found)
    assert "5 tokens of each class" in gaps["frequency.probe_auc"]
    assert found["frequency.norm_ratio"].value is not None
    assert "1 of 30 tokens" in found["frequency.norm_ratio"].convention
    most = checked(matrix(gaussian(n=30)), Options(popular_share=0.999))
    assert "29 of 30 tokens" in most["frequency.norm_ratio"].convention


@pytest.mark.parametrize("kind", HIDDEN[1:])
@pytest.mark.slow
def test_hidden_states_of_every_kind(kind):
    found = checked(matrix(gaussian(n=30), hidden=Matrix(hidden_states(kind, 6))))
    distance = found["hidden.hull_distance"]
    assert (distance.value == 0) == (kind == "zero")
    assert ("hidden.margin" in reasons(found)) == (kind == "zero")
    assert reasons(found)["hidden.layernorm_condition"] == "an array comes without a LayerNorm"


def test_rows_that_cancel():
    W = np.repeat([[1.0, 2, 3]], 30, axis=0) * np.where(np.arange(30) % 2, 1, -1)[:, None]
    found = checked(matrix(W))
    gaps = reasons(found)
    for part in ("max", "median"):
        assert "no common direction" in gaps[f"cosine.cone_half_angle_{part}"]
    assert "cosine.angle_to_mean" not in found
    assert "tokens.nearest_to_mean" not in found


def test_rank_deficient():
    W = np.column_stack([gaussian(n=30, d=3), np.zeros(30), np.ones(30)])
    gaps = reasons(checked(matrix(W)))
    assert gaps["spectrum.condition_number"] == (
        "the matrix has numerical rank 4 of 5, σ_d is zero up to rounding"
    )


def test_output_without_usable_rows():
    m = matrix(gaussian(n=30))
    nothing = Matrix(np.zeros((30, 3)), name="output")
    found = checked(Matrix(m.data, tokens=m.tokens, output=nothing))
    assert "rank 0" in found["subspace.distance"].undefined


def test_output_with_some_unusable_rows():
    Y = rng(6).standard_normal((30, 3))
    Y[4], Y[9, 1], Y[10, 0] = 0.0, np.nan, np.inf
    m = matrix(gaussian(n=30))
    found = checked(Matrix(m.data, tokens=m.tokens, output=Matrix(Y, name="output")))
    assert found["subspace.distance"].reference == pytest.approx(math.sqrt(1 - 6 / 27))


# Nothing to measure -----------------------------------------------------------------------------


def test_no_usable_row():
    for data in (
        np.zeros((5, 4)),
        np.full((5, 4), np.nan),
        np.full((5, 4), -np.inf, np.float32),
        np.vstack([np.zeros((2, 4)), np.full((1, 4), np.nan)]),
    ):
        with refusal():
            analyze(matrix(data))


def test_everything_masked():
    with refusal():
        analyze(matrix(gaussian(n=5), masked={"on request": np.arange(5)}))


# Magnitudes -------------------------------------------------------------------------------------

FAR_OUT = [1e300, 1e200, 1e155, 1e150, 1e-150, 1e-160, 1e-200, 1e-300, 1e-310]


def test_entries_that_cannot_be_squared():
    for size in FAR_OUT:
        with refusal():
            analyze(matrix(gaussian(n=30) * size))


def test_one_entry_that_cannot_be_squared():
    W = gaussian(n=30)
    W[3, 2] = -1e200
    with refusal():
        analyze(matrix(W))


@pytest.mark.slow
def test_far_magnitudes_give_the_numbers_of_near_ones():
    """What does not depend on scale is the same at any; log I1 grows in proportion."""
    for size in (1e138, 1e100, 1e38, 1e10, 1e-10, 1e-38, 1e-100, 1e-138):
        W = gaussian(n=30)
        near, far = checked(matrix(W)), checked(matrix(W * size))
        moved = {
            f"isotropy.{i}{kind}" for i in ("i1", "i2") for kind in ("", "_mean_sign", "_sampled")
        }
        moved |= {f"tokens.norm_{key}" for key in ("min", "median", "max", "rms")}
        for a, b in zip(near.scalars, far.scalars, strict=True):
            if a.name not in moved:
                expected = None if a.value is None else pytest.approx(a.value, rel=1e-6, abs=1e-12)
                assert b.value == expected, a.name
        if size > 1e9:
            assert "its natural logarithm is -" in far["isotropy.i1"].undefined


@pytest.mark.slow
def test_rows_of_very_different_lengths():
    """Tiny rows beside normal ones keep their direction, subnormal ones too."""
    W = naive.unit(gaussian(n=400))
    # Without a gap: rows below one are dead.
    lengths = np.logspace(-310, 0, 400)
    near, far = checked(matrix(W)), checked(matrix(W * lengths[:, None]))
    for key in ("mean", "std", "cone_half_angle_max"):
        assert far[f"cosine.{key}"].value == pytest.approx(near[f"cosine.{key}"].value, rel=1e-9)


def test_columns_of_very_different_sizes():
    found = checked(matrix(gaussian(n=30, d=4) * np.array([1e100, 1.0, 1e-100, 1e-300])))
    assert found["spectrum.numerical_rank"].value == 1


@settings(max_examples=80 if sampling.AT_NIGHT else 30)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 14),
    d=st.integers(1, 5),
    kind=st.sampled_from(["normal", "whole", "sparse", "equal", "cone", "spread"]),
    counts=st.booleans(),
    untied=st.booleans(),
    unused=st.booleans(),
    hidden=st.sampled_from(HIDDEN),
)
@pytest.mark.slow
def test_small_matrices_of_every_kind(seed, n, d, kind, counts, untied, unused, hidden):
    g = rng(seed)
    W = g.standard_normal((n, d))
    if kind == "whole":
        W = g.integers(-1, 2, size=(n, d)).astype(float)
    elif kind == "sparse":
        W *= g.random((n, d)) < 0.3
    elif kind == "equal":
        W = np.tile(W[0], (n, 1))
    elif kind == "cone":
        W = 1e6 + 1e-3 * W
    elif kind == "spread":
        W *= 10.0 ** g.integers(-60, 60, size=(n, 1))
    m = matrix(W, counts=counts)
    names = tuple(f"[unused{i}]" if unused and i % 3 == 0 else f"t{i}" for i in range(n))
    states = hidden_states(hidden, d, seed)
    m = replace(
        m,
        tokens=names,
        output=m.output if untied else None,
        hidden=None if states is None else Matrix(states),
        final_norm=FinalNorm("ln", g.integers(0, 3, size=d).astype(float), W[0]),
    )
    if not W.any():
        with pytest.raises(EmbgeoError):
            analyze(m)
        return
    checked(m, Options(isotropy_rows=1, isotropy_runs=2), reference=False)


# Options ----------------------------------------------------------------------------------------


def test_sections():
    assert {
        s.name.split(".")[0] for s in analyze(matrix(gaussian()), sections=("tokens",)).scalars
    } == {"tokens"}
    for wrong in ((), ("spectra",)):
        with refusal(BadOption):
            analyze(matrix(gaussian()), sections=wrong)


def test_more_sampled_rows_than_there_are():
    with refusal(BadOption):
        analyze(matrix(gaussian()), options=Options(isotropy_rows=61))


@pytest.mark.parametrize("asked", [(("t99", ()),), (("t1", ("t99",)),)])
def test_neighbors_of_an_unknown_token(asked):
    with refusal(BadOption):
        analyze(matrix(gaussian()), options=Options(show_neighbors=asked))


def test_a_single_run_has_no_spread():
    found = analyze(
        matrix(gaussian()), options=Options(isotropy_rows=20, isotropy_runs=1), reference=False
    )
    assert found["isotropy.i1_sampled"].standard_error is None
    assert found["isotropy.i1_sampled"].sample == "1 samples of 20 rows"
    several = Options(isotropy_rows=20, isotropy_runs=4)
    found = analyze(matrix(gaussian()), options=several, reference=False)
    assert found["isotropy.i1_sampled"].freedom == 3


# --- Equal or zero eigenvalues: every number is finite, every error finite or absent --------------


G = np.random.default_rng(0)
MATRICES = {
    "orthonormal columns": np.linalg.qr(G.standard_normal((300, 16)))[0],
    "repeated axes": np.tile(np.eye(8), (40, 1)),
    "a cross": np.tile(np.vstack([np.eye(6), -np.eye(6)]), (20, 1)),
    "a simplex": np.tile(np.eye(5) - 0.2, (30, 1)),
    "equal rows": np.ones((100, 4)),
    "a line": np.outer(G.standard_normal(200), np.arange(1.0, 6)),
    "corners of a square": np.array([[1.0, 1], [1, -1]])[G.integers(0, 2, 200)],
}


@pytest.mark.slow
def test_every_number_is_finite_or_absent() -> None:
    for name in MATRICES:
        rows = MATRICES[name]
        found = embgeo.analyze(rows, counts=np.arange(len(rows), 0, -1), pairs=500)
        for scalar in found.scalars:
            assert scalar.text
            for number in (scalar.value, scalar.standard_error, scalar.population_error):
                assert number is None or math.isfinite(number), scalar.name
        assert found.verdict.headline


def test_isotropic_rows_of_any_norms_have_no_direction_above_chance() -> None:
    """Norms alone put eigenvalues of the rows themselves above the edge: p was 3e-29."""
    for seed in range(4):
        g = np.random.default_rng(seed)
        rows = g.standard_normal((1000, 20)) * np.exp(g.standard_normal((1000, 1)))
        found = embgeo.analyze(rows, sections=["spectrum"], reference=False)
        assert found["spectrum.largest_p"] > 0.05


def test_the_gap_is_over_the_printed_rank() -> None:
    """Directions down to 1e-12 of the first count for both."""
    g = np.random.default_rng(1)
    sigma = np.r_[1.0, 0.5, 1e-9, 0.99e-9, 1e-12]
    left, right = (np.linalg.qr(g.standard_normal(shape))[0] for shape in ((200, 5), (5, 5)))
    rows = (left * sigma) @ right.T
    found = embgeo.analyze(rows, sections=["spectrum", "isotropy"], reference=False)
    assert found["spectrum.numerical_rank"] == 5
    assert found["isotropy.eigengap"].value == pytest.approx(1 - 0.99**2, rel=1e-3)
    alone = embgeo.analyze(rows, sections=["isotropy"], reference=False)
    assert alone["isotropy.eigengap"] == found["isotropy.eigengap"]


# --- What a library user hands in is checked before anything is computed --------------------------


def test_options_without_meaning_are_refused_by_name() -> None:
    for option in (
        {"seed": -1},
        {"pairs": -1},
        {"isotropy_rows": 0},
        {"isotropy_runs": 0},
        {"neighbors": 0},
        {"neighbors_of": "none"},
        {"popular_share": 0.0},
        {"popular_share": 1.0},
        {"popular_share": float("nan")},
    ):
        with refusal(BadOption):
            embgeo.Options(**option)


def test_what_is_no_matrix_of_real_numbers_is_refused() -> None:
    for array in (
        np.zeros(3),
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.zeros((2, 2, 2)),
        np.zeros((3, 3), dtype=np.int64),
        np.zeros((3, 3), dtype=np.complex128),
    ):
        with pytest.raises(BadOption):
            embgeo.Matrix(array)


def test_every_floating_type_is_taken() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        assert embgeo.Matrix(np.eye(3).astype(dtype)).n == 3

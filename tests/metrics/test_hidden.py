"""Section 7: the convex hull of hidden states and the final LayerNorm."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.cli.app import app
from embgeo.core.errors import BadOption
from embgeo.core.matrix import FinalNorm, Matrix
from embgeo.core.values import Series
from embgeo.numerics.convex_hull import Blocks, Hull, distance_to_hull, nearest_point
from tests.support import naive
from tests.support.refusals import refusal
from tests.support.sampling import each_value

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def in_blocks(points: FloatArray, size: int = 37) -> Blocks:
    def blocks() -> Iterator[tuple[IntArray, FloatArray]]:
        for start in range(0, len(points), size):
            rows = points[start : start + size]
            yield np.arange(start, start + len(rows)), rows

    return blocks


def hull(points: FloatArray, size: int = 37) -> Hull:
    points = np.asarray(points, dtype=float)
    return distance_to_hull(in_blocks(points, size), len(points[0]), repeated=repeated(points))


def repeated(points: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which points equal an earlier one."""
    again = np.ones(len(points), dtype=bool)
    again[np.unique(points, axis=0, return_index=True)[1]] = False
    return again


@each_value
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shift", [0.0, 0.4, 0.8, 2.0])
def test_side_agrees_with_the_linear_program(seed: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    points = rng.standard_normal((int(rng.integers(3, 60)), d)) + shift
    assert hull(points).side == side_by_linear_program(points)


def side_by_linear_program(points: FloatArray) -> str:
    return "inside" if naive.origin_inside(points) else "outside"


def verified(found: Hull, points: FloatArray) -> None:
    """Weak duality: no point of the hull is nearer than the margin, and one is that near."""
    size = np.linalg.norm(points, axis=1).max()
    assert found.weights.min() > 0
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
    nearest = np.linalg.norm(found.weights @ points[found.rows])
    if found.side == "outside":
        margin = -(points @ found.direction).max()
        assert np.linalg.norm(found.direction) == pytest.approx(1.0, abs=1e-12)
        assert 0 < margin <= nearest * (1 + 1e-12) <= margin * (1 + 2e-6)
        assert nearest == pytest.approx(found.upper, rel=1e-9)
    else:
        assert found.side == "inside"
        assert nearest <= 1e-12 * size


def test_lattices_where_the_origin_often_lies_on_the_boundary() -> None:
    """Ties, duplicates, points on lines and planes, the origin on faces and among the points."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        d, m = int(rng.integers(1, 7)), int(rng.integers(1, 40))
        points = rng.integers(-2, 3, size=(m, d)).astype(float)
        match seed % 5:
            case 1:
                points = rng.integers(0, 2, size=(m, d)) + (seed % 2) * np.eye(d)[0]
            case 2:
                points = points[rng.integers(0, m, size=m)]
            case 3:
                points = points @ rng.integers(-1, 2, size=(d, d))
            case 4:
                along = np.outer(rng.integers(-3, 4, size=m), rng.integers(-2, 3, size=d))
                points = along + float(rng.integers(0, 2))
        points *= 10.0 ** rng.integers(-8, 8)
        found = hull(points, 13)
        assert found.side == side_by_linear_program(points)
        verified(found, points)


@each_value
@pytest.mark.parametrize("size", [1e-120, 1e-6, 1e6, 1e120])
@pytest.mark.parametrize("shift", [0.1, 2.0])
def test_scale_does_not_matter(size: float, shift: float) -> None:
    points = np.random.default_rng(8).standard_normal((150, 6)) + shift
    near, far = hull(points), hull(points * size)
    assert near.side == far.side == ("inside" if shift < 1 else "outside")
    assert far.upper / size == pytest.approx(near.upper, rel=1e-9, abs=1e-12)


def test_an_origin_just_outside_is_not_taken_for_inside() -> None:
    """Points on and above a plane that misses the origin by very little."""
    for shift in (0.0, 1e-9, 1e-6, 1e-3):
        rng = np.random.default_rng(9)
        points = np.c_[rng.standard_normal((200, 4)), rng.random(200)]
        points[:20, 4] = 0.0
        points[:20, :4] -= points[:20, :4].mean(axis=0)
        points[:, 4] += shift
        found = hull(points)
        assert found.side == ("outside" if shift else "inside")
        assert found.upper == pytest.approx(shift, rel=1e-4, abs=1e-14)
        if shift > 1e-8:
            verified(found, points)


def test_fewer_points_than_dimensions() -> None:
    rng = np.random.default_rng(10)
    points = rng.standard_normal((5, 12))
    found = hull(points)
    assert found.side == "outside"
    verified(found, points)
    assert hull(np.vstack([points, -points.sum(axis=0)])).side == "inside"


def hard(kind: str, rng: np.random.Generator) -> FloatArray:
    g = rng.standard_normal((3000, 60))
    layer = (g - g.mean(axis=1, keepdims=True)) / g.std(axis=1, keepdims=True)
    return {
        "inside": g,
        "nearly inside": g + 0.18,
        "outside": g + 0.5,
        "a plane": layer.astype(np.float32) + np.float32(0.05),
        "a plane through the origin": layer.astype(np.float32),
        "clusters": np.repeat(g[:30], 100, axis=0) + 0.3 + 1e-6 * g,
    }[kind].astype(np.float64)


@pytest.mark.parametrize(
    "kind",
    ["inside", "nearly inside", "outside", "a plane", "a plane through the origin", "clusters"],
)
@pytest.mark.slow
def test_few_passes_are_enough(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the combination gets shorter from each to the next."""
    lengths: list[float] = []

    def watch(points: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        active, weights, normal = nearest_point(points)
        lengths.append(float(np.linalg.norm(weights @ points[active])))
        return active, weights, normal

    monkeypatch.setattr("embgeo.numerics.convex_hull.nearest_point", watch)
    points = hard(kind, np.random.default_rng(5))
    found = distance_to_hull(
        in_blocks(points, 500), 60, float(np.finfo(np.float32).eps), repeated(points)
    )
    assert found.side != "undecided"
    assert found.passes == len(lengths) <= 20
    assert all(b < a for a, b in pairwise(lengths))


def test_a_search_that_gives_up_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(_: FloatArray) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("embgeo.numerics.convex_hull.nearest_point", give_up)
    found = hull(np.random.default_rng(0).standard_normal((50, 3)) + 9.0)
    assert (found.side, found.lower) == ("undecided", 0.0)


def test_certificates_hold_when_checked_from_scratch() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        points = rng.standard_normal((300, 12)) + (0.7 if seed % 2 else 0.0)
        verified(hull(points), points)


def test_distance_of_known_hulls() -> None:
    assert hull(np.array([[3.0, 1.0], [3.0, -1.0], [5.0, 0.0]])).upper == pytest.approx(3.0)
    assert hull(np.array([[0.0, 2.0]])).upper == pytest.approx(2.0)
    # The face of a simplex: the nearest point is its center, at 1/√d.
    assert hull(np.eye(7)).upper == pytest.approx(1 / np.sqrt(7))


def test_origin_on_an_edge_or_among_the_points_is_inside() -> None:
    assert hull(np.array([[1.0, 0.0], [-1.0, 0.0]])).side == "inside"
    assert hull(np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 1.0]])).side == "inside"


def test_duplicates_and_dependent_points_do_no_harm() -> None:
    points = np.repeat(np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]), 50, axis=0)
    found = hull(points)
    assert found.side == "outside"
    assert found.upper == pytest.approx(1.0)


def test_rotation_and_blocks_do_not_move_the_distance() -> None:
    rng = np.random.default_rng(3)
    points = rng.standard_normal((200, 10)) + 0.9
    rotation = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    distances = [hull(points).upper, hull(points @ rotation).upper, hull(points, 7).upper]
    assert distances == pytest.approx([distances[0]] * 3, rel=1e-6)


def layer_normalized(
    rng: np.random.Generator, bias: FloatArray, scale: FloatArray, rows: int = 500
) -> FloatArray:
    x = rng.standard_normal((rows, len(bias)))
    z = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    return z * scale + bias


def analyzed(hidden: FloatArray, norm: FinalNorm | None = None) -> embgeo.Analysis:
    rows = np.random.default_rng(0).standard_normal((40, hidden.shape[1]))
    matrix = Matrix(rows, hidden=Matrix(hidden), final_norm=norm)
    return embgeo.analyze(matrix, sections=["hidden"], reference=False)


def test_gao_appendix_c_layernorm_with_unbalanced_bias_keeps_the_origin_out() -> None:
    rng = np.random.default_rng(1)
    scale, bias = rng.uniform(0.5, 1.5, 8), rng.uniform(0.1, 0.5, 8)
    states = layer_normalized(rng, bias, scale, rows=3000)
    analysis = analyzed(states, FinalNorm("ln_f", scale, bias))
    condition, distance = analysis.scalars[-1], analysis.find_scalar("hidden.hull_distance")
    assert condition.name == "hidden.layernorm_condition"
    assert condition.value == pytest.approx(1.0)  # every b_k/g_k is positive: none cancels
    assert distance is not None
    # All states lie in the plane ⟨1/g, h⟩ = 1ᵀ(b/g): its distance bounds that of the hull.
    plane = abs((bias / scale).sum()) / np.linalg.norm(1 / scale)
    assert distance.value is not None
    assert distance.value >= plane * (1 - 1e-9)
    margin = analysis.find_scalar("hidden.margin")
    assert margin is not None
    assert margin.value is not None
    assert margin.value > 0


def test_balanced_bias_leaves_the_origin_inside() -> None:
    rng = np.random.default_rng(2)
    bias = np.array([0.2, -0.2, 0.1, -0.1, 0.0, 0.0])
    states = layer_normalized(rng, bias, np.ones(6), rows=2000)
    analysis = analyzed(states, FinalNorm("ln_f", np.ones(6), bias))
    distance = analysis.find_scalar("hidden.hull_distance")
    condition = analysis.find_scalar("hidden.layernorm_condition")
    assert distance is not None
    assert distance.value == 0.0
    assert "inside" in distance.convention
    assert condition is not None
    assert condition.value == pytest.approx(0.0, abs=1e-15)


def test_undefined_condition_says_why() -> None:
    for norm, reason in (
        (FinalNorm(absent="no final LayerNorm was found"), "no final LayerNorm was found"),
        (FinalNorm("ln", np.array([1.0, 0.0]), np.ones(2)), "0 or not finite"),
        (FinalNorm("ln", np.ones(2), np.zeros(2)), "bias of ln is zero"),
    ):
        analysis = analyzed(np.random.default_rng(0).standard_normal((30, 2)), norm)
        condition = analysis.find_scalar("hidden.layernorm_condition")
        assert condition is not None
        assert reason in condition.undefined


def test_hidden_states_of_another_width_are_refused() -> None:
    with refusal(BadOption):
        embgeo.analyze(Matrix(np.ones((5, 3)), hidden=Matrix(np.ones((4, 2)))))


def test_non_finite_hidden_states_are_left_out_and_said_to_be() -> None:
    states = np.random.default_rng(0).standard_normal((50, 3)) + 5
    states[7, 1] = np.nan
    analysis = analyzed(states)
    assert any("1 hidden state is left out: non-finite" in note.text for note in analysis.notes)
    distance = analysis.find_scalar("hidden.hull_distance")
    assert distance is not None
    assert distance.value is not None
    assert distance.value > 0


def test_a_hidden_state_at_the_origin_is_named() -> None:
    """Padded positions are often saved as zeros: one of them decides the question."""
    states = np.random.default_rng(0).standard_normal((50, 3)) + 5
    states[7] = 0.0
    distance = analyzed(states).find_scalar("hidden.hull_distance")
    assert distance is not None
    assert distance.value == 0.0
    assert "hidden state 7 is itself the origin" in distance.convention


def test_a_distance_below_the_rounding_of_the_file_is_marked() -> None:
    rng = np.random.default_rng(3)
    flat = rng.standard_normal((200, 3)) * np.array([1.0, 1.0, 0.0])
    for shift, marked in ((1e-7, True), (1e-3, False)):
        states = (flat + np.array([0.0, 0.0, shift])).astype(np.float32)
        distance = analyzed(states).find_scalar("hidden.hull_distance")
        assert distance is not None
        assert distance.value == pytest.approx(shift, rel=1e-3)
        assert ("nearer than the rounding" in distance.convention) is marked


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_states_that_cannot_be_squared_are_refused(size: float) -> None:
    states = np.random.default_rng(0).standard_normal((9, 3)) * size
    with refusal():
        analyzed(states)


def test_states_without_a_finite_row_are_refused() -> None:
    with refusal():
        analyzed(np.full((4, 3), np.nan))


# From files and the command line ----------------------------------------------------------------


def write(folder: Path) -> tuple[Path, FloatArray]:
    rng = np.random.default_rng(6)
    np.save(folder / "model.npy", rng.standard_normal((30, 4)))
    return folder / "model.npy", rng.standard_normal((80, 4)) + 1.5


@pytest.mark.parametrize("name", ["states.npy", "states.npz", "states.safetensors"])
@pytest.mark.slow
def test_hidden_states_from_the_command_line(name: str, tmp_path: Path) -> None:
    model, states = write(tmp_path)
    path, extra = tmp_path / name, []
    if name.endswith(".npy"):
        np.save(path, states)
    elif name.endswith(".npz"):
        np.savez(path, other=states[:50] - 7, last=states)
        extra = ["--hidden-tensor", "last"]
    else:
        save_file({"last": states}, path)
    command = ["analyze", str(model), "--hidden", str(path), *extra, "-o", str(tmp_path / "out")]
    app([*command, "--quiet", "--sections", "hidden,tokens"], standalone_mode=False)
    analysis = embgeo.load_analysis(tmp_path / "out")
    verified_from_the_saved(analysis, states)
    said = analysis.provenance["hidden"]
    assert said["file"] == str(path)
    assert said["states"] == 80
    assert len(said["sha256"]) == 64
    if not name.endswith(".npy"):
        assert said["tensor"] == "last"


def verified_from_the_saved(analysis: embgeo.Analysis, states: FloatArray) -> None:
    """What a reader can check with nothing but the result and the states."""
    distance, direction = analysis.find_scalar("hidden.hull_distance"), analysis["hidden.direction"]
    assert distance is not None
    assert isinstance(direction, Series)
    assert (states @ direction.y["v"]).max() < 0
    assert -(states @ direction.y["v"]).max() == pytest.approx(distance.value, rel=2e-6)


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    model, states = write(tmp_path)
    with refusal(BadOption):
        embgeo.load(model, hidden_tensor="last")
    np.save(tmp_path / "narrow.npy", states[:, :3])
    matrix = embgeo.load(model, hidden=tmp_path / "narrow.npy")
    with refusal(BadOption):
        embgeo.analyze(matrix)


def test_without_hidden_states_the_section_says_how_to_get_it() -> None:
    analysis = embgeo.analyze(Matrix(np.eye(3)), reference=False)
    assert analysis.absent["hidden"] == "no hidden states (embgeo analyze --hidden FILE)"

"""Checkpoints of one run: their steps, the curves, where each bends."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from embgeo.comparison.compare import find_same
from embgeo.comparison.comparison import load_comparison
from embgeo.comparison.curves import (
    curve,
    find_change_point,
    find_outliers,
    find_unrelated,
    fit_shapes,
    fit_smooth,
)
from embgeo.comparison.track import ChangePoint, Track
from embgeo.core.errors import BadOption
from embgeo.core.values import Quantity
from embgeo.io.formats.training_step import training_step
from embgeo.workflows.diff import diff
from embgeo.workflows.track import from_names, steps_of
from tests.support.compared import comparison, enter_pair
from tests.support.matrices import gaussian, rng
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value, sample_cases

# Steps ------------------------------------------------------------------------------------------


def test_steps_stand_in_the_names():
    for names, values, word in (
        (["run/ckpt-500.pt", "run/ckpt-1000.pt"], (500, 1000), "ckpt"),
        (["run2/ckpt-00500.pt", "run2/ckpt-00100.pt"], (500, 100), "ckpt"),
        (["epoch=1-step=30.ckpt", "epoch=2-step=60.ckpt"], (30, 60), "step"),
        (["step=30-epoch=1.ckpt", "step=60-epoch=2.ckpt"], (30, 60), "step"),
        (["a-1-7.pt", "a-2-9.pt"], (7, 9), ""),
        (["global_step5/model.pt", "global_step15/model.pt"], (5, 15), "global_step"),
        (["checkpoint-500/model.bin", "checkpoint-20/model.bin"], (500, 20), "checkpoint"),
        (["m-10k.pt", "m-2M.pt", "m-500.pt"], (10_000, 2_000_000, 500), "m"),
        (["v2-5.pt2", "v2-6.pt2"], (5, 6), ""),
        (["1.npy", "20.npy"], (1, 20), ""),
        (["run2/ckpt-500.pt"], (500,), "ckpt"),
        (["seed-1/e-5.pt", "seed-2/e-5.pt"], (1, 2), "seed"),
        (["m-2e3.pt", "m-1e4.pt"], (2000, 10_000), "m"),
        (["ckpt-1-loss2.91.pt", "ckpt-2-loss3.31.pt"], (1, 2), "ckpt"),
    ):
        found = from_names(names)
        assert found is not None
        assert found.values == values
        assert f"{word!r}" in found.source or not word


def test_names_without_steps():
    for names in (
        ["a.pt", "b.pt"],
        ["a1.pt", "b.pt"],
        ["a1-2.pt", "a3.pt"],
        ["last.pt", "best.pt"],
        ["m-5.pt", "n-5.pt"],
        ["m-2024-01-02.pt", "m-2024-02-01.pt"],
        ["epoch1-step900.pt", "epoch2-step100.pt"],
        [],
    ):
        assert from_names(names) is None


def test_files_are_ordered_by_step():
    found = steps_of([Path(f"c-{n}.pt") for n in (900, 1000, 20)], lambda _: None)
    assert found.order == [2, 0, 1]


def test_steps_are_read_from_the_files_where_names_hold_none():
    held = {"best.pt": (300.0, "global_step"), "last.pt": (900.0, "step")}
    found = steps_of([Path(name) for name in held], lambda path: held[path.name])
    assert found.values == (300.0, 900.0)
    assert found.source == "the entry 'global_step' or 'step' of the checkpoints"


def test_no_step_anywhere_is_refused():
    held = {"best.pt": (1.0, "step")}
    with refusal(BadOption):
        steps_of([Path("best.pt"), Path("last.pt")], lambda path: held.get(path.name))


def test_two_files_of_one_step_are_refused():
    with refusal(BadOption):
        steps_of([Path("best.pt"), Path("last.pt")], lambda _: (5.0, "step"))


def test_a_torch_checkpoint_says_its_step(tmp_path):
    torch = pytest.importorskip("torch")
    weights = {"weight": torch.zeros(4, 2)}
    saved = {
        "lightning.ckpt": {"epoch": 3, "global_step": 1200, "state_dict": weights},
        "plain.pt": {"model": weights, "step": 7},
        "epoch.pt": {"model": weights, "epoch": 2},
        "nested.pt": {"model": weights, "trainer_state": {"global_step": 40}},
        "tensor.pt": {"model": weights, "step": torch.tensor(3)},
        "nothing.pt": weights,
        "true.pt": {"model": weights, "step": True},
        "negative.pt": {"model": weights, "step": -1},
    }
    for name, content in saved.items():
        torch.save(content, tmp_path / name)
    found = {name: training_step(tmp_path / name) for name in saved}
    assert found == {
        "lightning.ckpt": (1200.0, "global_step"),
        "plain.pt": (7.0, "step"),
        "epoch.pt": (2.0, "epoch"),
        "nested.pt": (40.0, "global_step"),
        "tensor.pt": None,
        "nothing.pt": None,
        "true.pt": None,
        "negative.pt": None,
    }


def test_a_safetensors_file_says_its_step(tmp_path):
    from safetensors.numpy import save_file

    W = {"w": np.zeros((3, 2), np.float32)}
    save_file(W, tmp_path / "a.safetensors", metadata={"step": "250", "format": "pt"})
    save_file(W, tmp_path / "b.safetensors", metadata={"step": "many"})
    save_file(W, tmp_path / "c.safetensors")
    found = [training_step(tmp_path / f"{name}.safetensors") for name in "abc"]
    assert found == [(250.0, "step"), None, None]


def test_a_model_folder_says_its_step(tmp_path):
    (tmp_path / "trainer_state.json").write_text(json.dumps({"global_step": 77, "epoch": 1.5}))
    assert training_step(tmp_path) == (77.0, "global_step")
    (tmp_path / "trainer_state.json").write_text("[1")
    assert training_step(tmp_path) is None


def test_damaged_files_say_no_step(tmp_path):
    for folder, content in each_folder(
        tmp_path,
        (b"", b"PK\x03\x04", b"\x93NUMPY", b"\xff" * 8 + b"{", b"\x10\0\0\0\0\0\0\0{}", b"{"),
    ):
        path = folder / "x"
        path.write_bytes(content)
        assert training_step(path) is None
        assert training_step(folder / "missing") is None


# Bends ------------------------------------------------------------------------------------------

STEPS = np.arange(0.0, 2100.0, 100.0)


def hinge(tau, before=1.0, after=-0.5, steps=STEPS):
    return before * np.minimum(steps, tau) + after * np.maximum(0.0, steps - tau)


@each_value
@pytest.mark.parametrize("tau", [300.0, 700.0, 1600.0])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_bend_is_found_where_it_is(tau, scale):
    found = find_change_point(STEPS, scale * hinge(tau))
    assert isinstance(found, ChangePoint)
    assert found.step == tau
    assert found.slope_before == pytest.approx(scale * 1.0)
    assert found.slope_after == pytest.approx(scale * -0.5)
    assert found.left < 1e-12


def test_a_bend_of_unevenly_spaced_steps():
    steps = np.array([1.0, 10, 30, 100, 300, 1000, 2000, 3000, 5000, 10_000, 20_000, 30_000])
    found = find_change_point(steps, hinge(1000.0, 2.0, 0.1, steps))
    assert isinstance(found, ChangePoint)
    assert found.step == 1000.0


def test_what_does_not_bend():
    for values, reason in (
        (3.0 * STEPS + 2.0, "straight line"),
        (np.full(len(STEPS), 0.1), "does not change"),
        (np.zeros(len(STEPS)), "does not change"),
        (STEPS + 300.0 * rng(81).standard_normal(len(STEPS)), "random order"),
    ):
        found = find_change_point(STEPS, values)
        assert isinstance(found, str)
        assert reason in found


def test_few_points_do_not_bend():
    for m in (1, 2, 5):
        assert find_change_point(STEPS[:m], hinge(100.0)[:m]) == f"{m} points, a bend takes 6"


@pytest.mark.slow
@pytest.mark.parametrize("walk", sample_cases([True, False], 2))
def test_noise_is_rarely_called_a_bend(walk):
    """At a level of 5%: 20 of 400, and 31 would be a sign of more."""
    draws = [rng(1000 + i).standard_normal(len(STEPS)) for i in range(400)]
    found = [find_change_point(STEPS, np.cumsum(draw) if walk else draw) for draw in draws]
    assert sum(isinstance(b, ChangePoint) for b in found) <= 31


T = STEPS / STEPS[-1]
SMOOTH = {
    "exponential": np.exp(-5.0 * T),
    "parabola": (T - 0.4) ** 2,
    "power": (T + 0.05) ** -0.5,
    "logistic": 1.0 / (1.0 + np.exp(-12.0 * (T - 0.4))),
    "peak": np.exp(-8.0 * (T - 0.4) ** 2),
    "logarithm": np.log(T + 0.02),
}


@each_value
@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("name", SMOOTH)
def test_no_curvature_is_a_turn(name, noise):
    """A corner with as much noise is one: see above."""
    values = SMOOTH[name] / np.ptp(SMOOTH[name]) + noise * rng(85).standard_normal(len(T))
    assert isinstance(find_change_point(STEPS, values), str)


def test_shapes_are_fitted_as_by_least_squares():
    values = rng(83).standard_normal(len(T))
    shapes = np.stack([np.maximum(0.0, T - 0.3), np.tanh(T), 3.0 * T - 1.0])
    straight, left = fit_shapes(T, values, shapes)
    line = np.column_stack([np.ones_like(T), T])
    for found, columns in (
        (straight, line),
        (left[0], np.column_stack([line, shapes[0]])),
        (left[1], np.column_stack([line, shapes[1]])),
        (left[2], line),
    ):
        best = columns @ np.linalg.lstsq(columns, values, rcond=None)[0]
        assert found == pytest.approx(float(np.square(values - best).sum()))


def test_smooth_turns_in_time_and_in_its_logarithm_leave_nothing():
    t = np.array([0.0, 0.01, 0.03, 0.08, 0.15, 0.3, 0.4, 0.6, 0.9, 1.0])
    for scale in (t, np.log1p(t / 0.01) / np.log1p(1.0 / 0.01)):
        for turn in (np.tanh, lambda at: np.logaddexp(0.0, at)):
            values = 2.0 - 3.0 * scale + turn((scale - 0.45) / (1 / 6))
            assert fit_smooth(t, values) < 1e-14
    assert fit_smooth(t, t**0.1) > 1e-9


def test_the_fit_is_the_best_of_all_places():
    """Against a plain search over every inner step by least squares."""
    values = 0.2 * rng(82).standard_normal(len(STEPS)) + hinge(600.0) / 50
    found = find_change_point(STEPS, values)
    assert isinstance(found, ChangePoint)
    line, left = np.column_stack([np.ones_like(STEPS), STEPS]), {}
    for tau in STEPS[1:-1]:
        bent = np.column_stack([line, np.maximum(0, STEPS - tau)])
        left[tau] = np.linalg.lstsq(bent, values, rcond=None)[1][0]
    assert found.step == min(left, key=left.get)
    straight = np.linalg.lstsq(line, values, rcond=None)[1][0]
    assert found.left == pytest.approx(left[found.step] / straight)


# Curves -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tracked():
    """A cone that forms from the fourth of ten checkpoints on."""
    W, direction = gaussian(90, n=120, d=60), np.ones(60)
    cosines = np.array([0.0, 0.001, 0.0, 0.001, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
    depths = np.sqrt(cosines / (1 - cosines))
    runs = [
        enter_pair(
            W + depth * direction + 0.01 * gaussian(91 + i, n=120, d=60),
            f"ckpt-{100 * i}",
            sections=("cosine", "isotropy"),
            step=100.0 * i,
        )
        for i, depth in enumerate(depths)
    ]
    return comparison(*runs, track="the number in the names")


def test_every_scalar_has_a_curve(tracked):
    curves = [c for c in tracked.track.curves if not c.against]
    assert [c.quantity.name for c in curves] == [
        s.name for s in tracked.members[0].analysis.scalars
    ]
    mean = next(c for c in curves if c.quantity.name == "cosine.mean")
    assert list(mean.values) == [
        m.analysis.find_scalar("cosine.mean").value for m in tracked.members
    ]
    assert tracked.track.steps == tuple(100.0 * i for i in range(10))


def test_errors_of_a_curve_are_those_of_its_checkpoints():
    """Of this matrix, with the choice of tokens left out; none of a checkpoint that has none."""
    quantity = Quantity("a.b", "Plain", "A number.")
    sampled = quantity.measured(
        0.5, standard_error=0.1, error_kind="monte_carlo", population_error=0.2, sample="some"
    )
    exact = quantity.measured(0.6, population_error=0.3)
    track = Track((0.0, 1.0, 2.0), "given", (), (None,) * 3)
    made = curve(track, quantity, "", [sampled, exact, None])
    assert made.values == (0.5, 0.6, None)
    assert made.standard_errors == (0.1, None, None)


def test_pairs_are_to_the_first_and_to_the_one_before(tracked):
    assert [(p.first, p.second) for p in tracked.pairs] == [
        *((0, i) for i in range(1, 10)),
        *((i, i + 1) for i in range(1, 9)),
    ]
    by_key = {(c.quantity.name, c.against): c for c in tracked.track.curves}
    first, previous = (by_key["compare.cka", a] for a in ("first", "previous"))
    assert first.values[0] is None
    assert first.values[1] == previous.values[1]
    assert previous.values[5] == tracked.pair(4, 5)["compare.cka"].value
    assert first.values[5] == tracked.pair(0, 5)["compare.cka"].value


def test_the_cone_bends_where_it_begins(tracked):
    found = next(c for c in tracked.track.curves if c.quantity.name == "cosine.mean")
    assert found.change_point is not None
    assert found.change_point.step == 300.0
    assert any(s.startswith("From step 0 to 900, mean cosine rose") for s in tracked.sentences)


def test_curves_without_a_bend_say_why(tracked):
    for one in tracked.track.curves:
        assert (one.change_point is None) == bool(one.no_change_point)


# Duplicates and outliers ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted():
    """Twelve checkpoints that drift; 3 and 7 hold the matrix of 1, and 9 is of another run."""
    data = [gaussian(200, n=40) + 0.1 * i * gaussian(201, n=40) + 0.2 * i for i in range(12)]
    data[3] = data[7] = data[1]
    data[9] = 7.0 * gaussian(202, n=40)
    runs = [
        enter_pair(W.astype(np.float32), f"ckpt-{100 * i}", step=100.0 * i)
        for i, W in enumerate(data)
    ]
    return comparison(*runs, track="the number in the names", queries=0)


def test_duplicates_and_outliers_are_named(planted):
    track = planted.track
    assert [i for i, same in enumerate(track.same_as) if same is not None] == [3, 7]
    assert track.same_as[3] == track.same_as[7] == 1
    assert track.outliers == (9,)
    assert planted.sentences[0] == "Steps 100, 300 and 700 hold the same matrix."
    assert "Step 900 does not fit its neighbors." in planted.sentences
    assert {s.name: s.value for s in track.scalars()} == {
        "track.duplicates": 2,
        "track.outliers": 1,
    }


@pytest.mark.slow
def test_a_shuffled_checkpoint_does_not_fit():
    """All of its own numbers are those of its neighbors."""
    for place in (None, 1, 9):
        data = [gaussian(205, n=120) + 0.05 * i * gaussian(206, n=120) for i in range(10)]
        if place is not None:
            data[place] = rng(207).permutation(data[place])
        runs = [enter_pair(W, f"ckpt-{i}", step=float(i)) for i, W in enumerate(data)]
        track = comparison(*runs, track="the number in the names").track
        assert track.outliers == (() if place is None else (place,))


def test_unrelated_on_both_sides():
    for chances, found in (
        ((None, 0.001, 0.6, 0.4, 0.001, 0.001), (2,)),
        ((None, 0.001, 0.6, 0.001, 0.001, 0.001), ()),  # a jump, and no way back
        ((None, 0.6, 0.001, 0.001, 0.001, 0.001), ()),  # an initialization
        ((None, 0.001, 0.001, 0.001, 0.001, 0.6), (5,)),
        ((None, 0.6, 0.6, 0.6, 0.6, 0.6), ()),
        ((None, 0.001, None, None, 0.001, 0.001), ()),
    ):
        assert find_unrelated(chances) == found


def test_a_broken_checkpoint_does_not_stop_a_track(tmp_path):
    for i in range(5):
        W = gaussian(208, n=40) + 0.1 * i
        np.save(tmp_path / f"ckpt-{i}.npy", W * (np.nan if i == 3 else 1.0))
    made = diff(tmp_path / "ckpt-*.npy", track=True, sections=("cosine",), reference=False)
    track = made.track
    assert track.steps == (0.0, 1.0, 2.0, 4.0)
    assert [one.step for one in track.unmeasured] == [3.0]
    assert {s.name: s.value for s in track.scalars()}["track.outliers"] == 1
    assert any("Step 3 was not measured: none of 40 rows" in text for text in made.sentences)
    made.save(tmp_path / "saved")
    assert load_comparison(tmp_path / "saved").track == track
    for i in (0, 1, 2):
        np.save(tmp_path / f"ckpt-{i}.npy", np.full((40, 6), np.nan))
    with refusal():  # one checkpoint is no track
        diff(tmp_path / "ckpt-*.npy", track=True, sections=("cosine",), reference=False)


def test_duplicates_take_no_part_in_pairs_of_neighbors(planted):
    neighbors = [(p.first, p.second) for p in planted.pairs if p.first]
    assert neighbors == [(1, 2), (2, 4), (4, 5), (5, 6), (6, 8), (8, 9), (9, 10), (10, 11)]
    first = {p.second: p for p in planted.pairs if not p.first}
    assert first[3].scalars == first[1].scalars
    previous = next(c for c in planted.track.curves if c.against == "previous")
    assert [i for i, v in enumerate(previous.values) if v is None] == [0, 3, 7]


def test_a_track_is_saved_with_its_duplicates(planted, tmp_path):
    planted.save(tmp_path)
    assert load_comparison(tmp_path).track == planted.track


def test_equal_bytes_in_other_blocks_are_seen(monkeypatch):
    monkeypatch.setattr("embgeo.comparison.compare.BLOCK_ROWS", 7)
    W = gaussian(203, n=40)
    other = W.copy()
    other[-1, -1] += 1e-9
    found = find_same([enter_pair(one, f"W{i}") for i, one in enumerate((W, other, W.copy()))])
    assert found == (None, None, 0)


def test_the_same_matrix_in_files_of_unlike_hashes_is_seen():
    """By its bytes where they are there; without them by the hash, if there is one."""
    W = gaussian(204, n=20)
    inputs = [enter_pair(W, name) for name in ("a", "b", "c", "d")]
    for one, sha256 in zip(inputs, ("1", "2", "1", None), strict=True):
        one[0].analysis.provenance["sha256"] = sha256
    assert find_same(inputs) == (None, 0, 0, 0)
    saved = [(member, None) for member, _ in (*inputs, inputs[-1])]
    assert find_same(saved) == (None, None, 0, None, None)


def test_walks_and_smooth_curves_have_no_outliers():
    draws = [np.cumsum(rng(300 + i).standard_normal((20, 30)), axis=1) for i in range(40)]
    t = np.geomspace(1, 1000, 30)
    smooth = [np.log(t), 1 / t, np.exp(-((np.log(t) - 3) ** 2)), t]
    assert not [1 for draw in (*draws, np.array(smooth)) if find_outliers(draw.tolist())]


def test_planted_outliers_are_found():
    for places in ((1,), (15,), (28,), (8, 20)):
        curves = np.cumsum(rng(77).standard_normal((20, 30)), axis=1)
        curves[:, list(places)] += 60.0
        assert find_outliers(curves.tolist()) == places

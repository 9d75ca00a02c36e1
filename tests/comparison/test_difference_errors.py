"""Errors of differences beside literal ones: shared draws, other seeds, sizes, ranks, steps."""

import numpy as np
import numpy.typing as npt
import pytest

from embgeo.comparison.comparison import Comparison
from embgeo.comparison.curves import find_change_point
from embgeo.comparison.differences import INDEPENDENT, PAIRED, difference
from embgeo.comparison.pair import Difference
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.quantities.cosine import MEAN
from embgeo.core.quantities.frequency import PROBE_AUC
from embgeo.core.values import Quantity
from tests.support.compared import comparison, enter_pair, number, pair_of

Rows = npt.NDArray[np.float64]
N, D = 200, 6
PLAIN = Quantity("a.b", "Plain", "A number.")


def two_sides() -> tuple[Rows, Rows]:
    """The same rows with noise of their own, one side with a wider cone."""
    g = np.random.default_rng(0)
    rows = g.standard_normal((N, D)) * np.arange(1, D + 1) ** -0.4 + 0.3
    first, second = rows + 0.15 * g.standard_normal((2, N, D))
    return first, second + 0.1


def find(made: Comparison, quantity: Quantity) -> Difference:
    return next(row for row in made.differences if row.name == quantity.name)


@pytest.mark.parametrize(("seed", "note"), [(0, PAIRED), (1, INDEPENDENT)])
def test_scores_of_other_seeds_are_not_paired(seed: int, note: str) -> None:
    """Scores out of fold depend on the folds: of others the errors are added in squares."""
    counts = Frequency("counts", np.arange(N, 0.0, -1.0), "drawn")
    sides = (
        enter_pair(Matrix(W, frequency=counts), name, sections=("frequency",), seed=own)
        for W, name, own in zip(two_sides(), "ab", (0, seed), strict=True)
    )
    made = comparison(*sides)
    found = find(made, PROBE_AUC)
    both = np.hypot(*(m.analysis[PROBE_AUC.name].population_error for m in made.members))
    assert found.error_note == note
    assert found.standard_error is not None
    assert bool(found.standard_error < 0.95 * both) is (seed == 0)
    if seed:
        assert found.standard_error == pytest.approx(both)


@pytest.mark.parametrize(("old", "new", "words"), [
    (None, 4000, "an unknown number of and 4,000 rows"),
    (500, None, "500 and an unknown number of rows"),
])  # fmt: skip
def test_a_size_that_is_unknown_is_no_equal_size(
    old: int | None, new: int | None, words: str
) -> None:
    sides = (PLAIN.measured(1.0, size=size) for size in (old, new))
    found = difference(PLAIN, 1, *sides)
    assert (found.change, found.difference) == ("undefined", None)
    assert found.undefined == f"it depends on the number of rows: {words}"


def test_two_unknown_sizes_are_compared() -> None:
    assert difference(PLAIN, 1, PLAIN.measured(1.0), PLAIN.measured(2.0)).difference == 1.0


def test_the_fewer_samples_of_two_widen_the_interval() -> None:
    """Student's t with 4 degrees of freedom: 2.776."""
    sides = (
        PLAIN.measured(0.0, standard_error=3.0, error_kind="monte_carlo", freedom=4, sample="s"),
        PLAIN.measured(9.0, standard_error=4.0, error_kind="monte_carlo", freedom=19, sample="s"),
    )
    found = difference(PLAIN, 1, *sides)
    assert (found.standard_error, found.error_note) == (pytest.approx(5.0), INDEPENDENT)
    assert found.interval == pytest.approx((9 - 5 * 2.7764, 9 + 5 * 2.7764), abs=1e-3)


def test_chance_of_a_side_of_lower_rank_is_that_of_its_rank() -> None:
    """Matrices of five columns: the distance and its chance level are those of the ranks."""
    for first, second, wide in ((2, 5, 5), (5, 2, 5), (2, 3, 3), (1, 1, 1)):
        g = np.random.default_rng(2)
        X, Y = (
            g.standard_normal((60, rank)) @ g.standard_normal((rank, 5)) for rank in (first, second)
        )
        pair = pair_of(X, Y)
        found = pair["compare.subspace_distance"]
        assert found.reference == pytest.approx(np.sqrt(1 - wide / 60), rel=1e-12)
        u, v = (np.linalg.svd(W)[0][:, :rank] for W, rank in ((X, first), (Y, second)))
        u, v = sorted((u, v), key=np.size, reverse=True)
        literal = np.linalg.norm(v - u @ (u.T @ v)) / np.sqrt(v.shape[1])
        assert number(pair, "subspace_distance") == pytest.approx(literal, rel=1e-9)


STEPS = np.array([0.0, 10, 20, 40, 50, 70, 80, 100, 120, 130, 150, 160])


def test_slopes_of_uneven_steps_are_those_of_a_random_walk() -> None:
    """Their deviations are divided by the roots of the distances: a walk rarely bends."""
    between, bends = np.diff(STEPS) ** 2, 0
    steps = np.r_[0, np.cumsum(between)]
    for seed in range(200):
        noise = np.sqrt(between) * np.random.default_rng(seed).standard_normal(len(between))
        walk = np.r_[0, np.cumsum(between + 2 * noise)]
        bends += not isinstance(find_change_point(steps, walk), str)
    assert bends <= 20  # of 10 expected


@pytest.mark.slow
def test_duplicates_of_uneven_steps_take_no_part_in_a_bend() -> None:
    """A checkpoint that was saved twice would bend the curve where it stands still."""
    rows = np.random.default_rng(3).standard_normal((60, 8))
    cosines = np.interp(STEPS, [0, 70, 160], [0.01, 0.05, 0.9])
    depths = np.sqrt(cosines / (1 - cosines))
    members = [(step, rows + depth) for step, depth in zip(STEPS, depths, strict=True)]
    twice = sorted([*members, (110.0, members[7][1])], key=lambda one: one[0])

    def bend(checkpoints: list[tuple[float, Rows]]) -> tuple[float, float] | None:
        inputs = [
            enter_pair(W, f"ckpt-{step:g}", sections=("cosine",), step=step, pairs=0)
            for step, W in checkpoints
        ]
        made = comparison(*inputs, track="from names", queries=0)
        assert made.track is not None
        curve = next(c for c in made.track.curves if c.quantity == MEAN and not c.against)
        assert len(curve.values) == len(checkpoints)
        found = curve.change_point
        return (found.step, found.slope_after) if found else None

    found = bend(members)
    assert found is not None
    assert found[0] == 70.0
    assert bend(twice) == found

"""Batches of `embgeo train`: streams side by side, windows, and resuming between them."""

from __future__ import annotations

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.data import Batches, Window, columns  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.sampling import each_value  # noqa: E402


def walk(batches: Batches, windows: int) -> list[Window]:
    return [batches.take() for _ in range(windows)]


def same(first: list[Window], second: list[Window]) -> bool:
    return len(first) == len(second) and all(
        torch.equal(a.inputs, b.inputs) and torch.equal(a.targets, b.targets) and a[2:] == b[2:]
        for a, b in zip(first, second, strict=True)
    )


def test_columns_are_streams_side_by_side() -> None:
    found = columns(np.arange(11), 3)
    assert found.tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert found.is_contiguous()
    assert found.dtype == torch.int64


def test_too_few_tokens_for_a_batch() -> None:
    for tokens, batch in ((11, 6), (1, 1), (0, 1), (11, 0), (11, -2)):
        with refusal(BadOption):
            columns(np.arange(tokens), batch)


@pytest.mark.parametrize("random_lengths", [False, True])
def test_each_target_is_seen_once_an_epoch_one_token_after_its_input(random_lengths: bool) -> None:
    streams = columns(np.arange(1000), 4)
    batches = Batches(streams, 9, random_lengths=random_lengths)
    for epoch in range(3):
        windows = list(batches)
        assert torch.equal(torch.cat([w.inputs for w in windows]), streams[:-1])
        assert torch.equal(torch.cat([w.targets for w in windows]), streams[1:])
        assert [w.first for w in windows] == [True] + [False] * (len(windows) - 1)
        assert (batches.epoch, batches.offset) == (epoch + 1, 0)
    assert batches.steps_per_epoch == 249


def test_fixed_windows() -> None:
    batches = Batches(columns(np.arange(50), 2), 10)
    windows = list(batches)
    assert [len(w.inputs) for w in windows] == [10, 10, 4]
    assert {w.length_ratio for w in windows} == {1.0}
    assert batches.windows_per_epoch == len(windows)


@pytest.mark.slow
def test_random_lengths_are_those_of_awd_lstm() -> None:
    batches = Batches(columns(np.zeros(2_000_000, dtype=np.int64), 1), 70, random_lengths=True)
    windows = list(batches)[:-1]
    lengths = np.array([len(w.inputs) for w in windows])
    assert {w.length_ratio == len(w.inputs) / 70 for w in windows} == {True}
    halved = lengths < 52
    assert halved.mean() == pytest.approx(0.05, abs=0.005)
    # Cutting to whole numbers takes half a token on average.
    assert lengths[~halved].mean() == pytest.approx(69.5, abs=0.1)
    assert lengths[~halved].std() == pytest.approx(5.0, abs=0.15)
    assert lengths[halved].mean() == pytest.approx(34.5, abs=0.6)
    assert batches.windows_per_epoch == pytest.approx(len(windows), rel=0.02)


def test_random_lengths_are_never_below_five_but_at_the_end() -> None:
    windows = list(Batches(columns(np.arange(5000), 1), 6, random_lengths=True))
    lengths = [len(w.inputs) for w in windows]
    assert min(lengths[:-1]) == 5
    assert len(set(lengths)) > 5


def test_lengths_depend_on_the_seed_and_on_nothing_else_that_is_drawn() -> None:
    streams = columns(np.arange(3000), 2)
    one, two, other = (Batches(streams, 20, random_lengths=True, seed=seed) for seed in (5, 5, 6))
    first = walk(one, 100)
    second = []
    for _ in range(100):
        torch.rand(3)
        second.append(two.take())
    assert same(first, second)
    assert not same(first, walk(other, 100))


@each_value
@pytest.mark.parametrize("random_lengths", [False, True])
@pytest.mark.parametrize("before", [0, 1, 7, 24, 25, 26, 60])
def test_a_walk_resumes_exactly(random_lengths: bool, before: int) -> None:
    streams = columns(np.arange(1000), 2)

    def fresh() -> Batches:
        return Batches(streams, 20, random_lengths=random_lengths, seed=1)

    whole = fresh()
    walk(whole, before)
    stored = io.BytesIO()
    torch.save(whole.state_dict(), stored)
    expected = walk(whole, 60)
    resumed = fresh()
    stored.seek(0)
    resumed.load_state_dict(torch.load(stored, weights_only=True))
    assert same(walk(resumed, 60), expected)
    assert (resumed.epoch, resumed.offset) == (whole.epoch, whole.offset)


def test_a_state_of_other_data_is_refused() -> None:
    state = Batches(columns(np.arange(100), 2), 10).state_dict()
    for batches in (
        Batches(columns(np.arange(102), 2), 10),
        Batches(columns(np.arange(100), 2), 11),
    ):
        with refusal(BadOption):
            batches.load_state_dict(state)


def test_windows_that_make_no_sense() -> None:
    for shape, bptt in (((9, 2), 0), ((1, 2), 3), ((9,), 3)):
        with refusal(BadOption):
            Batches(torch.zeros(shape, dtype=torch.int64), bptt)

"""Transformer-XL against loops over heads, tokens and distances."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.evaluation.scores import Scores  # noqa: E402
from embgeo.training.models import Transformer, TransformerXL, detach  # noqa: E402
from embgeo.training.optimization.optimizers import parameter_groups  # noqa: E402
from embgeo.training.sections import EvaluationSettings  # noqa: E402
from embgeo.training.settings import StudySettings  # noqa: E402
from embgeo.training.tasks.language_model import resolve_windows  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.training_runs import corpus  # noqa: E402

N, D, HEADS = 20, 8, 2


def made(memory: int = 4, layers: int = 2, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    model = TransformerXL(N, d=D, layers=layers, heads=HEADS, memory=memory, feedforward=12)
    for parameter in model.parameters():  # far enough from the start that everything counts
        torch.nn.init.normal_(parameter, std=0.3)
    return model.double().eval()


def tokens(length: int, batch: int = 3) -> Any:
    return torch.randint(0, N, (length, batch), generator=torch.Generator().manual_seed(1))


def encode(distance: int) -> Any:
    """Sines, then cosines, of the distance times 10000^(−2k/d)."""
    angles = [distance * 10_000 ** (-2 * k / D) for k in range(D // 2)]
    return torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float64)


def slow_attention(model: Any, attention: Any, x: Any, context: Any, **limits: Any) -> Any:
    """For one stream: x of shape (T, d) attends to context of shape (L, d), token by token."""
    before, width = len(context) - len(x), D // HEADS
    found = torch.zeros_like(x)
    for t in range(len(x)):
        parts = []
        for h in range(HEADS):
            own = slice(h * width, (h + 1) * width)
            query = (attention.query.weight @ x[t])[own]
            scores, values = [], []
            for j in range(before + t + 1):
                distance = before + t - j
                if distance >= limits.get("longest", math.inf):
                    continue
                key, value = (attention.key_value.weight @ context[j]).split(D)
                place = attention.distance.weight @ encode(
                    min(distance, limits.get("clamp", 10**6))
                )
                score = (query + model.content_bias[own]) @ key[own]
                score = score + (query + model.distance_bias[own]) @ place[own]
                scores.append(score / math.sqrt(width))
                values.append(value[own])
            weights = torch.stack(scores).softmax(0)
            parts.append((weights.unsqueeze(1) * torch.stack(values)).sum(0))
        found[t] = attention.out.weight @ torch.cat(parts)
    return found


def slow(model: Any, ids: Any, memory: list[Any] | None = None, **limits: Any) -> tuple[Any, Any]:
    """The states of one stream, and what to carry on."""
    x = model.embedding.weight[ids] * math.sqrt(D)
    memory = [x[:0] for _ in model.blocks] if memory is None else memory
    kept = []
    for block, seen in zip(model.blocks, memory, strict=True):
        context = torch.cat((seen, x))
        kept.append(context[len(context) - min(len(context), model.memory) :])
        attention, feed = block.attention, block.inner.layer
        x = attention.norm(x + slow_attention(model, attention.layer, x, context, **limits))
        x = block.inner.norm(x + feed.outward(torch.relu(feed.inward(x))))
    return x, kept


@torch.no_grad()
def test_windows_with_a_memory_equal_loops() -> None:
    model, ids = made(memory=4), tokens(9)
    state, slow_state = None, [None] * 3
    for window in ids.split(3):
        output = model(window, state)
        state = detach(output.state)
        for stream in range(3):
            expected, slow_state[stream] = slow(model, window[:, stream], slow_state[stream])
            torch.testing.assert_close(output.raw[:, stream], expected)
            for part, own in zip(state, slow_state[stream], strict=True):
                torch.testing.assert_close(part[stream], own)


@torch.no_grad()
def test_a_long_memory_makes_one_window_of_several() -> None:
    model, ids = made(memory=50, layers=3), tokens(12)
    state, parts = None, []
    for window in ids.split([5, 1, 4, 2]):
        output = model(window, state)
        state = detach(output.state)
        parts.append(output.raw)
    torch.testing.assert_close(torch.cat(parts), model(ids).raw)


@torch.no_grad()
@pytest.mark.parametrize("memory", [0, 2])
def test_a_short_memory_forgets(memory: int) -> None:
    model, ids = made(memory=memory, layers=1), tokens(8)
    changed = ids.clone()
    changed[0] = (changed[0] + 1) % N
    states = []
    for text in (ids, changed):
        first = model(text[:4])
        states.append(model(text[4:], detach(first.state)).raw)
    assert torch.equal(*states)
    assert [part.shape[1] for part in first.state] == [memory]


@torch.no_grad()
def test_reading_with_another_memory() -> None:
    model, ids = made(memory=3), tokens(8, batch=1)
    with model.reading(6, 2, same_length=True):
        first = model(ids[:5])
        output = model(ids[5:], detach(first.state))
        _, kept = slow(model, ids[:5, 0], longest=6, clamp=2)
        expected, _ = slow(model, ids[5:, 0], kept, longest=6, clamp=2)
        torch.testing.assert_close(output.raw[:, 0], expected)
        assert not torch.allclose(slow(model, ids[5:, 0], kept, longest=6)[0], expected)
        assert not torch.allclose(slow(model, ids[5:, 0], kept, clamp=2)[0], expected)
    assert (model.memory, model.clamp, model.same_length) == (3, None, False)


@torch.no_grad()
def test_a_memory_of_one_state_is_the_one_length() -> None:
    model, ids = made(memory=3), tokens(5, batch=1)
    with model.reading(1, None, same_length=True):
        expected, _ = slow(model, ids[:, 0], longest=1)
        torch.testing.assert_close(model(ids).raw[:, 0], expected)


@torch.no_grad()
def test_a_model_without_a_memory_reads_without_one() -> None:
    model, ids = made(memory=0), tokens(5)
    expected = model(ids).raw
    with model.reading(6, None, same_length=True):
        output = model(ids)
    torch.testing.assert_close(output.raw, expected)
    assert [part.shape[1] for part in output.state] == [0, 0]


def test_a_cache_reads_with_the_memory_of_the_evaluation() -> None:
    model, text = made(memory=1).float(), corpus(n=N)

    def cached(memory: int | None) -> Any:
        chosen = StudySettings(evaluation=EvaluationSettings(cache=True, memory=memory))
        return Scores(None, chosen, text, torch.device("cpu")).adapted(model, "valid")

    usual, other = cached(None), cached(8)
    assert usual != other
    model.memory = 8
    assert cached(None) == other


def test_no_gradient_reaches_the_memory() -> None:
    model, ids = made(memory=4), tokens(8)
    state = model(ids[:4]).state
    assert not any(part.requires_grad for part in state)
    model(ids[4:], state).raw.sum().backward()
    untouched = set(range(N)) - set(ids[4:].flatten().tolist())
    assert not model.embedding.weight.grad[sorted(untouched)].any()


def test_settings_that_make_no_sense() -> None:
    for settings in (
        {"heads": 3},
        {"memory": -1},
        {"memory": 1.5},
        {"d": 9, "heads": 3},
    ):
        with refusal(BadOption):
            TransformerXL(N, **{"d": D, "heads": HEADS, **settings})


def test_other_models_have_no_memory() -> None:
    for own in ({"memory": 9}, {"clamp": 9}, {"same_length": True}):
        settings = EvaluationSettings(**own)
        with refusal(BadOption):
            resolve_windows(settings, 20, Transformer)
        assert resolve_windows(settings, 20, TransformerXL).bptt == 20


def test_weight_decay_leaves_its_biases_out() -> None:
    model = made()
    spared = next(
        group for group in parameter_groups(model, ()) if group.get("weight_decay") == 0.0
    )
    kept = {id(parameter) for parameter in spared["params"]}
    assert {id(model.content_bias), id(model.distance_bias)} <= kept

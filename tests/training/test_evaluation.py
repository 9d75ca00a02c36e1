"""Evaluation in `embgeo train`, against slow and obvious twins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.evaluation.continuous_cache import (  # noqa: E402
    PUBLISHED_CACHES,
    CacheSettings,
    continuous_cache,
)
from embgeo.training.evaluation.dynamic import (  # noqa: E402
    PUBLISHED_DYNAMIC,
    DynamicSettings,
    dynamic_evaluation,
)
from embgeo.training.evaluation.perplexity import (  # noqa: E402
    TokenSubset,
    perplexity,
)
from embgeo.training.methods import popular_rows  # noqa: E402
from embgeo.training.models import AwdLstm, LanguageModel, Output, Transformer  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.sampling import each_value  # noqa: E402

N = 23


def lstm(seed: int = 0) -> AwdLstm:
    """Weights far larger than usual, so that states and probabilities differ widely."""
    torch.manual_seed(seed)
    model = AwdLstm(N, d=8, hidden=10, layers=2)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4.0)
    return model.double()


def text(tokens: int = 120, seed: int = 0) -> Any:
    """Rows with repetitions, as a cache needs them."""
    generator = np.random.default_rng(seed)
    return np.where(
        generator.random(tokens) < 0.5, generator.integers(0, 3, tokens),
        generator.integers(0, N, tokens),
    )  # fmt: skip


def mask_popular() -> Tensor:
    """The first fifth of the rows, which are the most frequent."""
    return popular_rows(torch.arange(N, 0, -1))


class Scripted(LanguageModel):
    """Logits that depend on nothing but the time, which is the state."""

    def __init__(self, script: Tensor) -> None:
        super().__init__(script.shape[1], 1, embedding_dropout=0.0)
        self.script = script

    def initial_state(self, batch: int) -> Tensor:
        return torch.zeros(batch)

    def forward(self, inputs: Tensor, state: Any = None) -> Output:
        time = self.initial_state(inputs.shape[1]) if state is None else state
        times = time + torch.arange(len(inputs))[:, None]
        return Output(times[..., None], times[..., None], time + len(inputs))

    def head(self, hidden: Tensor) -> Tensor:
        return self.script[hidden[..., 0].long()]


def token_by_token(model: AwdLstm, rows: Any) -> list[float]:
    """−log p of each token after the first, in one go through the split."""
    model.eval()
    with torch.no_grad():
        output = model(torch.from_numpy(rows[:-1])[:, None])
        log_p = F.log_softmax(model.head(output.hidden[:, 0]).double(), -1)
    model.train()
    return [-float(log_p[t, rows[t + 1]]) for t in range(len(rows) - 1)]


@pytest.mark.parametrize("batch", [1, 4])
def test_windows_are_in_the_order_of_the_text(batch: int) -> None:
    """Each of them is scored as the tokens at its place are, with the state of its stream."""
    rows = text(61)
    script = torch.from_numpy(np.random.default_rng(1).normal(size=(61, N)))
    found = perplexity(Scripted(script), rows, batch=batch, bptt=6)
    assert sum(window.tokens for window in found.windows) == 60
    assert sum(window.total for window in found.windows) == pytest.approx(found.all.total)
    length = 60 // batch
    expected = []
    for stream in range(batch):
        for start in range(0, length, 6):
            times = range(start, min(start + 6, length))
            log_p = F.log_softmax(script[list(times)], -1)
            targets = [int(rows[1 + stream * length + t]) for t in times]
            expected.append(-sum(float(log_p[i, w]) for i, w in enumerate(targets)))
    assert [window.total for window in found.windows] == pytest.approx(expected)


# --- Perplexity -------------------------------------------------------------------------------


def test_a_uniform_model_has_a_perplexity_of_as_many_as_there_are_types() -> None:
    for types in (2, 23, 10_000, 33_278):
        rows = np.arange(300) % types
        found = perplexity(Scripted(torch.full((300, types), 7.0)), rows, bptt=11)
        assert found.all.perplexity == pytest.approx(types, rel=1e-13)
        assert found.all.loss == pytest.approx(math.log(types), rel=1e-14)
        assert found.all.tokens == 299


def test_a_model_that_excludes_a_token_has_infinity() -> None:
    script = torch.zeros(10, N)
    script[:, 5] = -torch.inf
    assert perplexity(Scripted(script), np.full(10, 5)).all.perplexity == math.inf
    assert TokenSubset(1e6, 10).perplexity == math.inf
    assert math.isnan(TokenSubset(math.nan, 10).perplexity or 0.0)


def test_windows_of_a_transformer_stand_alone() -> None:
    torch.manual_seed(0)
    model, rows = Transformer(N, d=8, layers=1, heads=2).double(), text(41)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8.0)
    apart = [perplexity(model, rows[start : start + 11]).all.total for start in range(0, 40, 10)]
    found = perplexity(model, rows, bptt=10)
    assert found.all.total == pytest.approx(sum(apart), rel=1e-12)
    assert found.all.tokens == 40


@each_value
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("stride", [1, 4, 10])
def test_overlapping_windows_score_each_token_once_with_its_context(
    stride: int, batch: int
) -> None:
    torch.manual_seed(0)
    model, rows = Transformer(N, d=8, layers=1, heads=2).double().eval(), text(41)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8.0)
        slow = []
        length = -(-40 // batch)
        for begin in range(0, 40, length):
            places = range(begin, min(begin + length, 40))
            for start in places[::stride]:
                # The window ends with this stride, also where the stream does not reach so far.
                stop = start + stride
                first = max(begin, stop - 10)
                part = torch.from_numpy(rows[first : min(stop, 40)])[:, None]
                log_p = F.log_softmax(model.head(model(part).hidden[:, 0]), -1)
                slow += [
                    -float(log_p[t - first, rows[t + 1]])
                    for t in range(start, min(stop, places.stop))
                ]
    found = perplexity(model, rows, bptt=10, stride=stride, batch=batch)
    assert found.all.tokens == 40 == len(slow)
    assert found.all.total == pytest.approx(sum(slow), rel=1e-12)


def test_each_token_after_the_first_is_predicted_once() -> None:
    """Streams start without a state, and from the last token of the stream before."""
    for batch in (1, 2, 3, 7, 118, 119, 1000):
        model, rows = lstm(), text()
        found = perplexity(model, rows, batch=batch, bptt=9)
        assert found.all.tokens == len(rows) - 1
        length = -(-(len(rows) - 1) // batch)
        slow = [
            loss
            for start in range(0, len(rows) - 1, length)
            for loss in token_by_token(model, rows[start : start + length + 1])
        ]
        assert found.all.total == pytest.approx(sum(slow), rel=1e-12)
        expected = math.exp(sum(slow) / len(slow))
        assert found.all.perplexity == pytest.approx(expected, rel=1e-12)


def test_rare_and_popular_targets_are_told_apart() -> None:
    model, rows = lstm(), text()
    slow = np.array(token_by_token(model, rows))
    popular = rows[1:] < round(0.2 * N)
    found = perplexity(model, rows, popular=mask_popular(), bptt=13, batch=1)
    assert found.popular.perplexity == pytest.approx(math.exp(slow[popular].mean()), rel=1e-12)
    assert found.rare.perplexity == pytest.approx(math.exp(slow[~popular].mean()), rel=1e-12)
    assert found.popular.tokens + found.rare.tokens == found.all.tokens
    total = found.popular.total + found.rare.total
    assert found.all.total == pytest.approx(total, rel=1e-14)
    mask = torch.arange(N) == 2
    other = perplexity(model, rows, popular=mask)
    assert other.popular.perplexity == pytest.approx(
        math.exp(slow[rows[1:] == 2].mean()), rel=1e-12
    )


def test_a_class_without_targets_has_no_perplexity() -> None:
    rows = np.zeros(9, dtype=np.int64)
    found = perplexity(lstm(), rows, popular=mask_popular())
    assert found.rare.perplexity is None
    assert found.popular.perplexity == pytest.approx(found.all.perplexity)
    unknown = perplexity(lstm(), rows)
    assert unknown.rare.perplexity is unknown.popular.perplexity is None


def test_the_mode_of_the_model_is_left_as_it_was() -> None:
    model = lstm()
    for training in (True, False):
        model.train(training)
        perplexity(model, text())
        assert all(module.training == training for module in model.modules())
    with pytest.raises(BadOption):
        perplexity(model.train(), text(), bptt=0)
    assert model.training


def test_what_is_too_short_or_makes_no_sense() -> None:
    for rows, options in ((text(1), {}), (text(), {"batch": 0}), (text(), {"bptt": -1})):
        with refusal(BadOption):
            perplexity(lstm(), rows, **options)


# --- Continuous cache -------------------------------------------------------------------------


def cached(model: AwdLstm, rows: Any, settings: CacheSettings) -> list[float]:
    """The cache by its definition, one token after the other, over all types."""
    model.eval()
    with torch.no_grad():
        output = model(torch.from_numpy(rows[:-1])[:, None])
        own = F.softmax(model.head(output.hidden[:, 0]).double(), -1).numpy()
        states = output.raw[:, 0].double().numpy()
    losses = []
    for now in range(len(rows) - 1):
        p = own[now].copy()
        past = range(max(0, now - settings.window), now)
        if past:
            mass = np.zeros(N)
            for then in past:
                mass[rows[then + 1]] += math.exp(settings.theta * float(states[now] @ states[then]))
            p = (1 - settings.weight) * p + settings.weight * mass / mass.sum()
            assert p.sum() == pytest.approx(1.0)
        losses.append(-math.log(p[rows[now + 1]]))
    return losses


@each_value
@pytest.mark.parametrize("window", [1, 5, 40, 1000])
@pytest.mark.parametrize("bptt", [1, 7, 200])
@pytest.mark.slow
def test_a_cache_is_what_its_definition_says(window: int, bptt: int) -> None:
    model, rows, settings = lstm(), text(), CacheSettings(window, theta=1.5, weight=0.3)
    slow = np.array(cached(model, rows, settings))
    found = continuous_cache(model, rows, settings=settings, bptt=bptt)
    assert found.all.tokens == len(rows) - 1
    assert found.all.total == pytest.approx(slow.sum(), rel=1e-11)


def test_published_settings() -> None:
    assert PUBLISHED_CACHES["wikitext-2"] == CacheSettings(3785, 0.662, 0.1279) == CacheSettings()
    assert PUBLISHED_CACHES["ptb"] == CacheSettings(500, 1.0, 0.1)
    assert (
        PUBLISHED_DYNAMIC["wikitext-2"]
        == DynamicSettings(bptt=5, lr=0.002, decay=0.02)
        == DynamicSettings()
    )
    assert PUBLISHED_DYNAMIC["ptb"].decay == 0.075


# --- Dynamic evaluation -----------------------------------------------------------------------


def adapted(model: AwdLstm, rows: Any, training: Any, settings: DynamicSettings) -> float:
    """Sum of losses, by the published rule with sums of squares, in numpy."""
    model.eval()
    weights = list(model.parameters())

    def losses_and_gradients(inputs: Tensor, targets: Tensor, state: Any) -> Any:
        model.zero_grad()
        output = model(inputs, state)
        losses = F.cross_entropy(
            model.head(output.hidden).flatten(0, 1), targets.flatten(), reduction="none"
        )
        losses.mean().backward()
        state = tuple(tuple(part.detach() for part in layer) for layer in output.state)
        return losses.detach(), [weight.grad.numpy().copy() for weight in weights], state

    sources, goals = (
        torch.from_numpy(part).view(settings.batch, -1).T for part in (training[:-1], training[1:])
    )
    starts = range(0, len(sources), settings.bptt)
    squares: list[Any] = [0.0 for _ in weights]
    state = None
    for start in starts:
        window = slice(start, start + settings.bptt)
        _, gradients, state = losses_and_gradients(sources[window], goals[window], state)
        squares = [total + g**2 for total, g in zip(squares, gradients, strict=True)]
    windows = len(starts)
    summed = [np.sqrt(total) for total in squares]
    root = [np.sqrt(total / windows) for total in squares]
    relative = [size / np.mean([r.mean() for r in root]) for size in root]
    trained = [weight.detach().numpy().copy() for weight in weights]

    total, state = 0.0, None
    for start in range(0, len(rows) - 1, settings.bptt):
        segment = torch.from_numpy(rows[start : start + settings.bptt + 1])[:, None]
        losses, gradients, state = losses_and_gradients(segment[:-1], segment[1:], state)
        total += float(losses.sum())
        with torch.no_grad():
            for k, weight in enumerate(weights):
                now = weight.numpy().copy()
                pull = np.minimum(settings.decay / len(weights) * relative[k], 1.0)
                step = settings.lr * gradients[k] / (summed[k] + settings.epsilon)
                weight.copy_(torch.from_numpy(now - step + pull * (trained[k] - now)))
    return total


@pytest.mark.slow
def test_dynamic_evaluation_is_what_was_published() -> None:
    for decay in (0.0, 0.5, 30.0):
        settings = DynamicSettings(bptt=4, lr=0.05, decay=decay, epsilon=0.01, batch=3)
        training, rows = text(3 * 41 + 1, seed=1), text(60)
        found = dynamic_evaluation(lstm(), rows, training, settings=settings)
        assert found.all.total == pytest.approx(
            adapted(lstm(), rows, training, settings), rel=1e-10
        )
        assert found.all.tokens == 59
        assert found.all.perplexity != pytest.approx(
            perplexity(lstm(), rows).all.perplexity, rel=1e-3
        )


def test_the_model_is_as_it_was_before_also_after_an_error() -> None:
    model = lstm()
    model.decoder.weight.grad = torch.ones(N, 8, dtype=torch.float64)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    dynamic_evaluation(model, text(), text(400, seed=1))
    seen = 0

    def fail(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == 30:
            raise KeyboardInterrupt

    handle = model.decoder.register_forward_hook(fail)
    with pytest.raises(KeyboardInterrupt):
        dynamic_evaluation(model, text(400), text(40, seed=1), settings=DynamicSettings(lr=9.0))
    handle.remove()
    assert model.training
    assert torch.backends.cudnn.enabled
    assert bool((model.decoder.weight.grad == 1.0).all())
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, before[name])


def test_weights_that_are_not_used_or_not_trained_stay_out() -> None:
    model, rows = lstm(), text()
    expected = dynamic_evaluation(
        model, rows, text(400, seed=1), settings=DynamicSettings(decay=0.0)
    )
    model.register_parameter("unused", torch.nn.Parameter(torch.ones(3, dtype=torch.float64)))
    found = dynamic_evaluation(model, rows, text(400, seed=1), settings=DynamicSettings(decay=0.0))
    assert found.all.total == pytest.approx(expected.all.total, rel=1e-12)
    for weight in model.embedding.parameters():
        weight.requires_grad_(False)
    frozen = dynamic_evaluation(model, rows, text(400, seed=1), settings=DynamicSettings(decay=0.0))
    assert frozen.all.total != found.all.total

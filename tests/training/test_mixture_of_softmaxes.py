"""A mixture of softmaxes against loops over contexts, softmaxes and tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.evaluation.scores import Scores  # noqa: E402
from embgeo.training.loop.check import check_study  # noqa: E402
from embgeo.training.loop.facts import list_deviations  # noqa: E402
from embgeo.training.models import build  # noqa: E402
from embgeo.training.models.mixture_of_softmaxes import (  # noqa: E402
    MixedLogSoftmax,
    MixtureOfSoftmaxes,
)
from embgeo.training.sections import EvaluationSettings  # noqa: E402
from embgeo.training.settings import StudySettings  # noqa: E402
from embgeo.training.tasks.language_model import cross_entropy, cross_entropy_in_parts  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.training_runs import LSTM, corpus, settings, trainer_of  # noqa: E402

N, D, K, LAST = 13, 4, 3, 6


def made(experts: int = K, **changes: Any) -> Any:
    torch.manual_seed(0)
    own = {"d": D, "hidden": 5, "layers": 2, "experts": experts, "last": LAST, **changes}
    model = build("awd-lstm", N, {key: value for key, value in own.items() if value is not None})
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model.double().eval()


def slow(model: Any, h: list[float]) -> list[float]:
    """p of each token for one state, by plain numbers."""
    mixture, decoder = model.mixture, model.decoder
    scores = [math.fsum(a * b for a, b in zip(row, h, strict=True)) for row in mixture.prior.weight]
    prior = [math.exp(s) / math.fsum(math.exp(t) for t in scores) for s in scores]
    p = [0.0] * N
    for k in range(K):
        rows = slice(k * D, (k + 1) * D)
        latent = [
            math.tanh(math.fsum(a * b for a, b in zip(row, h, strict=True)) + shift)
            for row, shift in zip(
                mixture.latent.weight[rows].tolist(),
                mixture.latent.bias[rows].tolist(),
                strict=True,
            )
        ]
        z = [
            math.fsum(a * b for a, b in zip(row, latent, strict=True)) + shift
            for row, shift in zip(decoder.weight.tolist(), decoder.bias.tolist(), strict=True)
        ]
        total = math.fsum(math.exp(x) for x in z)
        p = [before + prior[k] * math.exp(x) / total for before, x in zip(p, z, strict=True)]
    return p


@torch.no_grad()
def test_probabilities_equal_loops() -> None:
    model = made()
    states = torch.randn(2, 3, LAST, dtype=torch.float64)
    p = model.head(states).exp()
    torch.testing.assert_close(p.sum(-1), torch.ones(2, 3, dtype=torch.float64))
    for place in np.ndindex(2, 3):
        expected = torch.tensor(slow(model, states[place].tolist()), dtype=torch.float64)
        torch.testing.assert_close(p[place], expected)


def test_a_softmax_that_the_mixture_has_left_keeps_gradients_finite() -> None:
    for gap in (60.0, 95.0, 110.0, 300.0):
        torch.manual_seed(0)
        logits, score = torch.randn(2, 2, 7), torch.tensor([[0.0, -gap]] * 2)
        weights, found = torch.randn(2, 7), []
        for dtype in (torch.float32, torch.float64):
            z, s = (part.to(dtype, copy=True).requires_grad_() for part in (logits, score))
            ln_prior = s.log_softmax(-1)
            if dtype == torch.float32:
                ln_p = MixedLogSoftmax.apply(z, ln_prior)
            else:
                ln_p = (z.log_softmax(-1) + ln_prior.unsqueeze(-1)).logsumexp(-2)
            (ln_p * weights).sum().backward()
            found.append((z.grad.double(), s.grad.double()))
        torch.testing.assert_close(*found, rtol=0.0, atol=1e-6)


def test_gradients_equal_differences() -> None:
    logits = torch.randn(2, K, 5, dtype=torch.float64, requires_grad=True)
    prior = torch.randn(2, K, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda z, s: MixedLogSoftmax.apply(z, s.log_softmax(-1)), (logits, prior)
    )


def test_probabilities_below_the_smallest_number() -> None:
    """Softmaxes that are underflow in float32 have logarithms."""
    logits = torch.tensor([[[0.0, -300.0], [0.0, -200.0]]], requires_grad=True)
    ln_p = MixedLogSoftmax.apply(logits, torch.tensor([[0.5, 0.5]]).log())
    torch.testing.assert_close(ln_p.detach(), torch.tensor([[0.0, -200.0 - math.log(2.0)]]))
    ln_p[0, 1].backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.tensor([[[0.0, 0.0], [-1.0, 1.0]]]))


def test_parts_of_a_window_have_the_loss_of_the_whole() -> None:
    model = made()
    states = torch.randn(5, 2, LAST, dtype=torch.float64)
    targets = torch.randint(0, N, (5, 2))
    found = []
    for loss in (
        cross_entropy(model.head(states), targets),
        cross_entropy_in_parts(lambda hidden, _: model.head(hidden), states, targets, 3)[0],
    ):
        model.zero_grad()
        loss.backward()
        found.append([loss.detach(), *(p.grad for p in model.mixture.parameters())])
    torch.testing.assert_close(*found)
    assert model.logits_per_state == 2 * K * N


def test_a_mixture_is_evaluated_dynamically() -> None:
    torch.manual_seed(0)
    text = corpus()
    model = build("awd-lstm", len(text.vocabulary), {"d": 2, "layers": 1, "experts": 2})
    chosen = StudySettings(evaluation=EvaluationSettings(dynamic=True))
    found = Scores(None, chosen, text, torch.device("cpu")).adapted(model, "valid")
    assert math.isfinite(found["dynamic"] or math.nan)


def test_a_run_says_how_its_mixture_deviates() -> None:
    mixed, plain = (
        set(list_deviations(one.method, one.model, one.config.model))
        for one in (
            trainer_of(settings("frage", model=model)) for model in ({**LSTM, "experts": 2}, LSTM)
        )
    )
    assert mixed - plain == set(MixtureOfSoftmaxes.DEVIATIONS)


def test_a_comparison_with_a_method_of_one_softmax_is_refused_before_it_trains() -> None:
    config = settings("adversarial", model={**LSTM, "experts": 2})
    with refusal(BadOption):
        check_study(config, corpus())


def test_a_penalty_of_logits_that_is_zero_is_refused() -> None:
    config = settings(model={**LSTM, "experts": 2}, task={"name": "lm", "z_loss": 0.1})
    with refusal(BadOption):
        check_study(config, corpus())


def test_settings_that_make_no_sense() -> None:
    for changes in (
        {"experts": 0},
        {"experts": 2, "last": 0},
        {"experts": 2, "latent_dropout": 1.0},
        {"last": 4},
        {"latent_dropout": 0.1},
    ):
        with refusal(BadOption):
            build("awd-lstm", N, {"d": D, **changes})

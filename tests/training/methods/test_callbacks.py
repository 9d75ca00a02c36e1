"""Callbacks with trainers that only look like the real ones, called in their order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.methods import AugmentedLoss, CosReg, Frage, SpectrumControl  # noqa: E402
from embgeo.training.methods.callbacks import (  # noqa: E402
    LightningRegularizer,
    TrainerRegularizer,
)
from tests.support.language_model import N, discriminator_loss, make_model  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402


def optimizer_of(model: Any) -> Any:
    return torch.optim.SGD(model.parameters(), lr=0.25)


def with_gradients(model: Any) -> Any:
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    return model


@pytest.mark.slow
def test_transformers_adds_the_gradient_and_then_steps() -> None:
    model = with_gradients(make_model())
    cosreg, frage = CosReg(model.head), Frage(model.embed, torch.arange(N) < 12)
    callback = TrainerRegularizer(cosreg, frage)
    weight = model.head.weight
    expected = 1.0 + torch.autograd.grad(cosreg() + frage(), weight)[0]
    callback.on_pre_optimizer_step(None, None, None, model=model, optimizer=optimizer_of(model))
    assert torch.allclose(weight.grad, expected)
    assert callback.values["cosreg"].item() == cosreg().item()
    before = discriminator_loss(frage)
    callback.on_optimizer_step(None, None, None)
    assert discriminator_loss(frage) < before


def test_the_learning_rate_is_that_of_the_step() -> None:
    model = make_model()
    reg = SpectrumControl.attach(model, sgd=True)
    callback = TrainerRegularizer(reg)
    optimizer = optimizer_of(model)
    sigma = reg.embedding.singular_values().detach()
    callback.on_pre_optimizer_step(None, None, None, optimizer=optimizer)
    optimizer.param_groups[0]["lr"] = 0.0  # as a schedule would
    callback.on_optimizer_step(None, None, None)
    pull = 2.0 * 0.25 * float(reg.embedding.scale) ** 2
    expected = (sigma + pull * reg.goal()) / (1.0 + pull)
    assert torch.allclose(reg.embedding.singular_values(), expected, rtol=1e-4)


def test_lightning_steps_only_where_the_optimizer_did() -> None:
    model = with_gradients(make_model())
    frage = Frage(model.embed, torch.arange(N) < 12)
    callback = LightningRegularizer(frage)
    trainer = SimpleNamespace()
    first = discriminator_loss(frage)
    callback.on_train_batch_end(trainer, model, None, None, 0)
    assert discriminator_loss(frage) == first
    callback.on_before_optimizer_step(trainer, model, optimizer_of(model))
    callback.on_train_batch_end(trainer, model, None, None, 1)
    second = discriminator_loss(frage)
    assert second < first
    callback.on_train_batch_end(trainer, model, None, None, 2)
    assert discriminator_loss(frage) == second


def test_an_optimizer_of_other_parameters_is_left_alone() -> None:
    model = with_gradients(make_model())
    callback = LightningRegularizer(CosReg(model.head, gamma=1e3))
    other = torch.optim.SGD(model.rnn.parameters(), lr=0.1)
    callback.on_before_optimizer_step(None, model, other)
    assert torch.equal(model.head.weight.grad, torch.ones_like(model.head.weight))


@pytest.mark.parametrize("kind", [TrainerRegularizer, LightningRegularizer])
def test_what_a_callback_cannot_do(kind: Any) -> None:
    with refusal(BadOption):
        kind(AugmentedLoss(make_model().embed))
    with refusal(BadOption):
        kind()

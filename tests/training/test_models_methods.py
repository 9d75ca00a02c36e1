"""Every method on every model."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.methods import (  # noqa: E402
    REGULARIZERS,
    AdversarialSoftmax,
    AugmentedLoss,
    Combined,
    FactoredEmbedding,
    FactoredHead,
    Regularizer,
    Setup,
    SpectrumControl,
    Step,
    Tying,
    make_plain,
)
from embgeo.training.models import build, detach  # noqa: E402
from embgeo.training.optimization.optimizers import apply_factor, build_optimizer, parameter_groups  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.sampling import each_value, sample_cases  # noqa: E402

N, D, T, B = 30, 8, 6, 3

SMALL: dict[str, dict[str, Any]] = {
    "awd-lstm": {"d": D, "hidden": 12},
    "mixture": {"d": D, "hidden": 12, "experts": 2, "last": 10},
    "vd-lstm": {"d": D, "hidden": 10},
    "vd-rhn": {"d": D, "depth": 3, "input_dropout": 0.2, "output_dropout": 0.2},
    "transformer": {"d": D, "layers": 2, "heads": 2, "bias": True},
    "transformer-xl": {"d": D, "layers": 1, "heads": 2, "feedforward": 16, "memory": 4},
}
METHODS: list[Any] = [method for method in REGULARIZERS if issubclass(method, Regularizer)]
COUNTS = (1000.0 / torch.arange(1, N + 1)).round()

each_model = pytest.mark.parametrize("name", SMALL)
each_tying = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: m.NAME)


def made(name: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    kind = "awd-lstm" if name == "mixture" else name
    dropped = {"embedding_dropout": 0.3} if kind in ("awd-lstm", "vd-rhn") else {}
    return build(kind, N, {**SMALL[name], **dropped, **settings})


def windows(number: int) -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.multinomial(COUNTS, number * (T + 1) * B, True, generator=generator)
    return list(drawn.view(number, T + 1, B))


def train(model: Any, reg: Any, kind: str = "adamw", lr: float = 0.01, number: int = 5) -> Any:
    """The loop as it is documented; gives the losses."""
    groups = parameter_groups(model, reg.parameter_groups())
    optimizer = build_optimizer(kind, groups, {"lr": lr})
    losses, state = [], None
    for ids in windows(number):
        output = model(ids[:-1], state)
        state = detach(output.state)
        step = Step(output.hidden, model.head(output.hidden), ids[1:], ids[:-1])
        step.logits = reg.logits(step)
        assert step.logits is not None
        ce = F.cross_entropy(step.logits.flatten(0, 1), ids[1:].flatten())
        loss = ce + model.activation_penalty(output) + reg(step)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        rate = apply_factor(optimizer, 1.0)
        optimizer.step()
        reg.after_step(rate)
        losses.append(loss.detach())
    return torch.stack(losses)


@each_value
@each_model
@each_tying
@each_method
@pytest.mark.parametrize("kind", sample_cases(["adamw", "sgd"], 2))
@pytest.mark.slow
def test_methods_train(name: str, tied: bool, method: Any, kind: str) -> None:
    model = made(name, tied=tied)
    if name == "mixture" and method is AdversarialSoftmax:
        with refusal(BadOption):
            method.attach(model)
        return
    reg = method.attach(model, Setup(counts=COUNTS, sgd=kind == "sgd"))
    before = model.get_output_embeddings().weight.detach().clone()
    assert torch.isfinite(train(model, reg, kind, lr=0.01 if kind == "adamw" else 1.0)).all()
    after = model.get_output_embeddings().weight.detach()
    assert torch.isfinite(after).all()
    assert not torch.equal(before, after)
    make_plain(model)
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    assert isinstance(embedding, torch.nn.Embedding)
    assert isinstance(head, torch.nn.Linear)
    assert torch.allclose(head.weight, after, atol=1e-6)
    assert (head.weight is embedding.weight) == (tied or method is Tying)


@each_model
@each_tying
def test_factors_make_the_same_model(name: str, tied: bool) -> None:
    model = made(name, tied=tied).eval()
    ids = windows(1)[0]
    plain = model.head(model(ids).hidden)
    names = set(model.state_dict())
    SpectrumControl.attach(model)
    model.eval()
    assert isinstance(model.get_output_embeddings(), FactoredHead)
    assert isinstance(model.get_input_embeddings(), FactoredEmbedding) == tied
    assert torch.allclose(model.head(model(ids).hidden), plain, atol=1e-5)
    model.load_state_dict(model.state_dict())
    make_plain(model)
    assert torch.allclose(model.head(model(ids).hidden), plain, atol=1e-5)
    assert set(model.state_dict()) == names


@pytest.mark.parametrize("name", ["awd-lstm", "vd-rhn"])
def test_rows_of_factors_are_dropped_like_plain_ones(name: str) -> None:
    """The same draw drops the same tokens, and W is not multiplied out."""
    plain, factored = made(name, embedding_dropout=0.5), made(name, embedding_dropout=0.5)
    SpectrumControl.attach(factored)
    ids = windows(1)[0]
    hidden = []
    for model in (plain, factored):
        torch.manual_seed(1)
        hidden.append(model(ids).hidden)
    assert torch.allclose(*hidden, atol=1e-5)
    with torch.no_grad():
        undropped = factored.eval()(ids).hidden
    assert not torch.allclose(hidden[1], undropped, atol=1e-3)


@each_model
def test_w_is_never_multiplied_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(name)
    reg = SpectrumControl.attach(model)

    def refused(_self: Any) -> Any:
        raise AssertionError("W was multiplied out")

    monkeypatch.setattr(FactoredEmbedding, "weight", property(refused))
    assert torch.isfinite(train(model, reg, number=2)).all()


@each_model
def test_real_is_tying_and_the_augmented_loss(name: str) -> None:
    model = made(name, tied=False)
    reg = Combined([Tying.attach(model), AugmentedLoss.attach(model)])
    assert model.get_output_embeddings().bias is None
    losses = train(model, reg)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert torch.isfinite(losses).all()

"""Regularizers: the interface that all of them keep, and those that act on plain rows."""

from __future__ import annotations

import copy
import subprocess
import sys
from inspect import signature
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

import embgeo  # noqa: E402
from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.methods import METHODS as CATALOG  # noqa: E402
from embgeo.training.methods import (  # noqa: E402
    REGULARIZERS,
    AugmentedLoss,
    Combined,
    CosReg,
    Frage,
    Regularizer,
    Setup,
    Step,
    Tying,
    WeightRegularizer,
    popular_rows,
)
from embgeo.training.methods.frage import class_loss, rebalance  # noqa: E402
from embgeo.training.methods.method import attach_method  # noqa: E402
from tests.support.language_model import D, N, batches, counts, discriminator_loss, make_model  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402

METHODS: list[Any] = [m for m in REGULARIZERS if issubclass(m, Regularizer)]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: m.NAME)


def rows(n: int = 9, d: int = 4, seed: int = 0, dtype: Any = torch.float64) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator, dtype=dtype).requires_grad_()


def mask(n: int, popular: int) -> Any:
    return torch.arange(n) < popular


# --- The interface ----------------------------------------------------------------------------


SETUP = Setup(counts=counts(), ignore_rows=(N - 1,))


def step_of(model: Any, reg: Any, batch: Any) -> Any:
    """A step and its loss, as the loop in the interface's description makes them."""
    inputs, targets = batch
    hidden = model.hidden(inputs)
    step = Step(hidden, model.head(hidden), targets, inputs)
    step.logits = reg.logits(step)
    return step, F.cross_entropy(step.logits.flatten(0, 1), targets.flatten()) + reg(step)


def go_on(model: Any, reg: Any, data: Any) -> None:
    groups = reg.parameter_groups()
    own = {id(p) for group in groups for p in group["params"]}
    groups.append({"params": [p for p in model.parameters() if id(p) not in own]})
    optimizer = torch.optim.AdamW(groups, lr=3e-3)
    for batch in data:
        _, loss = step_of(model, reg, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        reg.after_step(3e-3)


@each_method
def test_nothing_of_the_model_belongs_to_the_method(method: Any) -> None:
    model = make_model()
    reg = method.attach(model, SETUP)
    theirs = {id(p) for p in model.parameters()}
    assert not theirs & {id(p) for p in reg.parameters()}
    storages = {p.untyped_storage().data_ptr() for p in model.parameters()}
    for value in reg.state_dict().values():
        if isinstance(value, torch.Tensor):
            assert value.untyped_storage().data_ptr() not in storages


@each_method
def test_a_copy_of_model_and_method_is_independent(method: Any) -> None:
    model = make_model()
    reg = method.attach(model, SETUP)
    go_on(model, reg, batches(3))
    reg.eval()  # a power iteration stands still
    model_2, reg_2 = copy.deepcopy((model, reg))
    batch = batches(1, seed=9)[0]
    before = float(step_of(model, reg, batch)[1].detach())
    go_on(model_2, reg_2, batches(5))
    assert float(step_of(model, reg, batch)[1].detach()) == before
    assert float(step_of(model_2, reg_2, batch)[1].detach()) != before


@each_method
def test_what_is_missing_is_named(method: Any) -> None:
    reg = method.attach(make_model(), SETUP)
    if not reg.NEEDS:
        assert reg().ndim == 0
        return
    with refusal(BadOption):
        reg()
    with refusal(BadOption):
        reg.add_gradient()


def test_gradients_beside_the_loss_are_those_inside_of_it() -> None:
    for method in [m for m in METHODS if not m.NEEDS]:
        reg = method.attach(make_model(), SETUP)
        reg.eval()  # a power iteration stands still
        weights = reg.acts_on()
        for weight in weights:
            weight.grad = None
        value = reg()
        if weights:
            value.backward()
        inside = [0.0 if weight.grad is None else weight.grad.clone() for weight in weights]
        assert float(reg.add_gradient(scale=0.5)) == float(value.detach())
        for weight, before in zip(weights, inside, strict=True):
            assert weight.grad is None or torch.allclose(weight.grad, 1.5 * before)
        for weight in weights:
            weight.grad = None
        reg.add_gradient()
        for weight, before in zip(weights, inside, strict=True):
            assert weight.grad is None or torch.equal(weight.grad, before)


def test_a_weight_that_is_computed_gets_no_gradient_in_silence() -> None:
    W = rows()
    with refusal(BadOption):
        CosReg(lambda: 2.0 * W).add_gradient()


def test_a_frozen_embedding_gets_none() -> None:
    W = rows().detach()
    assert CosReg(W).add_gradient().ndim == 0
    assert W.grad is None


def test_a_source_may_be_a_module_a_tensor_or_a_function() -> None:
    model = make_model()
    values = {
        float(CosReg(source)().detach())
        for source in (model.head, model.head.weight, lambda: model.head.weight)
    }
    assert len(values) == 1


def test_a_regularizer_of_ones_own_sees_the_layer_of_its_role() -> None:
    class MeanSquare(WeightRegularizer):
        NAME = "mean-square"
        ROLE = "input"

        def penalty(self, step: Step) -> Any:  # noqa: ARG002
            return self.weight().square().mean()

    model = make_model()
    model.head.weight = torch.nn.Parameter(torch.ones(N, D))
    reg, W = MeanSquare.attach(model), model.get_input_embeddings().weight
    torch.testing.assert_close(reg.add_gradient(), W.detach().square().mean())
    torch.testing.assert_close(W.grad, 2.0 * W.detach() / W.numel())


def test_help_shows_the_settings_with_their_defaults() -> None:
    shown = signature(CosReg).parameters
    assert [*shown] == ["source", "ignore_rows", "gamma"]
    assert shown["gamma"].default == CosReg(torch.ones(2, 3)).gamma

    class Own(CosReg):
        def __init__(self, source: Any, *, power: float = 2.0, **settings: Any) -> None:
            super().__init__(source, **settings)
            self.power = power

    assert [*signature(Own).parameters] == ["source", "power", "gamma"]


def test_what_has_no_rows() -> None:
    for source in (torch.nn.ReLU(), torch.zeros(3), lambda: None):
        with pytest.raises(BadOption):
            CosReg(source)


def test_a_model_without_an_output_layer() -> None:
    with refusal(BadOption):
        CosReg.attach(torch.nn.Linear(2, 2))


def test_the_method_follows_a_weight_that_is_replaced() -> None:
    model = make_model()
    reg = CosReg(model.head)
    before = float(reg().detach())
    model.head.weight = torch.nn.Parameter(torch.ones(N, D))
    assert float(reg().detach()) == pytest.approx(1.0 - 1.0 / N, rel=1e-5) != before


# --- CosReg -----------------------------------------------------------------------------------


def obvious(W: Any, gamma: float = 1.0) -> Any:
    unit = W / W.norm(dim=1, keepdim=True)
    cosines = unit @ unit.T
    return gamma * (cosines.sum() - cosines.diagonal().sum()) / len(W) ** 2


def test_cosreg_is_the_sum_over_pairs() -> None:
    W = rows()
    value = CosReg(W, gamma=0.7)()
    assert value.item() == pytest.approx(obvious(W, 0.7).item(), rel=1e-12)
    (found,) = torch.autograd.grad(value, W)
    (expected,) = torch.autograd.grad(obvious(W, 0.7), W)
    assert torch.allclose(found, expected, rtol=1e-10, atol=1e-15)


def test_cosreg_is_attached_with_the_rows_that_are_left_out() -> None:
    model = make_model()
    W = model.get_output_embeddings().weight
    reg = CosReg.attach(model, Setup(ignore_rows=(N - 1,)))
    expected = CosReg(W, ignore_rows=[N - 1])()
    assert reg().item() == expected.item() != CosReg(W)().item()


def test_cosreg_is_what_an_analysis_says() -> None:
    W = rows(200, 12, dtype=torch.float32).detach() + 0.3
    analysis = embgeo.analyze(W.numpy(), sections=["cosine"], reference=False)
    assert CosReg(W)().item() == pytest.approx(analysis["cosine.mean"].value * 199 / 200, rel=1e-5)


def test_rows_of_zeros_and_padding_are_safe() -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        W = rows(12, 4).detach()
        W[3] = 0.0
        W[5] = 1e-30
        W[7] = 100.0
        whole = W.to(dtype).requires_grad_()
        value = CosReg(whole, ignore_rows=[7])()
        value.backward()
        kept = [i for i in range(12) if i not in (3, 5, 7)]
        few = whole.detach()[kept].double().requires_grad_()
        obvious(few).backward()
        tolerance = 0.02 if dtype == torch.bfloat16 else 1e-4
        assert torch.allclose(whole.grad[kept].double(), few.grad, rtol=tolerance, atol=1e-4)
        assert value.item() == pytest.approx(obvious(few).item(), abs=1e-5)
        assert not bool(whole.grad[[3, 5, 7]].any())


def test_without_rows_or_with_one_there_is_no_pair() -> None:
    W = torch.zeros(4, 3, requires_grad=True)
    value = CosReg(W)()
    value.backward()
    assert value.item() == 0.0
    assert not bool(W.grad.any())
    one = CosReg(rows(4, 3), ignore_rows=[0, 1, 2])
    assert one().item() == pytest.approx(0.0, abs=1e-15)


def test_cosreg_does_not_suffer_from_mixed_precision() -> None:
    W = rows(500, 16, dtype=torch.float32)
    plain = float(CosReg(W)().detach())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = CosReg(W)()
        value.backward()
    assert float(value.detach()) == plain
    assert W.grad.dtype == torch.float32


@pytest.mark.parametrize("row", [9, -10])
def test_a_row_that_does_not_exist(row: int) -> None:
    with refusal(BadOption):
        CosReg(rows(), ignore_rows=[row])


def test_rows_from_the_end() -> None:
    W = rows()
    assert CosReg(W, ignore_rows=[-1])().item() == CosReg(W, ignore_rows=[8])().item()


# --- Rare and frequent rows --------------------------------------------------------------------


def test_who_is_popular_is_what_an_analysis_says() -> None:
    generator = np.random.default_rng(0)
    number = generator.integers(0, 9, size=43)
    found = popular_rows(torch.tensor(number), ignore_rows=[0, 7])
    order = [i for i in np.lexsort((np.arange(43), -number)) if i not in (0, 7)]
    assert sorted(order[: round(0.2 * 41)]) == torch.nonzero(found).squeeze(1).tolist()


def test_tokens_that_never_occur_are_neither_popular_nor_rare() -> None:
    number = torch.tensor([5, 0, 4, 3, 0, 2, 1, 0])
    model = torch.nn.Module()
    model.get_input_embeddings = lambda: torch.nn.Embedding.from_pretrained(rows(8).detach())
    reg = Frage.attach(model, Setup(counts=number), share=0.4)
    assert reg.sign.tolist() == [-1, 0, -1, 1, 0, 1, 1, 0]


def test_a_source_embedding_has_a_discriminator_of_its_own() -> None:
    sides = {"input": torch.nn.Embedding(19, 4), "source": torch.nn.Embedding(17, 4)}
    number = {"input": torch.arange(19, 0, -1), "source": torch.arange(1, 18)}
    model = torch.nn.Module()
    for role, layer in sides.items():
        setattr(model, f"get_{role}_embeddings", lambda layer=layer: layer)
    reg = attach_method(
        CATALOG["frage"], model, Setup(counts=number["input"], source_counts=number["source"]), {}
    )
    alone = [Frage(sides[role], popular_rows(number[role]), seed=0) for role in ("input", "source")]
    for _ in range(2):
        expected = [one() for one in alone]
        assert reg().item() == pytest.approx(sum(one.item() for one in expected), rel=1e-6)
        for one in (reg, *alone):
            one.after_step()
    for part, one in zip(reg, alone, strict=True):
        assert discriminator_loss(part) == discriminator_loss(one)
    assert discriminator_loss(alone[0]) != discriminator_loss(alone[1])
    assert [id(w) for w in reg.acts_on()] == [id(layer.weight) for layer in sides.values()]


def test_at_least_one_row_is_popular_and_one_is_rare() -> None:
    assert popular_rows(torch.tensor([3, 2, 1]), 0.01).tolist() == [True, False, False]
    assert popular_rows(torch.tensor([3, 2, 1]), 0.99).tolist() == [True, True, False]


def test_shares_that_are_none() -> None:
    for share in (0.0, 1.0, float("nan")):
        with pytest.raises(BadOption):
            popular_rows(torch.arange(9), share)


def test_classes_that_are_none() -> None:
    W = rows()
    with refusal(BadOption):
        Frage(W, torch.ones(9, dtype=torch.bool))
    with refusal(BadOption):
        Frage(W, mask(9, 1), ignore_rows=[0])
    with refusal(BadOption):
        Frage(W, torch.ones(9))
    with refusal(BadOption):
        Frage.attach(make_model(), Setup())


# --- FRAGE ------------------------------------------------------------------------------------


def test_frage_is_the_bounded_cross_entropy() -> None:
    W = rows(dtype=torch.float32)
    reg = Frage(W, mask(9, 3), lambda_=0.4, ignore_rows=[8])
    f = torch.sigmoid(reg.discriminator(W)).squeeze(1)
    expected = -torch.log(1.0 - f[:3]).mean() - torch.log(f[3:8]).mean()
    value = reg()
    assert value.item() == pytest.approx(-0.4 * expected.item(), rel=1e-5)
    (found,) = torch.autograd.grad(value, W)
    (wanted,) = torch.autograd.grad(-0.4 * expected, W)
    assert torch.allclose(found, wanted, atol=1e-7)
    assert not bool(found[8].any())


def test_the_model_does_not_train_the_discriminator() -> None:
    W = rows(dtype=torch.float32)
    reg = Frage(W, mask(9, 3))
    reg().backward()
    assert all(p.grad is None for p in reg.discriminator.parameters())


@pytest.mark.parametrize("hidden", [None, 6])
def test_the_discriminator_does_not_move_the_model(hidden: int | None) -> None:
    W = rows(dtype=torch.float32)
    before = W.detach().clone()
    reg = Frage(W, mask(9, 3), hidden=hidden, lr=0.05)
    first = discriminator_loss(reg)
    for _ in range(60):
        reg.after_step()
    assert discriminator_loss(reg) < 0.5 * first
    assert torch.equal(W.detach(), before)
    assert W.grad is None


def test_a_gradient_step_of_the_model_raises_the_loss_of_the_discriminator() -> None:
    W = rows(dtype=torch.float32)
    reg = Frage(W, mask(9, 3), lr=0.05)
    for _ in range(60):
        reg.after_step()
    before = discriminator_loss(reg)
    reg().backward()
    with torch.no_grad():
        W -= 0.5 * W.grad
    assert discriminator_loss(reg) > before


def test_both_players_look_at_the_same_rows_of_a_step() -> None:
    W = rows(40, dtype=torch.float32).requires_grad_()
    reg = Frage(W, mask(40, 8), sample=10)
    reg().backward()
    seen = reg.rows
    assert seen is not None
    assert {int(i) for i in W.grad.abs().sum(dim=1).nonzero()} == {int(i) for i in seen}
    moved = reg.choose_rows(W)[0]
    assert torch.equal(moved, W[seen])
    reg.after_step()
    reg()
    assert not torch.equal(reg.rows, seen)


def test_a_sample_counts_each_class_once() -> None:
    sign = torch.tensor([1.0, 1.0, -1.0, 0.0])
    share = rebalance(torch.tensor([0.1, 0.1, 0.5, 0.0]), sign)
    assert share.tolist() == pytest.approx([0.5, 0.5, 1.0, 0.0])
    assert float(class_loss(torch.zeros(4), sign, share)) == pytest.approx(2.0 * np.log(2.0))


def test_the_loss_of_sampled_rows_is_a_mean_of_each_class() -> None:
    """However many rows of a class were drawn."""
    W = rows(20, dtype=torch.float32)
    popular = mask(20, 5)
    reg = Frage(W, popular, sample=7, lambda_=1.0)
    drawn = torch.tensor([0, 1, 4, 9, 11, 11, 19])
    with torch.no_grad():
        f = torch.sigmoid(reg.discriminator(W[drawn])).squeeze(1)
    expected = -torch.log(1.0 - f[:3]).mean() - torch.log(f[3:]).mean()
    reg.rows = drawn
    assert -float(reg().detach()) == pytest.approx(float(expected), rel=1e-5)


def test_frage_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    reg = Frage(rows(dtype=torch.float32), mask(9, 3), hidden=4, sample=3)
    reg.after_step()
    assert torch.equal(torch.rand(1), expected)


def test_the_same_seed_starts_the_same_discriminator() -> None:
    W = rows(dtype=torch.float32)
    values = [float(Frage(W, mask(9, 3), seed=seed)().detach()) for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


# --- Tying, and several at once ---------------------------------------------------------------


def test_tying_shares_one_weight_and_takes_the_bias_away() -> None:
    model = make_model(tied=False, bias=True)
    Tying.attach(model)
    assert model.head.weight is model.embed.weight
    assert model.head.bias is None
    assert len(list(model.parameters())) == len(list(make_model().parameters()))


def test_tying_what_does_not_fit() -> None:
    with refusal(BadOption):
        Tying(torch.nn.Embedding(9, 4), torch.nn.Linear(5, 9))


def test_several_are_the_sum_of_their_parts() -> None:
    model = make_model(tied=False, bias=True)
    real = Combined([Tying.attach(model), AugmentedLoss.attach(model), CosReg.attach(model)])
    assert real.NEEDS == ("logits", "targets")
    step, _ = step_of(model, real, batches(1)[0])
    parts = [float(part(step).detach()) for part in real]
    assert float(real(step).detach()) == pytest.approx(sum(parts))
    assert len(real.acts_on()) == 1


def test_several_of_none() -> None:
    with pytest.raises(BadOption):
        Combined([])


# --- What is imported -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_line_does_not_wait_for_torch() -> None:
    code = "import sys, embgeo.cli.app, embgeo.training\nprint('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"

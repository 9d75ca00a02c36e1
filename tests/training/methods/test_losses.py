"""Methods on the loss and the optimizer: augmented loss, adversarial softmax, coupled Adam."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.methods import (  # noqa: E402
    AdversarialSoftmax,
    AugmentedLoss,
    CoupledAdam,
    Step,
    augmented_loss,
)
from embgeo.training.methods.augmented_loss import Divergence  # noqa: E402
from tests.support.language_model import batches, make_model  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402

TARGETS = torch.tensor([[4, 1, 4], [0, -100, 1]])


def drawn(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


# --- The augmented loss -----------------------------------------------------------------------


def divergence(L: Any, logits: Any, targets: Any, tau: float) -> Any:
    """Position by position, as it is defined."""
    found = []
    for z, target in zip(logits.flatten(0, 1), targets.flatten(), strict=True):
        if target >= 0:
            resembling = torch.softmax(L @ L[target] / tau, dim=0)
            predicted = torch.softmax(z / tau, dim=0)
            found.append((resembling * (resembling / predicted).log()).sum())
    return torch.stack(found).mean()


@pytest.mark.parametrize("tau", [1.0, 20.0])
@pytest.mark.parametrize("at_once", [augmented_loss.AT_ONCE, 14, 1])
def test_the_augmented_loss_and_its_gradient(
    tau: float, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(augmented_loss, "AT_ONCE", at_once)
    L, logits = drawn(7, 4), drawn(2, 3, 7, seed=1)
    reg = AugmentedLoss(L, gamma=0.8, tau=tau)
    value = reg(Step(logits=logits, targets=TARGETS))
    expected = 0.8 * tau * divergence(L.detach(), logits, TARGETS, tau)
    assert value.item() == pytest.approx(expected.item(), rel=1e-9)
    (found,) = torch.autograd.grad(value, logits)
    (wanted,) = torch.autograd.grad(expected, logits)
    assert torch.allclose(found, wanted, rtol=1e-8, atol=1e-14)
    assert not bool(found[1, 1].any())


def test_a_detached_target_gives_no_gradient() -> None:
    L, logits = drawn(7, 4), drawn(2, 3, 7, seed=1)
    AugmentedLoss(L)(Step(logits=logits, targets=TARGETS)).backward()
    assert L.grad is None


def test_the_divergence_by_finite_differences() -> None:
    log_resembling = torch.log_softmax(drawn(2, 5).detach(), dim=-1)
    which = torch.tensor([1, 0, -1, 1])
    logits = drawn(4, 5, seed=1)
    assert torch.autograd.gradcheck(
        lambda z: Divergence.apply(z, log_resembling, which, 2.0), (logits,)
    )


def test_a_prediction_like_the_target_costs_nothing() -> None:
    L = drawn(7, 4).detach()
    logits = L[TARGETS.clamp(min=0)] @ L.T
    value = AugmentedLoss(L)(Step(logits=logits, targets=TARGETS))
    assert value.item() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
def test_the_augmented_loss_of_many_tokens_in_single_precision() -> None:
    """The divergence is a small difference of large sums; few of its digits may get lost."""
    generator = torch.Generator().manual_seed(0)
    shares = 1.0 / torch.arange(1, 4_001)
    targets = torch.multinomial(shares, 500, True, generator=generator)
    L, logits = 0.1 * drawn(4_000, 50).detach(), drawn(500, 4_000, seed=1).detach()
    exact = AugmentedLoss(L)(Step(logits=logits, targets=targets)).item()
    found = AugmentedLoss(L.float())(Step(logits=logits.float(), targets=targets)).item()
    assert found == pytest.approx(exact, rel=2e-3)


def test_padding_gets_no_probability_from_the_target() -> None:
    L, logits = drawn(7, 4), drawn(2, 3, 7, seed=1)
    value = AugmentedLoss(L, gamma=1.0, tau=2.0, ignore_rows=(6,))(
        Step(logits=logits, targets=TARGETS)
    )
    found = []
    for z, target in zip(logits.flatten(0, 1), TARGETS.flatten(), strict=True):
        if target >= 0:
            resembling = torch.softmax(L[:6] @ L[target] / 2.0, dim=0)
            predicted = torch.softmax(z / 2.0, dim=0)[:6]
            found.append((resembling * (resembling / predicted).log()).sum())
    assert value.item() == pytest.approx(2.0 * torch.stack(found).mean().item(), rel=1e-9)


def test_no_position_that_counts() -> None:
    logits = drawn(2, 3, 7)
    reg = AugmentedLoss(drawn(7, 4))
    value = reg(Step(logits=logits, targets=torch.full((2, 3), -100)))
    value.backward()
    assert value.item() == 0.0
    assert not bool(logits.grad.any())


def test_half_precision_logits() -> None:
    L, logits = drawn(7, 4).float().detach(), drawn(2, 3, 7).detach()
    half = logits.bfloat16().requires_grad_()
    value = AugmentedLoss(L)(Step(logits=half, targets=TARGETS))
    value.backward()
    assert half.grad.dtype == torch.bfloat16
    expected = AugmentedLoss(L)(Step(logits=half.detach().float(), targets=TARGETS))
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)


# --- The adversarial softmax ------------------------------------------------------------------


def test_the_target_logit_is_the_smallest_in_the_ball() -> None:
    W, hidden = drawn(7, 4), drawn(2, 3, 4, seed=1)
    logits = hidden @ W.T
    reg, targets = AdversarialSoftmax(W, epsilon=0.1), TARGETS.flip(1)
    found = reg.logits(Step(hidden, logits, targets))
    for i in range(2):
        for j in range(3):
            target = int(targets[i, j])
            expected = logits[i, j].clone()
            if target >= 0 and expected[target] > 0:
                w, h = W[target], hidden[i, j]
                worst = w - 0.1 * w.norm() * h / h.norm()
                expected[target] = worst @ h
            assert torch.allclose(found[i, j], expected)


def test_the_radius_is_no_path_for_gradients() -> None:
    W, hidden = drawn(7, 4), drawn(2, 3, 4, seed=1)
    reg = AdversarialSoftmax(W, epsilon=0.1)
    margin = reg.margin(hidden, TARGETS)
    assert bool((margin > 0.0).any())
    assert bool((margin == 0.0).any())
    (of_w, of_h) = torch.autograd.grad(margin.sum(), [W, hidden], allow_unused=True)
    assert of_w is None
    expected = torch.zeros_like(hidden)
    for i, j in torch.nonzero(margin > 0.0).tolist():
        h = hidden[i, j].detach()
        expected[i, j] = 0.1 * W[TARGETS[i, j]].detach().norm() * h / h.norm()
    assert torch.allclose(of_h, expected)


def test_evaluation_and_the_logits_of_the_step_are_left_alone() -> None:
    W, hidden = drawn(7, 4), drawn(2, 3, 4, seed=1)
    logits = hidden @ W.T
    before = logits.detach().clone()
    step = Step(hidden, logits, TARGETS)
    reg = AdversarialSoftmax(W, epsilon=0.1)
    assert not torch.equal(reg.logits(step), logits)
    assert torch.equal(logits, before)
    assert reg.eval().logits(step) is logits


def test_states_of_zero_are_safe() -> None:
    W, hidden = drawn(7, 4), torch.zeros(2, 3, 4, dtype=torch.float64, requires_grad=True)
    found = AdversarialSoftmax(W).logits(Step(hidden, hidden @ W.T, TARGETS))
    found.sum().backward()
    assert bool(torch.isfinite(hidden.grad).all())


def test_what_the_adversary_needs() -> None:
    for missing in ("hidden", "logits", "targets"):
        W, hidden = drawn(7, 4), drawn(2, 3, 4)
        parts = {"hidden": hidden, "logits": hidden @ W.T, "targets": TARGETS, missing: None}
        with refusal(BadOption):
            AdversarialSoftmax(W).logits(Step(**parts))


# --- Coupled Adam -----------------------------------------------------------------------------


def train(model: Any, optimizer: Any, steps: int, seed: int = 0) -> None:
    for inputs, targets in batches(steps, seed=seed):
        logits = model.head(model.hidden(inputs))
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()


def test_coupled_adam_by_its_definition() -> None:
    """Adam's own second moments, averaged over the rows when they are used."""
    W = drawn(6, 3)
    start = W.detach().clone()
    optimizer = CoupledAdam([W], [W], lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.01)
    expected, m, v = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
    for t in range(1, 6):
        W.grad = drawn(6, 3, seed=t).detach() * torch.arange(1, 7).unsqueeze(1)
        m = 0.8 * m + 0.2 * W.grad
        v = 0.9 * v + 0.1 * W.grad**2
        shared = (v / (1 - 0.9**t)).mean(dim=0, keepdim=True)
        expected = expected * (1 - 0.1 * 0.01)
        expected = expected - 0.1 * (m / (1 - 0.8**t)) / (shared.sqrt() + 1e-3)
        optimizer.step()
        assert torch.allclose(W.detach(), expected, rtol=1e-10)
    assert optimizer.state[W]["exp_avg_sq"].shape == (3,)


def test_all_other_parameters_are_trained_by_adamw() -> None:
    one, two = make_model(), make_model()
    train(one, torch.optim.AdamW(one.rnn.parameters(), lr=0.01), 5)
    coupled = CoupledAdam(
        [{"params": two.rnn.parameters()}, {"params": [two.head.weight], "lr": 0.0}],
        [two.head.weight],
        lr=0.01,
    )
    train(two, coupled, 5)
    for a, b in zip(one.rnn.parameters(), two.rnn.parameters(), strict=True):
        assert torch.equal(a, b)


def test_coupled_adam_continues_from_its_state(tmp_path: Any) -> None:
    one = make_model()
    optimizer = CoupledAdam(one.parameters(), [one.head.weight])
    train(one, optimizer, 5)
    torch.save((one.state_dict(), optimizer.state_dict()), tmp_path / "state.pt")
    train(one, optimizer, 5, seed=1)
    two = make_model(1)
    again = CoupledAdam(two.parameters(), [two.head.weight])
    weights, state = torch.load(tmp_path / "state.pt", weights_only=True)
    two.load_state_dict(weights)
    again.load_state_dict(state)
    train(two, again, 5, seed=1)
    assert torch.equal(one.head.weight, two.head.weight)


def test_a_closure_and_a_schedule() -> None:
    W = drawn(6, 3)
    optimizer = CoupledAdam([W], [W])
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = W.square().sum()
        loss.backward()
        return loss

    assert float(optimizer.step(closure).detach()) > float(W.detach().square().sum())
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(5e-4)


def test_what_cannot_be_coupled() -> None:
    for what in ("none", "copy", "vector", "rate"):
        W, bias = drawn(6, 3), drawn(6)
        coupled = {"none": [], "copy": [drawn(6, 3)], "vector": [bias], "rate": [W]}[what]
        with pytest.raises(BadOption):
            CoupledAdam([W, bias], coupled, lr=-1.0 if what == "rate" else 1e-3)

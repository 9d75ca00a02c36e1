"""Cross-entropy against torch's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from embgeo.training.tasks import language_model  # noqa: E402
from embgeo.training.tasks.language_model import cross_entropy, cross_entropy_in_parts  # noqa: E402
from tests.support.training_runs import PLAIN, N, settings, trainer_of  # noqa: E402


def drawn(*shape: int, dtype: Any = torch.float64) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    logits = 5.0 * torch.randn(*shape, 9, generator=generator, dtype=torch.float64)
    targets = torch.randint(0, 9, shape, generator=generator)
    return logits.to(dtype).requires_grad_(), targets


@pytest.mark.parametrize("shape", [(5,), (4, 3)])
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_value_and_gradient(shape: tuple[int, ...], scale: float) -> None:
    logits, targets = drawn(*shape)
    found = scale * cross_entropy(logits, targets)
    expected = scale * F.cross_entropy(logits.flatten(0, -2), targets.flatten())
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    ours = torch.autograd.grad(found, logits)[0]
    theirs = torch.autograd.grad(expected, logits)[0]
    assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-15)


def test_parts_are_the_whole() -> None:
    torch.manual_seed(0)
    head = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(5, 9)).double()
    head[0].eval()
    hidden, targets = torch.randn(4, 3, 5, dtype=torch.float64), torch.randint(0, 9, (4, 3))
    found = []
    for loss in (
        cross_entropy(head(hidden), targets),
        cross_entropy_in_parts(lambda states, _: head(states), hidden, targets, 5)[0],
    ):
        found.append((loss, *torch.autograd.grad(2.0 * loss, head.parameters())))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["al", "real", "adversarial", "z_loss", "smoothing"])
def test_what_acts_on_logits_does_so_in_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of_task = name in ("z_loss", "smoothing")
    given: dict[str, Any] = {"task": {"name": "lm", name: 0.1}} if of_task else {}
    config = settings("mle" if given else name, model=PLAIN, **given)
    found = []
    for at_once in (language_model.AT_ONCE, 7 * N):
        monkeypatch.setattr(language_model, "AT_ONCE", at_once)
        trainer = trainer_of(config)
        batch = trainer.batches.take()
        assert batch.targets.numel() % 7
        loss, objective = trainer.loss(batch)
        objective.backward()
        found.append([loss, objective.detach(), *(p.grad for p in trainer.parameters)])
    assert not torch.equal(found[0][0], found[0][1])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-6)


def test_large_logits() -> None:
    logits = torch.tensor([[1e4, 0.0], [0.0, 1e4]], requires_grad=True)
    loss = cross_entropy(logits, torch.tensor([0, 0]))
    assert loss.item() == pytest.approx(5e3)
    loss.backward()
    assert logits.grad is not None
    assert torch.allclose(logits.grad, torch.tensor([[0.0, 0.0], [-0.5, 0.5]]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_summed_in_single(dtype: Any) -> None:
    logits, targets = drawn(40, dtype=dtype)
    found = cross_entropy(logits, targets)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(F.cross_entropy(logits.float(), targets).item(), rel=1e-6)
    found.backward()
    assert logits.grad.dtype == dtype


def test_a_second_backward_pass_is_refused() -> None:
    logits, targets = drawn(5)
    loss = cross_entropy(logits, targets)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_without_a_graph() -> None:
    logits, targets = drawn(5)
    with torch.no_grad():
        assert not cross_entropy(logits, targets).requires_grad
    assert not cross_entropy(logits.detach(), targets).requires_grad


def test_several_losses_of_the_same_logits() -> None:
    logits, targets = drawn(5)
    (cross_entropy(logits, targets) + logits.square().sum()).backward()
    expected = torch.autograd.grad(F.cross_entropy(logits, targets), logits)[0]
    assert torch.allclose(logits.grad, expected + 2.0 * logits.detach())

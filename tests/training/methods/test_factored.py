"""Methods on the factored embedding: W is never made, and comes out plain."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.methods import (  # noqa: E402
    DOptimal,
    FactoredEmbedding,
    FactoredHead,
    Setup,
    SpectralNorm,
    SpectrumControl,
    factorize,
    make_plain,
)
from embgeo.training.methods.orthogonality import Orthogonality, improved, residual, retract  # noqa: E402
from embgeo.training.study.numbers import prior as prior_shape  # noqa: E402
from tests.support.language_model import D, N, batches, make_model  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.sampling import each_value  # noqa: E402

FACTORED: list[Any] = [SpectrumControl, SpectralNorm, DOptimal]


def rows(n: int = 20, d: int = 5, seed: int = 0, dtype: Any = torch.float64) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator, dtype=dtype)


# --- The layer --------------------------------------------------------------------------------


def test_the_layer_is_the_plain_one() -> None:
    W = rows()
    layer = FactoredEmbedding(W)
    ids = torch.tensor([[3, 0], [3, 19]])
    hidden = rows(7, 5, seed=1)
    assert torch.allclose(layer(ids), W[ids])
    assert torch.allclose(layer.logits(hidden), hidden @ W.T)
    assert torch.allclose(layer.export(), W)
    assert not layer.export().requires_grad
    assert torch.allclose(layer.singular_values(), torch.linalg.svdvals(W))


def test_rows_lie_side_by_side() -> None:
    """LAPACK gives columns, with which a step takes 4% longer at the size of WikiText-2."""
    e = FactoredEmbedding(torch.randn(30, 5))
    assert e.left.is_contiguous()
    assert e.right.is_contiguous()


def test_a_step_moves_w_as_it_would_move_a_plain_w() -> None:
    """Of a nearly flat spectrum, one step of SGD along the gradient of any loss of the rows."""
    W = 0.1 * torch.linalg.qr(rows(300, 6))[0] * math.sqrt(300)
    pull = rows(300, 6, seed=1)
    layer = FactoredEmbedding(W)
    optimizer = torch.optim.SGD([layer.left], lr=0.1)
    (layer.weight * pull).sum().backward()
    optimizer.step()
    assert torch.allclose(layer.export() - W, -0.1 * pull, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("index", [2, -1])
def test_the_padding_row_is_looked_up_as_zero(index: int) -> None:
    layer = FactoredEmbedding(rows(), padding_idx=index)
    layer(torch.tensor([index % 20])).sum().backward()
    assert not bool(layer(torch.tensor([index % 20])).any())
    assert not bool(layer.left.grad.any())


def test_matrices_that_cannot_be_decomposed() -> None:
    for W in (rows(3, 5), torch.zeros(9, 2), rows() / 0.0):
        with refusal(BadOption):
            FactoredEmbedding(W)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_a_model_is_factored_and_plain_again(tied: bool, bias: bool) -> None:
    model = make_model(tied=tied, bias=bias)
    ids = torch.arange(9).view(1, 9)
    before = model.head(model.hidden(ids)).detach()
    names = set(model.state_dict())
    embedding = factorize(model)
    assert factorize(model) is embedding
    assert isinstance(model.head, FactoredHead)
    assert (model.embed is embedding) is tied
    assert torch.allclose(model.head(model.hidden(ids)), before, atol=1e-5)
    # Each parameter once, and all of them are trained.
    state = model.state_dict()
    assert len([name for name in state if name.endswith("left")]) == 1
    assert {id(p) for p in embedding.parameters()} < {id(p) for p in model.parameters()}
    make_plain(model)
    make_plain(model)
    assert set(model.state_dict()) == names
    assert (model.head.weight is model.embed.weight) is tied
    assert torch.allclose(model.head(model.hidden(ids)), before, atol=1e-5)
    assert model.head.weight.requires_grad


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_a_state_dict_is_read_by_plain_and_by_factored_models(tied: bool, bias: bool) -> None:
    model, plain, again = (make_model(seed, tied=tied, bias=bias) for seed in range(3))
    factorize(model)
    factorize(again)
    with torch.no_grad():
        model.head.factored.sigma.mul_(1.5)
    state = model.state_dict()
    loaded = plain.load_state_dict(state, strict=False)
    # Of a tied matrix only the input's name is written: who reads it ties when loading.
    assert loaded.missing_keys == (["head.weight"] if tied else [])
    home = "embed." if tied else "head.embedding."
    factors = {f"{home}{name}" for name in ("left", "sigma", "right", "scale")}
    assert set(loaded.unexpected_keys) == factors
    assert torch.equal(plain.head.weight, model.head.weight)
    again.load_state_dict(state)
    assert torch.equal(again.head.factored.sigma, model.head.factored.sigma)
    # States without the plain matrix, which earlier versions wrote, are read, too.
    del state["embed.weight" if tied else "head.weight"]
    again.load_state_dict(state)


def test_a_plain_layer_keeps_its_padding_row() -> None:
    model = make_model()
    model.embed = torch.nn.Embedding(N, D, padding_idx=4)
    model.head.weight = model.embed.weight
    factorize(model)
    assert model.embed.padding_idx == 4
    make_plain(model)
    assert model.embed.padding_idx == 4


def test_a_model_whose_layers_cannot_be_replaced() -> None:
    model: Any = torch.nn.Module()
    model.head = torch.nn.Linear(4, 9)
    model.get_input_embeddings = model.get_output_embeddings = lambda: model.head
    with refusal(BadOption):
        factorize(model)


class Seen(TorchDispatchMode):
    """Every tensor that an operation gives, with the number of its elements."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.found: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, torch.Tensor) and tensor.numel() == self.size:
                self.found.append(tensor)
        return out


def test_w_is_never_made_in_training() -> None:
    for method in FACTORED:
        model = make_model()
        reg = method.attach(model)
        inputs, targets = batches(1)[0]
        W = reg.embedding.export()
        left = reg.embedding.left
        with Seen(N * D) as forward:
            loss = F.cross_entropy(
                model.head(model.hidden(inputs)).flatten(0, 1), targets.flatten()
            )
            loss = loss + reg()
        storage = left.untyped_storage().data_ptr()
        assert forward.found
        assert all(t.untyped_storage().data_ptr() == storage for t in forward.found)
        with Seen(N * D) as backward:
            loss.backward()
        # What is of that size now are gradients of U.
        for tensor in backward.found:
            for seen in (tensor, tensor.T) if tensor.ndim == 2 else (tensor,):
                assert seen.shape != W.shape or not torch.allclose(seen, W, atol=1e-3)
        with Seen(N * D) as control:
            assert torch.allclose(reg.embedding.weight, W)
        assert any(t.untyped_storage().data_ptr() != storage for t in control.found)


# --- Orthogonality ----------------------------------------------------------------------------


def penalty(A: Any, frobenius: float, spectral: float) -> Any:
    E = A.T @ A - torch.eye(A.shape[1], dtype=A.dtype)
    largest = torch.linalg.matrix_norm(E, 2)
    return frobenius * E.square().sum() + spectral * largest.square()


@each_value
@pytest.mark.parametrize(("frobenius", "spectral"), [(1.3, 0.0), (0.0, 0.7), (0.4, 2.0)])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_orthogonality_and_its_gradient(frobenius: float, spectral: float, scale: float) -> None:
    A = rows(30, 4).requires_grad_()
    error = Orthogonality(4, frobenius, spectral, iterations=300).double()
    value = error(A, scale)
    expected = penalty(A / scale, frobenius, spectral)
    assert value.item() == pytest.approx(expected.item(), rel=1e-9)
    (found,) = torch.autograd.grad(value, A)
    (wanted,) = torch.autograd.grad(expected, A)
    assert torch.allclose(found, wanted, rtol=1e-6, atol=1e-8)


def test_orthogonality_by_finite_differences() -> None:
    error = Orthogonality(3, 0.5, 0.8).double().eval()
    A = rows(6, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda A: error(A, 2.0), (A,))


def test_power_iteration_catches_up_and_stands_still_in_evaluation() -> None:
    A = rows(30, 4)
    error = Orthogonality(4, 0.0, 1.0).double()
    values = [error(A).item() for _ in range(40)]
    assert all(b >= a * (1.0 - 1e-12) for a, b in pairwise(values))
    assert values[-1] == pytest.approx(penalty(A, 0.0, 1.0).item(), rel=1e-6)
    direction = error.eval().direction.clone()
    error(A)
    assert torch.equal(error.direction, direction)


def test_power_iteration_where_both_signs_are_largest() -> None:
    E = torch.diag(torch.tensor([2.0, -2.0, 0.5]))
    x = improved(E, torch.ones(3) / math.sqrt(3.0), 30)
    assert torch.linalg.vector_norm(E @ x).item() == pytest.approx(2.0)


def test_orthonormal_columns_cost_nothing() -> None:
    Q = torch.linalg.qr(rows(12, 4))[0].requires_grad_()
    value = Orthogonality(4, 1.0, 1.0).double()(Q)
    value.backward()
    assert value.item() == pytest.approx(0.0, abs=1e-25)
    assert bool(torch.isfinite(Q.grad).all())


def test_mixed_precision_does_not_reach_the_residual() -> None:
    A = rows(400, 8, dtype=torch.float32)
    plain = residual(A)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(residual(A), plain)


@pytest.mark.parametrize("scale", [1.0, 9.0])
def test_a_retraction_is_the_qr_decomposition(scale: float) -> None:
    A = rows(40, 6)
    Q, R = torch.linalg.qr(A)
    expected = Q * R.diagonal().sign() * scale
    retract(A, scale)
    assert torch.allclose(A, expected)
    assert torch.allclose(residual(A, scale), torch.zeros(6, 6, dtype=A.dtype), atol=1e-12)


def test_a_retraction_where_cholesky_breaks_down() -> None:
    A = rows(40, 3, dtype=torch.float32)
    A[:, 2] = A[:, 1]
    retract(A)
    assert float(residual(A).abs().max()) < 1e-5


# --- Spectrum control -------------------------------------------------------------------------


def decay(kind: str, d: int, gamma: float | None, tail_ratio: float | None) -> Any:
    return torch.from_numpy(prior_shape(kind, d, {"gamma": gamma, "tail_ratio": tail_ratio}))


def test_priors() -> None:
    k = torch.arange(1, 6, dtype=torch.float64)
    found = decay("exponential", 5, 2.0, 0.3)
    c2 = -math.log(0.3) / 24.0
    assert torch.allclose(found / found[0], torch.exp(-c2 * k**2) / math.exp(-c2))
    assert (found[-1] / found[0]).item() == pytest.approx(0.3)
    assert torch.allclose(decay("polynomial", 5, 0.7, None), k**-0.7)
    # Where the paper gives no γ.
    assert torch.allclose(decay("polynomial", 5, None, None), k**-0.6)
    assert torch.allclose(decay("exponential", 5, None, 0.3), decay("exponential", 5, 1.0, 0.3))
    assert decay("exponential", 1, None, None).tolist() == [1.0]


def test_options_that_make_no_sense() -> None:
    for options in (
        {"prior": "linear"},
        {"prior": "polynomial", "tail_ratio": 0.1},
        {"gamma": 0.0},
        {"tail_ratio": 0.0},
        {"strength": -1.0},
        {"frobenius": (1.0, math.nan)},
        {"spectral": (1.0, 1.0, 1.0)},
        {"c1": "loose"},
        {"c1": 0.0},
    ):
        with pytest.raises(BadOption):
            SpectrumControl(FactoredEmbedding(rows()), **options)


@pytest.mark.parametrize("prior", ["exponential", "polynomial"])
def test_the_prior_keeps_the_norm_of_the_start(prior: Any) -> None:
    W = rows()
    reg = SpectrumControl(FactoredEmbedding(W), prior=prior)
    assert torch.linalg.vector_norm(reg.goal()).item() == pytest.approx(W.norm().item())
    assert bool((reg.goal().diff() < 0.0).all())


@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        (
            {"prior": "exponential", "gamma": 1.5, "tail_ratio": 0.2},
            # c2 such that σ*_d/σ*_1 is 0.2
            lambda k: np.exp(-math.log(5.0) / (5.0**1.5 - 1.0) * k**1.5),
        ),
        ({"prior": "polynomial", "gamma": 0.7}, lambda k: k**-0.7),
    ],
)
def test_c1_is_fixed_free_or_given(settings: dict[str, Any], shape: Any) -> None:
    plain = shape(np.arange(1.0, 6.0))
    layer = FactoredEmbedding(rows())
    given = SpectrumControl(layer, c1=3.0, **settings)
    np.testing.assert_allclose(given.goal().numpy(), 3.0 * plain, rtol=1e-6)
    free = SpectrumControl(layer, c1="free", **settings)
    with torch.no_grad():
        layer.sigma.mul_(4.0)
    sigma = layer.singular_values().detach().numpy()
    best = np.linalg.lstsq(plain[:, None], sigma, rcond=None)[0][0]
    np.testing.assert_allclose(free.goal().numpy(), best * plain, rtol=1e-6)
    with torch.no_grad():
        layer.sigma.copy_(7.0 * free.goal() / layer.scale)
    no_orthogonality = {"frobenius": (0.0, 0.0), "spectral": (0.0, 0.0)}
    again = SpectrumControl(layer, c1="free", **settings, **no_orthogonality)
    assert again().item() == pytest.approx(0.0, abs=1e-8)  # whatever the norm


def test_the_value_is_that_of_the_paper() -> None:
    layer = FactoredEmbedding(rows())
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter += 0.1 * torch.randn(
                parameter.shape, generator=torch.Generator().manual_seed(4), dtype=parameter.dtype
            )
    reg = SpectrumControl(layer, strength=0.6, frobenius=(0.1, 0.2), spectral=(0.3, 0.4)).double()
    for _ in range(200):
        value = reg()
    U, V, sigma = layer.left / layer.scale, layer.right, layer.sigma * layer.scale
    expected = penalty(U, 0.1, 0.3) + penalty(V, 0.2, 0.4)
    expected = expected + 0.6 * (sigma - reg.goal()).square().sum()
    assert value.item() == pytest.approx(expected.item(), rel=1e-6)
    found = torch.autograd.grad(value, list(layer.parameters()))
    wanted = torch.autograd.grad(expected, list(layer.parameters()))
    for a, b in zip(found, wanted, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-7)


def test_the_proximal_step_by_its_formula() -> None:
    layer = FactoredEmbedding(rows())
    reg = SpectrumControl(layer, sgd=True, strength=0.3)
    before = layer.singular_values().detach()
    eta = 0.01 * float(layer.scale) ** 2
    reg.after_step(0.01)
    expected = (before + 2 * eta * 0.3 * reg.goal()) / (1 + 2 * eta * 0.3)
    assert torch.allclose(layer.singular_values(), expected, rtol=1e-6)
    assert reg().item() == 0.0
    with refusal(BadOption):
        reg.after_step()


def test_proximal_training_stays_on_the_manifold_at_a_rate_of_30() -> None:
    model = make_model()
    reg = SpectrumControl.attach(model, Setup(sgd=True))
    optimizer = torch.optim.SGD(model.parameters(), lr=30.0)
    losses = []
    for inputs, targets in batches(40):
        logits = model.head(model.hidden(inputs))
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten()) + reg()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        reg.after_step(30.0)
        losses.append(float(loss.detach()))
    layer = reg.embedding
    assert float(residual(layer.left.detach(), layer.scale).abs().max()) < 1e-5
    assert float(residual(layer.right.detach()).abs().max()) < 1e-5
    assert all(map(math.isfinite, losses))


def test_no_weight_decay_on_the_factors() -> None:
    reg = SpectrumControl(FactoredEmbedding(rows()))
    (group,) = reg.parameter_groups()
    assert group["weight_decay"] == 0.0
    assert len(group["params"]) == 3


# --- The rivals -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [SpectralNorm, DOptimal])
@pytest.mark.parametrize("sgd", [False, True])
def test_the_largest_singular_value_is_kept(method: Any, sgd: bool) -> None:
    W = rows()
    layer = FactoredEmbedding(W)
    reg = method(layer, sgd=sgd)
    expected = torch.linalg.svdvals(W)[0].item()
    assert torch.allclose(layer.export(), W, atol=1e-5)
    with torch.no_grad():
        layer.sigma[2] = -5.0
    reg.after_step(0.1)
    assert layer.singular_values().abs().max().item() == pytest.approx(expected)


def test_d_optimal_is_the_mean_of_the_logarithms() -> None:
    layer = FactoredEmbedding(rows())
    reg = DOptimal(layer, lambda_=0.7)
    sigma = layer.singular_values()
    expected = -0.7 * (sigma / sigma.max()).log().mean()
    value = reg()
    assert value.item() == pytest.approx(expected.item(), rel=1e-6)
    (found,) = torch.autograd.grad(value, layer.sigma)
    (wanted,) = torch.autograd.grad(expected, layer.sigma)
    assert torch.allclose(found, wanted)


def test_the_proximal_step_of_d_optimal_is_a_stationary_point() -> None:
    """σ − σ0 = ηc²·λ/(dσ), before the largest is scaled back."""
    layer = FactoredEmbedding(rows())
    reg = DOptimal(layer, lambda_=0.7, sgd=True)
    before = layer.singular_values().detach()
    reg.after_step(0.002)
    after = layer.singular_values().detach()
    eta = 0.002 * float(layer.scale) ** 2
    free = (before + torch.sqrt(before**2 + 4.0 * eta * 0.7 / 5)) / 2.0
    assert torch.allclose(free - before, eta * 0.7 / (5 * free))
    assert torch.allclose(after, free * before.max() / free.max(), rtol=1e-6)


def test_singular_values_of_zero_are_safe() -> None:
    layer = FactoredEmbedding(rows())
    reg = DOptimal(layer)
    with torch.no_grad():
        layer.sigma[1] = 0.0
    value = reg()
    value.backward()
    assert bool(torch.isfinite(value))
    assert bool(torch.isfinite(layer.sigma.grad).all())

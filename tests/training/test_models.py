"""Language models: what all of them keep, tied or not, and every method on each of them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

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
from embgeo.training.models import MODELS, build, detach  # noqa: E402
from embgeo.training.optimization.optimizers import apply_factor, build_optimizer, parameter_groups  # noqa: E402
from embgeo.training.registry import load_class  # noqa: E402
from embgeo.training.sections import Adam, Sgd  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.sampling import each_value, sample_cases  # noqa: E402

N, D, T, B = 30, 8, 6, 3

SMALL: dict[str, dict[str, Any]] = {
    "awd-lstm": {"d": D, "hidden": 12},
    "mixture": {"d": D, "hidden": 12, "experts": 2, "last": 10, "latent_dropout": 0.1},
    "vd-lstm": {"d": D, "hidden": 10},
    "vd-rhn": {"d": D, "layers": 2, "depth": 2, "input_dropout": 0.2, "bound": 0.3},
    "transformer": {"d": D, "layers": 2, "heads": 2},
    "transformer-xl": {"d": D, "layers": 2, "heads": 2, "memory": T},
    "llama": {"d": D, "layers": 2, "heads": 4, "kv_heads": 2, "dropout": 0.1},
}
each_model = pytest.mark.parametrize("name", SMALL)
each_tying = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
recurrent = pytest.mark.parametrize("name", ["awd-lstm", "vd-lstm", "vd-rhn"])
#: Models of `SMALL` whose name is not that of their class.
KINDS = {"mixture": "awd-lstm"}


def made(name: str, seed: int = 0, **settings: Any) -> Any:
    torch.manual_seed(seed)
    return build(KINDS.get(name, name), N, {**SMALL[name], **settings})


def tokens(length: int = T, seed: int = 0) -> Any:
    return torch.randint(0, N, (length, B), generator=torch.Generator().manual_seed(seed))


def loss_of(model: Any, ids: Any, state: Any = None) -> Any:
    output = model(ids[:-1], state)
    logits = model.head(output.hidden)
    return F.cross_entropy(logits.flatten(0, 1), ids[1:].flatten()) + model.activation_penalty(
        output
    )


def test_every_model_is_one_of_the_small_ones() -> None:
    assert {type(made(name)) for name in SMALL} == set(map(load_class, MODELS.values()))


@each_value
@each_model
@each_tying
def test_every_parameter_has_a_gradient_but_those_of_dropped_tokens(name: str, tied: bool) -> None:
    model = made(name, tied=tied)
    loss_of(model, tokens(T + 1)).backward()
    for parameter_name, p in model.named_parameters():
        assert p.grad is not None, parameter_name
        assert torch.isfinite(p.grad).all()
        assert p.grad.any(), parameter_name


@each_model
def test_what_comes_later_changes_nothing(name: str) -> None:
    model, ids = made(name).eval(), tokens()
    changed = ids.clone()
    changed[4:] = (changed[4:] + 1) % N
    one, other = model(ids).raw, model(changed).raw
    assert torch.equal(one[:4], other[:4])
    assert (one[4:] != other[4:]).any(dim=-1).all()


@each_model
def test_what_came_before_counts(name: str) -> None:
    model, ids = made(name).eval(), tokens()
    changed = ids.clone()
    changed[0] = (changed[0] + 1) % N
    assert (model(ids).raw != model(changed).raw).any(dim=-1).all()


@each_model
def test_streams_do_not_see_each_other(name: str) -> None:
    model, ids = made(name).eval(), tokens()
    turned = torch.tensor([2, 0, 1])
    assert torch.allclose(model(ids[:, turned]).raw, model(ids).raw[:, turned], atol=1e-6)


@recurrent
def test_two_windows_are_as_one_if_the_state_is_carried(name: str) -> None:
    model, ids = made(name).eval(), tokens()
    whole = model(ids)
    first = model(ids[:2])
    second = model(ids[2:], detach(first.state))
    assert torch.allclose(torch.cat([first.raw, second.raw]), whole.raw, atol=1e-6)
    for one, other in zip(tree_leaves(whole.state), tree_leaves(second.state), strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    start = model.initial_state(B)
    assert torch.equal(model(ids, start).raw, whole.raw)


@recurrent
def test_detached_states_have_no_graph(name: str) -> None:
    state = made(name)(tokens()).state
    cut = detach(state)
    assert all(part.requires_grad for part in tree_leaves(state))
    assert not any(part.requires_grad for part in tree_leaves(cut))
    assert all(map(torch.equal, tree_leaves(state), tree_leaves(cut)))
    assert detach(None) is None
    assert isinstance(detach([state[0]]), list)


def test_a_state_of_something_else_is_refused() -> None:
    with refusal(TypeError):
        detach(("a",))


@each_model
def test_tied_models_have_one_matrix(name: str) -> None:
    tied, untied = made(name, tied=True), made(name, tied=False)
    assert tied.get_output_embeddings().weight is tied.get_input_embeddings().weight
    assert untied.get_output_embeddings().weight is not untied.get_input_embeddings().weight
    with torch.no_grad():
        tied.get_input_embeddings().weight.add_(1.0)
    assert tied.get_output_embeddings().weight.mean() > 0.5
    sizes = [sum(p.numel() for p in model.parameters()) for model in (tied, untied)]
    assert sizes[1] - sizes[0] == N * D


@each_model
def test_tied_and_untied_models_start_alike(name: str) -> None:
    tied, untied = made(name, tied=True), made(name, tied=False)
    untied_state = untied.state_dict()
    for key, value in tied.state_dict().items():
        if key != "decoder.weight":
            assert torch.equal(value, untied_state[key]), key
    assert not torch.equal(untied_state["decoder.weight"], untied_state["embedding.weight"])


@each_model
@pytest.mark.parametrize("bias", [True, False])
def test_the_bias_of_the_output_layer_is_a_choice(name: str, bias: bool) -> None:
    output = made(name, bias=bias).get_output_embeddings()
    assert (output.bias is not None) == bias
    assert not bias or not output.bias.any()


@each_model
def test_layers_can_be_replaced(name: str) -> None:
    model = made(name).eval()
    embedding, head = torch.nn.Embedding(N, D), torch.nn.Linear(D, N)
    model.set_input_embeddings(embedding)
    model.set_output_embeddings(head)
    assert model.get_input_embeddings() is embedding
    assert model.get_output_embeddings() is head
    hidden = torch.ones(2, 10 if name == "mixture" else D)
    if name == "mixture":
        assert torch.equal(model.head(hidden), model.mixture(hidden, head))
    else:
        assert torch.equal(model.head(hidden), head(hidden))
    assert "embedding.weight" in model.state_dict()


@each_model
def test_mixed_precision(name: str) -> None:
    model = made(name)
    with torch.autocast("cpu", torch.bfloat16):
        first = model(tokens())
        loss = loss_of(model, tokens(), detach(first.state))
    loss.backward()
    assert model.head(first.hidden).dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        kept = torch.float32 if name == "mixture" else torch.bfloat16
        assert model.head(first.hidden).dtype == kept
    assert first.raw.dtype == model.activation_penalty(first).dtype == torch.float32
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@recurrent
def test_layers_keep_out_of_mixed_precision(name: str) -> None:
    model = made(name).eval()
    expected = model(tokens()).raw
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(model(tokens()).raw, expected)


# --- Settings -----------------------------------------------------------------------------------


def test_a_model_that_does_not_exist() -> None:
    with refusal(BadOption):
        build("gru", N, {})


@each_model
def test_a_setting_that_does_not_exist(name: str) -> None:
    with refusal(BadOption):
        made(name, width=3)


def test_settings_that_make_no_sense() -> None:
    for name, settings in (
        ("awd-lstm", {"d": 0}),
        ("awd-lstm", {"layers": True}),
        ("awd-lstm", {"weight_dropout": 1.0}),
        ("awd-lstm", {"embedding_dropout": float("nan")}),
        ("awd-lstm", {"beta": float("inf")}),
        ("awd-lstm", {"tied": "yes"}),
        ("vd-lstm", {"size": "huge"}),
        ("vd-lstm", {"bound": -1}),
        ("transformer", {"heads": 3}),
        ("transformer", {"d": 9, "heads": 3}),
        ("llama", {"heads": 8, "kv_heads": 1}),
        ("llama", {"kv_heads": 3}),
    ):
        with refusal(BadOption):
            made(name, **settings)


# --- Methods ------------------------------------------------------------------------------------

METHODS: list[Any] = [method for method in REGULARIZERS if issubclass(method, Regularizer)]
COUNTS = (1000.0 / torch.arange(1, N + 1)).round()


def windows(number: int) -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.multinomial(COUNTS, number * (T + 1) * B, True, generator=generator)
    return list(drawn.view(number, T + 1, B))


def train(model: Any, reg: Any, kind: str = "adamw", lr: float = 0.01, number: int = 5) -> Any:
    """The loop as it is documented; gives the losses."""
    groups = parameter_groups(model, reg.parameter_groups())
    optimizer = build_optimizer(Sgd(lr=lr) if kind == "sgd" else Adam(lr=lr), groups)
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
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.NAME)
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

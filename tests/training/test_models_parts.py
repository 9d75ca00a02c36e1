"""The parts of the models against slow twins: dropouts, LSTM layers, attention."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from embgeo.training.models import blocks, build  # noqa: E402
from embgeo.training.models.blocks import rotated, rotations  # noqa: E402
from embgeo.training.models.language_model import drop_rows  # noqa: E402
from embgeo.training.models.recurrent import (  # noqa: E402
    LstmLayer,
    in_one_piece,
    keep_recurrence_exact,
    locked_mask,
)
from embgeo.training.models.vd_rhn import HighwayLayer  # noqa: E402
from tests.support.sampling import each_value  # noqa: E402
from tests.support.training_runs import RecurrentCalls  # noqa: E402

N, D, T, B = 30, 8, 6, 3

NO_DROPOUT = {
    "embedding_dropout": 0.0,
    "input_dropout": 0.0,
    "hidden_dropout": 0.0,
    "output_dropout": 0.0,
    "weight_dropout": 0.0,
}


def made(name: str, n: int = N, **settings: Any) -> Any:
    torch.manual_seed(0)
    return build(name, n, settings)


def tokens(length: int = T) -> Any:
    return torch.randint(0, N, (length, B), generator=torch.Generator().manual_seed(0))


def count(model: Any) -> int:
    return sum(p.numel() for p in model.parameters())


# --- Dropouts -----------------------------------------------------------------------------------


def test_a_dropped_token_is_dropped_wherever_it_stands() -> None:
    torch.manual_seed(0)
    ids = torch.randint(0, 10, (40, 5))
    rows = torch.ones(40, 5, 4)
    found = drop_rows(rows, ids, 10, 0.4)
    fates = [found[ids == token].unique() for token in range(10)]
    assert all(len(fate) == 1 for fate in fates)
    assert {round(float(fate), 5) for fate in fates} == {0.0, round(1 / 0.6, 5)}


def test_locked_masks_are_constant_in_time_and_differ_between_streams() -> None:
    torch.manual_seed(0)
    mask = locked_mask(torch.empty(7, 5, 64), 0.5)
    assert mask.shape == (1, 5, 64)
    assert set(mask.unique().tolist()) == {0.0, 2.0}
    assert all((mask[0, i] != mask[0, i + 1]).any() for i in range(4))


def test_every_dropout_of_awd_lstm_is_where_it_belongs() -> None:
    """One at a time; where the mask is, the output has zeros of the right shape, or changes."""
    ids = tokens()
    plain = made("awd-lstm", d=D, hidden=12, **NO_DROPOUT)
    expected = plain(ids)
    assert torch.equal(expected.hidden, expected.raw)
    for name in NO_DROPOUT:
        model = made("awd-lstm", d=D, hidden=12, **{**NO_DROPOUT, name: 0.5})
        output = model(ids)
        if name == "output_dropout":
            assert torch.equal(output.raw, expected.raw)
            zero = (output.hidden == 0.0).all(dim=0)
            assert torch.equal((output.hidden == 0.0).any(dim=0), zero)
            assert zero.any()
            assert torch.equal(output.hidden[:, ~zero], 2.0 * output.raw[:, ~zero])
        else:
            assert torch.equal(output.hidden, output.raw)
            assert not torch.allclose(output.raw, expected.raw, atol=1e-4)
        if name == "weight_dropout":  # the first step starts from zero: nothing to drop
            assert torch.allclose(output.raw[0], expected.raw[0], atol=1e-6)


# --- The LSTM layer -----------------------------------------------------------------------------


def test_the_layer_is_that_of_torch() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.LSTM(D, 12)
    ours = LstmLayer(D, 12)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(T, B, D)
    start = (torch.randn(1, B, 12), torch.randn(1, B, 12))
    expected, (h, c) = theirs(x, start)
    found, state = ours(x, start)
    for one, other in ((found, expected), (state[0], h), (state[1], c)):
        assert torch.equal(one, other)
    expected.square().sum().backward()
    found.square().sum().backward()
    for name, p in ours.named_parameters():
        assert torch.equal(p.grad, getattr(theirs, name).grad)


def test_without_dropout_the_model_is_a_stack_of_torch() -> None:
    """With both layers as wide as the embedding, `torch.nn.LSTM` of two layers."""
    model = made("awd-lstm", d=D, hidden=D, layers=2, **NO_DROPOUT)
    theirs = torch.nn.LSTM(D, D, 2)
    theirs.load_state_dict(
        {
            name.replace("l0", f"l{number}"): value
            for number, layer in enumerate(model.lstms)
            for name, value in layer.state_dict().items()
        }
    )
    rows = model.get_input_embeddings()(tokens())
    assert torch.allclose(model(tokens()).raw, theirs(rows)[0], atol=1e-7)


def test_the_start_is_the_published_one() -> None:
    model = made("awd-lstm", n=500, d=40, hidden=60)
    bounds = {name: float(p.detach().abs().max()) for name, p in model.named_parameters()}
    assert 0.099 < bounds["embedding.weight"] <= 0.1
    assert bounds["decoder.bias"] == 0.0
    assert 0.98 * 60**-0.5 < bounds["lstms.0.weight_hh_l0"] <= 60**-0.5
    assert 0.98 * 40**-0.5 < bounds["lstms.2.weight_ih_l0"] <= 40**-0.5
    small = made("vd-lstm", n=500)
    assert all(float(p.detach().abs().max()) <= 0.1 for p in small.parameters())
    assert float(small.lstms[1].weight_hh_l0.detach().abs().max()) > 0.099
    for step in made("vd-rhn", d=40).highways[0].steps:
        assert 0.039 < float(step.weight.detach().abs().max()) <= 0.04
        assert (step.bias[40:] == -2.0).all()
        assert 0.0 < float(step.bias[:40].detach().abs().max()) <= 0.04


def test_weight_drop_drops_recurrent_weights_and_nothing_else() -> None:
    model = made("awd-lstm", d=D, hidden=12, layers=1, **{**NO_DROPOUT, "weight_dropout": 0.5})
    layer = model.lstms[0]
    raw = layer.weight_hh_l0.detach().clone()
    torch.manual_seed(5)
    output = model(tokens())
    torch.manual_seed(5)
    dropped = F.dropout(raw, 0.5)
    theirs = torch.nn.LSTM(D, D)
    theirs.load_state_dict({**layer.state_dict(), "weight_hh_l0": dropped})
    assert torch.equal(output.raw, theirs(model.get_input_embeddings()(tokens()))[0])
    output.raw.square().sum().backward()
    theirs(model.get_input_embeddings()(tokens()))[0].square().sum().backward()
    kept = dropped != 0.0
    assert 0.3 < float(kept.float().mean()) < 0.7
    assert not layer.weight_hh_l0.grad[~kept].any()
    assert torch.allclose(layer.weight_hh_l0.grad[kept], 2.0 * theirs.weight_hh_l0.grad[kept])
    assert layer.weight_ih_l0.grad.all()
    assert torch.equal(layer.weight_hh_l0.detach(), raw)


def test_units_of_vd_lstm_are_dropped_alike_upwards_and_in_time() -> None:
    """Against a loop over tokens and gates, with h·m where h goes anywhere."""
    model = made("vd-lstm", d=D, hidden=12, dropout=0.4)
    torch.manual_seed(3)
    output = model(tokens())
    torch.manual_seed(3)
    x = model.get_input_embeddings()(tokens())
    x = x * locked_mask(x, 0.4)
    for layer in model.lstms:
        mask = F.dropout(torch.ones(layer.hidden), 0.4)
        assert {round(value, 5) for value in mask.tolist()} == {0.0, round(1 / 0.6, 5)}
        h = c = torch.zeros(B, layer.hidden)
        states = []
        for row in x:
            gates = F.linear(row, layer.weight_ih_l0, layer.bias_ih_l0)
            gates = gates + F.linear(h * mask, layer.weight_hh_l0, layer.bias_hh_l0)
            i, f, g, o = gates.chunk(4, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            states.append(h)
        raw = torch.stack(states)
        x = raw * mask
    assert torch.allclose(output.raw, raw, atol=1e-6)
    assert torch.allclose(output.hidden, x, atol=1e-6)


def test_highway_steps_against_numpy() -> None:
    """One token of one stream at a time, with one mask for all tokens and steps."""
    model = made("vd-rhn", d=D, layers=2, depth=3, embedding_dropout=0.0).double()
    start = tuple(torch.randn(2, 1, B, D).double())
    torch.manual_seed(3)
    output = model(tokens(), start)
    torch.manual_seed(3)
    rows = model.get_input_embeddings()(tokens()).detach()
    x = rows.numpy()
    for layer, before, after in zip(model.highways, start, output.state, strict=True):
        kept = [locked_mask(one, p)[0].numpy() for one, p in ((before, 0.25), (rows, 0.75))]
        W = layer.inward.weight.detach().numpy()
        R = [(step.weight.detach().numpy(), step.bias.detach().numpy()) for step in layer.steps]
        states = np.empty_like(x)
        for b in range(B):
            s = before[0, b].numpy()
            for t in range(T):
                for number, (weight, bias) in enumerate(R):
                    sums = weight @ (s * kept[0][b]) + bias
                    sums = sums if number else sums + W @ (x[t, b] * kept[1][b])
                    gate = 1.0 / (1.0 + np.exp(-sums[D:]))
                    s = np.tanh(sums[:D]) * gate + s * (1.0 - gate)
                states[t, b] = s
            np.testing.assert_allclose(after[0, b].detach().numpy(), s, atol=1e-12)
        x = states
    mask = locked_mask(rows, 0.75)[0].numpy()
    assert {round(value, 5) for value in np.unique(mask)} == {0.0, 4.0}
    np.testing.assert_allclose(output.raw.detach().numpy(), x, atol=1e-12)
    np.testing.assert_allclose(output.hidden.detach().numpy(), x * mask, atol=1e-12)


def test_gradients_of_highway_steps() -> None:
    torch.manual_seed(0)
    layer = HighwayLayer(3, 2, 0.5).double()
    x, s = torch.randn(3, 2, 3).double(), torch.randn(1, 2, 3).double()
    mask = torch.tensor([[[0.0, 2.0, 2.0], [2.0, 0.0, 2.0]]]).double()
    given = (x.requires_grad_(), s.requires_grad_(), *layer.parameters())

    def states(x: Any, s: Any, *own: Any) -> Any:
        parameters = dict(zip(dict(layer.named_parameters()), own, strict=True))
        return torch.func.functional_call(layer, parameters, (x, s, mask))

    assert torch.autograd.gradcheck(states, given)


def test_weights_in_one_piece_are_the_same_weights() -> None:
    weights = [torch.randn(4, 3, requires_grad=True), torch.randn(5, requires_grad=True)]
    found = in_one_piece(weights)
    assert found[1].data_ptr() == found[0].data_ptr() + 12 * 4
    for one, other in zip(found, weights, strict=True):
        assert torch.equal(one, other)
    (2.0 * found[0].sum() + 3.0 * found[1].sum()).backward()
    assert weights[0].grad is not None
    assert torch.equal(weights[0].grad, torch.full((4, 3), 2.0))


def test_activation_penalties() -> None:
    model = made("awd-lstm", d=D, hidden=12, alpha=2.0, beta=3.0)
    output = model(tokens())
    hidden, raw = output.hidden.detach().double(), output.raw.detach().double()
    change = sum(
        float((raw[t, b, k] - raw[t - 1, b, k]) ** 2)
        for t in range(1, T)
        for b in range(B)
        for k in range(D)
    ) / ((T - 1) * B * D)
    expected = 2.0 * float((hidden**2).sum()) / (T * B * D) + 3.0 * change
    assert model.activation_penalty(output).item() == pytest.approx(expected, rel=1e-5)
    one = model(tokens(1))
    expected = 2.0 * float((one.hidden.detach() ** 2).mean())
    assert model.activation_penalty(one).item() == pytest.approx(expected)
    assert made("vd-lstm").activation_penalty(one).item() == 0.0


# --- Sizes --------------------------------------------------------------------------------------


def test_sizes_are_the_published_ones() -> None:
    for name, n, settings, parameters in (
        ("awd-lstm", 33_278, {}, 33_556_078),
        ("awd-lstm", 10_000, {"input_dropout": 0.4}, 24_221_600),
        # Zaremba et al. and Gal and Ghahramani, whose sizes Inan et al. take: 20 and 66 million.
        ("vd-lstm", 10_000, {"size": "small", "tied": False}, 4_653_200),
        ("vd-lstm", 10_000, {"size": "medium", "tied": False}, 19_780_400),
        ("vd-lstm", 10_000, {"size": "large", "tied": False}, 66_034_000),
        # Zilly et al.: 23 and 32 million.
        ("vd-rhn", 10_000, {}, 23_482_400),
        ("vd-rhn", 10_000, {"d": 890, "depth": 8, "tied": False}, 32_082_040),
    ):
        with torch.device("meta"):
            assert count(made(name, n=n, **settings)) == parameters


def test_numbers_of_a_size_can_be_given() -> None:
    model = made("vd-lstm", size="medium", d=7, hidden=9, layers=3, dropout=0.1, bound=0.5)
    assert [(layer.inputs, layer.hidden) for layer in model.lstms] == [(7, 9), (9, 9), (9, 7)]
    assert model.hidden_dropout == model.output_dropout == model.input_dropout == 0.1
    assert float(model.lstms[0].weight_hh_l0.detach().abs().max()) > 0.3


# --- Attention ----------------------------------------------------------------------------------


def test_a_block_against_plain_attention() -> None:
    """Softmax of each position's scores of those before it, head by head."""
    for positions, before in (("none", True), ("rotary", True), ("none", False)):
        torch.manual_seed(0)
        attention = blocks.CausalAttention(D, 2, 2, 0.0, spread=0.02, bias=True)
        feed = blocks.FeedForward(blocks.pair(D, 16), F.relu)
        norm = partial(torch.nn.LayerNorm, D)
        block = blocks.Block(attention, feed, 0.0, norm=norm, before=before)
        norm_attention, norm_inner = block.attention.norm, block.inner.norm
        with torch.no_grad():
            for p in block.parameters():
                p.add_(torch.randn_like(p) * 0.3)
        x = torch.randn(B, T, D)
        turns = rotations(T, 4, x.device) if positions == "rotary" else None
        q, k, v = attention.inward(norm_attention(x) if before else x).chunk(3, dim=-1)
        heads = []
        for part in (slice(0, 4), slice(4, 8)):
            query, key = q[..., part], k[..., part]
            if turns is not None:
                query, key = rotated(query, *turns), rotated(key, *turns)
            rows = []
            for t in range(T):
                scores = (key[:, : t + 1] @ query[:, t].unsqueeze(-1)).squeeze(-1) / 2.0
                shares = scores.softmax(dim=-1).unsqueeze(1)
                rows.append((shares @ v[:, : t + 1, part]).squeeze(1))
            heads.append(torch.stack(rows, dim=1))
        after = x + attention.out(torch.cat(heads, dim=-1))
        after = after if before else norm_attention(after)
        given = norm_inner(after) if before else after
        expected = after + feed.outward(feed.inward(given).clamp(min=0.0))
        expected = expected if before else norm_inner(expected)
        assert torch.allclose(block(x, turns), expected, atol=1e-5)


def test_sinusoidal_positions_by_their_formula() -> None:
    """Each token times √d, plus sines and cosines of its place."""
    model = made("transformer", d=D, heads=2).eval()
    model.blocks = torch.nn.ModuleList()
    ids = tokens()
    found = model(ids).raw
    for t in range(T):
        angles = [t / 10_000.0 ** (2 * k / D) for k in range(D // 2)]
        waves = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
        expected = model.embedding.weight[ids[t]] * math.sqrt(D) + torch.tensor(waves)
        assert torch.allclose(found[t], expected, atol=1e-5)


def test_rotated_products_depend_on_the_distance_only() -> None:
    torch.manual_seed(0)
    cosines, sines = rotations(20, D, torch.device("cpu"))
    query, key = torch.randn(2, D).double()

    def product(t: int, s: int) -> float:
        a = rotated(query.unsqueeze(0), cosines[t], sines[t])
        b = rotated(key.unsqueeze(0), cosines[s], sines[s])
        return float((a * b).sum())

    assert product(7, 3) == pytest.approx(product(16, 12), abs=1e-6)
    assert product(7, 3) != pytest.approx(product(7, 4), abs=1e-3)
    assert product(5, 5) == pytest.approx(float(query @ key), abs=1e-6)
    x = torch.randn(20, D)
    assert torch.allclose(rotated(x, cosines, sines).norm(dim=1), x.norm(dim=1), atol=1e-5)


@each_value
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("kind", "kernel"),
    [
        ({"nonlinearity": "relu"}, "rnn_relu"),
        ({"nonlinearity": "tanh"}, "rnn_tanh"),
        (torch.nn.GRU, "gru"),
        (torch.nn.LSTM, "lstm"),
    ],
)
def test_recurrent_layers_of_torch_ignore_autocast(kind: Any, kernel: str, packed: bool) -> None:
    """On CUDA it would run them in float16 without scaling the loss."""
    torch.manual_seed(0)
    layer = torch.nn.RNN(4, 3, **kind) if isinstance(kind, dict) else kind(4, 3)
    given, start = torch.randn(5, 2, 4), torch.randn(1, 2, 3)
    short = given.bfloat16()
    state: Any = (start.bfloat16(),) * 2 if kernel == "lstm" else start.bfloat16()
    exact: Any = (state[0].float(),) * 2 if kernel == "lstm" else state.float()
    expected, _ = layer(short.float(), exact)
    keep_recurrence_exact(torch.nn.Sequential(layer))
    one: Any = torch.nn.utils.rnn.pack_padded_sequence(short, [5, 5]) if packed else short
    with torch.autocast("cpu", dtype=torch.bfloat16), RecurrentCalls() as calls:
        found, _ = layer(one, state)
        layer(one)
    assert calls.seen == {kernel: {torch.float32, False} | ({torch.int64} if packed else set())}
    found = found.data.view(5, 2, 3) if packed else found
    torch.testing.assert_close(found, expected)

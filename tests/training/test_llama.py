"""Llama against a twin with a loop over heads and positions, and complex numbers that turn."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.training.models import build  # noqa: E402

N, D, T, B, HEADS = 30, 16, 5, 2, 4
IDS = torch.randint(0, N, (T, B), generator=torch.Generator().manual_seed(0))


def made(**settings: Any) -> Any:
    torch.manual_seed(0)
    model = build("llama", N, {"d": D, "layers": 2, "heads": HEADS, **settings}).double().eval()
    with torch.no_grad():
        for p in model.parameters():  # gains that are not 1, attention that is not uniform
            p.add_(0.5 * torch.randn_like(p))
    return model


def norm(x: Any, gains: Any) -> Any:
    return x / torch.sqrt(x.square().mean() + 1e-5) * gains


def turn(x: Any, time: int) -> Any:
    """Features k and k + width/2 as a complex number, times e^(i·t·10000^(−2k/width))."""
    half = len(x) // 2
    found = torch.empty_like(x)
    for k in range(half):
        angle = time * 10_000.0 ** (-2 * k / len(x))
        turned = complex(x[k], x[k + half]) * complex(math.cos(angle), math.sin(angle))
        found[k], found[k + half] = turned.real, turned.imag
    return found


def attend(block: Any, states: list[Any], kv_heads: int) -> list[Any]:
    width = D // HEADS
    own = block.attention.layer
    queries, keys, values = own.inward.weight.split([D, kv_heads * width, kv_heads * width])
    normed = [norm(x, block.attention.norm.weight) for x in states]
    found = []
    for time in range(len(states)):
        heads = []
        for head in range(HEADS):
            shared = head * kv_heads // HEADS
            of_query = slice(head * width, (head + 1) * width)
            of_key = slice(shared * width, (shared + 1) * width)
            query, scores = queries[of_query] @ normed[time], []
            for before in range(time + 1):
                key = keys[of_key] @ normed[before]
                scores.append(turn(query, time) @ turn(key, before) / math.sqrt(width))
            shares = torch.stack(scores).softmax(0)
            heads.append(sum(shares[b] * (values[of_key] @ normed[b]) for b in range(time + 1)))
        found.append(own.out.weight @ torch.cat(heads))
    return found


def feed(block: Any, x: Any) -> Any:
    gate, up = (block.inner.layer.inward.weight @ norm(x, block.inner.norm.weight)).chunk(2)
    return block.inner.layer.outward.weight @ (gate / (1 + torch.exp(-gate)) * up)


@torch.no_grad()
def twin(model: Any, ids: list[int], settings: dict[str, Any]) -> Any:
    """Logits of a single stream, shape (T, N)."""
    states = [model.embedding.weight[one] for one in ids]
    for block in model.blocks:
        added = attend(block, states, settings.get("kv_heads", HEADS))
        states = [x + more for x, more in zip(states, added, strict=True)]
        states = [x + feed(block, x) for x in states]
    return torch.stack([model.decoder.weight @ norm(x, model.norm.weight) for x in states])


def test_llama_is_its_slow_twin() -> None:
    for settings in (
        {},
        {"kv_heads": 2, "tied": False},
        {"kv_heads": 1, "feedforward": 7},
    ):
        model = made(**settings)
        with torch.no_grad():
            logits = model.head(model(IDS).hidden)
        for stream in range(B):
            expected = twin(model, IDS[:, stream].tolist(), settings)
            torch.testing.assert_close(logits[:, stream], expected, rtol=1e-5, atol=1e-5)


def test_no_biases_and_the_usual_size() -> None:
    model = build("llama", N, {"d": 128, "layers": 1, "kv_heads": 2})
    assert not [name for name, _ in model.named_parameters() if "bias" in name]
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    assert shapes["blocks.0.inner.layer.inward.weight"] == (2 * 352, 128)
    assert shapes["blocks.0.attention.layer.inward.weight"] == (128 + 2 * 64, 128)


def test_dropout_is_off_in_evaluation_only() -> None:
    model = made(dropout=0.5)
    assert torch.equal(model(IDS).raw, model(IDS).raw)
    model.train()
    assert not torch.equal(model(IDS).raw, model(IDS).raw)


def test_positions_are_relative() -> None:
    """A pair of tokens attends alike wherever it stands."""
    model = made(layers=1)
    attention = model.blocks[0].attention.layer
    x = torch.randn(1, 2, D, dtype=torch.float64)
    angles = torch.arange(2, 6).double()[:, None] * 10_000.0 ** -(torch.arange(2) / 2.0)
    first = attention(x, (angles[:2].cos(), angles[:2].sin()))
    later = attention(x, (angles[2:].cos(), angles[2:].sin()))
    torch.testing.assert_close(first, later)

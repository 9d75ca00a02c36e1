"""Gradient norms, and the relative size of weight updates by role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from embgeo.training.methods.catalog import list_embeddings


@contextmanager
def measure_step(model: Any, found: dict[str, float]) -> Iterator[None]:
    """Record the numbers of the step taken in the block; gradients must exist.

    ``gradient.ROLE`` is the norm of the gradient of all parameters of a role, ``update.ROLE`` the
    norm of their change over that of the weights before it. Roles are ``input``, ``output`` of an
    untied model, and ``layers``; of factors the change of the product counts.
    """
    layers = {"input": model.get_input_embeddings(), "output": model.get_output_embeddings()}
    roles = {name: list(layer.parameters()) for name, layer in layers.items()}
    rows = {id(p) for own in roles.values() for p in own}
    roles["layers"] = [p for p in model.parameters() if id(p) not in rows]
    before = {name: [w.clone() for w in own] for name, own in list_weights(model, roles).items()}
    found |= {
        f"gradient.{name}": length(p.grad for p in roles[name] if p.grad is not None)
        for name in before
    }
    yield
    for name, after in list_weights(model, roles).items():
        moved = length(new - old for new, old in zip(after, before[name], strict=True))
        found[f"update.{name}"] = moved / max(length(before[name]), 1e-30)


@torch.no_grad()
def list_weights(model: Any, roles: dict[str, list[Tensor]]) -> dict[str, list[Tensor]]:
    """The embedding matrices and the other weights, by role."""
    matrices = list_embeddings(model)
    found = {name: [w.detach()] for name, w in zip(("input", "output"), matrices, strict=False)}
    return {**found, "layers": [p.detach() for p in roles["layers"]]}


def length(tensors: Iterable[Tensor]) -> float:
    """Joint norm of all tensors."""
    squares = [t.float().square().sum() for t in tensors]
    return float(torch.stack(squares).sum().sqrt()) if squares else 0.0

"""Layers of torch whose weight is not stored as it is: the same forms as in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from embgeo.io.memory import as_matrix
from tests.support.refusals import refusal

torch: Any = pytest.importorskip("torch")
N, D = 60, 16


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, embedding: Any, head: Any = None) -> None:
        super().__init__()
        self.embedding, self.head = embedding, head

    def get_input_embeddings(self) -> Any:
        return self.embedding

    def get_output_embeddings(self) -> Any:
        return self.head


def quantized(codes: Any, **scales: Any) -> Any:
    layer = torch.nn.Embedding(*codes.shape)
    layer.weight = torch.nn.Parameter(codes, requires_grad=False)
    for name, scale in scales.items():
        layer.register_buffer(name, scale)
    return layer


def numbers(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)) + 0.7


def test_an_fp8_layer_is_decoded() -> None:
    codes = (numbers(N, D) * 30).to(torch.float8_e4m3fn)
    scale = numbers(N, 1).abs()
    matrix = as_matrix(Model(quantized(codes, weight_scale=scale)))
    np.testing.assert_allclose(matrix.data, codes.float() * scale, rtol=1e-6)


def test_codes_without_scales_are_refused() -> None:
    codes = torch.ones(N, D, dtype=torch.int8)
    with refusal():
        as_matrix(Model(quantized(codes)))


def test_parametrizations_are_applied() -> None:
    layer = torch.nn.Embedding.from_pretrained(numbers(N, D), freeze=False)
    torch.nn.utils.parametrizations.weight_norm(layer)
    layer.parametrizations.weight.original0.data *= 2
    matrix = as_matrix(Model(layer))
    np.testing.assert_allclose(matrix.data, 2 * numbers(N, D), rtol=1e-5)


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_an_output_without_a_usable_row_is_left_out(value: float) -> None:
    head = torch.nn.Linear(D, N, bias=False)
    torch.nn.init.constant_(head.weight, value)
    matrix = as_matrix(Model(torch.nn.Embedding(N, D), head))
    assert matrix.output is None
    said = "head.weight is left out: all of its rows are zero or not finite"
    assert said in matrix.origin.notes

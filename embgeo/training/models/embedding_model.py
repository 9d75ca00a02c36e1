"""The base class of all models: input embedding and output layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from embgeo.training.checks import flag, list_defaults, refuse_others, whole
from embgeo.training.methods.weights import make_embedding, make_linear


class EmbeddingModel(nn.Module):
    """An embedding, and an output layer with the same number of rows and columns.

    Methods get and replace both by ``get_input_embeddings()``, ``get_output_embeddings()`` and the
    corresponding ``set_…``. Saved models have them as ``embedding.weight`` and ``decoder.weight``.

    Parameters
    ----------
    n_tokens : int
        Tokens of the vocabulary, N.
    d : int
        Columns of the embedding.

    Attributes
    ----------
    NAME : str
        The name in settings and reports.
    SOURCE : str
        The publication.
    DEVIATIONS : tuple of str
        Differences from the publication, which the report of a run shows.
    """

    NAME: ClassVar[str]
    SOURCE: ClassVar[str]
    DEVIATIONS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, n_tokens: int, d: int) -> None:
        super().__init__()
        self.n_tokens = whole("n_tokens", n_tokens)
        self.d = whole("d", d)
        self.embedding: nn.Module
        self.decoder: nn.Module

    @classmethod
    def construct(cls, settings: Mapping[str, Any], *sizes: Any) -> Self:
        """Make a model of these sizes; `BadOption` for settings that the constructor lacks."""
        refuse_others(cls.NAME, settings, list_defaults(cls))
        return cls(*sizes, **settings)

    def make_embedding(self, weight: Tensor) -> None:
        """Make the input embedding from its weight, shape (N, d)."""
        if weight.shape != (self.n_tokens, self.d):
            shape = self.n_tokens, self.d
            raise ValueError(f"the embedding has shape {tuple(weight.shape)} in place of {shape}")
        self.embedding = make_embedding(weight)

    def make_decoder(self, weight: Tensor | None, *, bias: bool) -> None:
        """Make the output layer from its weight, or tie it to the embedding if that is None."""
        rows = self.embedding.weight if weight is None else weight
        assert isinstance(rows, Tensor)
        zeros = torch.zeros(self.n_tokens) if flag("bias", bias) else None
        self.decoder = make_linear(rows, zeros)

    def embedding_parameters(self) -> list[Tensor]:
        """The parameters with a row for each token or position, each once."""
        layers = (self.get_input_embeddings(), self.get_output_embeddings())
        return list(dict.fromkeys(p for layer in layers for p in layer.parameters()))

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def set_input_embeddings(self, layer: nn.Module) -> None:
        self.embedding = layer

    def get_output_embeddings(self) -> nn.Module:
        return self.decoder

    def set_output_embeddings(self, layer: nn.Module) -> None:
        self.decoder = layer

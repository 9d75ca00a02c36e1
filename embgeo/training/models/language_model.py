"""What all models share: an embedding and an output layer; and language models."""

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training.limits import Settings
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
    """

    #: The name in settings and reports, and the publication.
    NAME: ClassVar[str]
    SOURCE: ClassVar[str]
    #: The settings, where the constructor of a class of embgeo takes them as keywords.
    SETTINGS: ClassVar[type[Settings]]
    #: Differences from the publication, which the report of a run shows.
    DEVIATIONS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, n_tokens: int, d: int) -> None:
        super().__init__()
        self.n_tokens, self.d = n_tokens, d
        self.embedding: nn.Module
        self.decoder: nn.Module

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
        zeros = torch.zeros(self.n_tokens) if bias else None
        self.decoder = make_linear(rows, zeros)

    def head(self, hidden: Tensor) -> Tensor:
        """Return the logits, shape (…, N), for states of shape (…, d)."""
        logits: Tensor = self.decoder(hidden)
        return logits

    def embedding_parameters(self) -> list[Tensor]:
        """Return the parameters with a row for each token, each once."""
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


class Output(NamedTuple):
    """The output of a model for a window of T tokens in B streams."""

    #: Input of the output layer, after dropout; shape (T, B, d).
    hidden: Tensor
    #: States of the last layer, before dropout; shape (T, B, d).
    raw: Tensor
    #: State for the next window, which gets ``detach(output.state)``; None without a state.
    state: Any


class LanguageModel(EmbeddingModel):
    """An embedding, layers that end with the width of the embedding, and an output layer.

    Weights are drawn from torch's global generator: first the embedding, then the layers, last an
    untied output layer. With one seed, a tied and an untied model therefore share all weights that
    both have.

    Parameters
    ----------
    n_tokens : int
        Tokens of the vocabulary, N.
    d : int
        Columns of the embedding.
    embedding_dropout : float
        Share of tokens whose embedding is zero throughout a window of training.
    """

    #: Whether a window sees the windows before it.
    CARRIES_STATE: ClassVar[bool] = True
    #: Whether the context of a token depends on the length of windows although a state is carried.
    WINDOWED: ClassVar[bool] = False

    def __init__(self, n_tokens: int, d: int, *, embedding_dropout: float = 0.0) -> None:
        super().__init__(n_tokens, d)
        self.embedding_dropout = embedding_dropout

    @property
    def logits_per_state(self) -> int:
        """The number of values that `head` computes and keeps for each state."""
        return self.n_tokens

    @torch.no_grad()
    def start_bias(self, log_probabilities: Tensor) -> None:
        """Initialize the output bias, if any, with ln p of each token, shape (N,).

        Started at 0, a bias does not reach ln p in a short training with Adam, and the common
        direction of the embedding takes its place.
        """
        bias = self.decoder.bias
        if bias is not None:
            assert isinstance(bias, Tensor)
            bias.copy_(log_probabilities)

    def initial_state(self, batch: int) -> Any:  # noqa: ARG002
        """Return the state of `batch` streams before the first window."""
        return None

    def forward(self, inputs: Tensor, state: Any = None) -> Output:
        """Compute the states after each token.

        `inputs`: tokens, shape (T, B). `state`: after the window before; by default
        `initial_state`.
        """
        rows: Tensor = self.embedding(inputs)
        if self.training and self.embedding_dropout:
            rows = drop_rows(rows, inputs, self.n_tokens, self.embedding_dropout)
        if state is None:
            state = self.initial_state(inputs.shape[1])
        return self.layers_of(rows, state)

    def layers_of(self, rows: Tensor, state: Any) -> Output:
        """Apply the layers to embedded tokens of shape (T, B, d)."""
        raise NotImplementedError

    def activation_penalty(self, output: Output) -> Tensor:
        """Return the model's own penalty in the loss of a window; 0 for most models."""
        return torch.zeros((), device=output.raw.device)


def drop_rows(rows: Tensor, ids: Tensor, n_tokens: int, p: float) -> Tensor:
    """Set all occurrences of a share `p` of the tokens to zero, and divide the rest by 1 − p.

    `rows`: embedded tokens, shape (T, B, d). `ids`: the tokens, shape (T, B).
    """
    kept = F.dropout(rows.new_ones(n_tokens), p)
    return rows * kept[ids].unsqueeze(-1)


def detach(state: Any) -> Any:
    """Detach a state of tensors in tuples and lists; TypeError for anything else."""
    if state is None:
        return None
    if isinstance(state, Tensor):
        return state.detach()
    if isinstance(state, tuple | list):
        return type(state)(detach(part) for part in state)
    raise TypeError(f"a state holds a {type(state).__name__} and not tensors in tuples or lists")

"""What a language model is to the loop that trains it, and what all models share."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from embgeo.core.errors import BadOption
from embgeo.training.checks import share
from embgeo.training.models.embedding_model import EmbeddingModel
from embgeo.training.registry import file_of


class Output(NamedTuple):
    """What a model makes of a window of T tokens in B streams.

    Parameters
    ----------
    hidden : Tensor
        What the output layer is applied to, after dropout; shape (T, B, d).
    raw : Tensor
        The states of the last layer, before dropout; shape (T, B, d).
    state : object
        To carry to the next window by ``detach(output.state)``; None if there is nothing to carry.
    """

    hidden: Tensor
    raw: Tensor
    state: Any


class LanguageModel(EmbeddingModel):
    """An embedding, layers whose last is as wide as the embedding, and an output layer.

    What is drawn at random comes from torch's global generator: the embedding first, then the
    layers, an output layer of its own last. With the same seed a tied and an untied model so have
    all in common that both have.

    Parameters
    ----------
    n_tokens : int
        Tokens of the vocabulary, N.
    d : int
        Columns of the embedding.
    embedding_dropout : float
        The share of tokens whose embedding is zero throughout a window of training.

    Models also take ``tied`` (bool: one matrix for the embedding and the output layer) and ``bias``
    (bool: whether the output layer has a bias).

    Attributes
    ----------
    CARRIES_STATE : bool
        Whether a window sees those before it.
    WINDOWED : bool
        Whether how far a token sees depends on the length of windows, although a state is carried.
    longest : int, optional
        How many tokens a window may have; None: as many as one likes.
    """

    CARRIES_STATE: ClassVar[bool] = True
    WINDOWED: ClassVar[bool] = False

    def __init__(self, n_tokens: int, d: int, *, embedding_dropout: float) -> None:
        super().__init__(n_tokens, d)
        self.embedding_dropout = share("embedding_dropout", embedding_dropout)
        self.longest: int | None = None

    @property
    def logits_per_state(self) -> int:
        """Numbers that `head` makes of a state on its way to the logits, and keeps."""
        return self.n_tokens

    @torch.no_grad()
    def start_bias(self, log_probabilities: Tensor) -> None:
        """Start the output bias at ln p of each token, shape (N,), where there is a bias.

        From 0, a bias cannot reach ln p in a short training under Adam, and the common direction of
        the embedding takes its place.
        """
        bias = self.decoder.bias
        if bias is not None:
            assert isinstance(bias, Tensor)
            bias.copy_(log_probabilities)

    def initial_state(self, batch: int) -> Any:  # noqa: ARG002
        """What the first window starts from, for this many streams."""
        return None

    def forward(self, inputs: Tensor, state: Any = None) -> Output:
        """The states after each of the tokens.

        Parameters
        ----------
        inputs : Tensor of int64
            Tokens, shape (T, B): time first.
        state : object, optional
            Of the window before; `initial_state` by default.
        """
        rows: Tensor = self.embedding(inputs)
        if self.training and self.embedding_dropout:
            rows = drop_rows(rows, inputs, self.n_tokens, self.embedding_dropout)
        if state is None:
            state = self.initial_state(inputs.shape[1])
        output = self.layers_of(rows, state)
        if not isinstance(output, Output) or output.hidden.shape[:2] != inputs.shape:
            found = tuple(output.hidden.shape) if isinstance(output, Output) else "no Output"
            raise BadOption(
                f"layers_of of {type(self).__name__} gives {found} for rows of shape "
                f"{tuple(rows.shape)}",
                where=file_of(self),
                way_out="give an Output of a state for each row",
            )
        return output

    def layers_of(self, rows: Tensor, state: Any) -> Output:
        """All but embedding and output layer, on embedded tokens of shape (T, B, d)."""
        raise NotImplementedError

    def head(self, hidden: Tensor) -> Tensor:
        """Logits of shape (…, N) for `Output.hidden` of shape (…, d)."""
        logits: Tensor = self.decoder(hidden)
        return logits

    def activation_penalty(self, output: Output) -> Tensor:
        """What the model asks to be added to the loss of a window; 0 for most."""
        return torch.zeros((), device=output.raw.device)


def drop_rows(rows: Tensor, ids: Tensor, n_tokens: int, p: float) -> Tensor:
    """Embedded tokens, zero wherever one of the dropped tokens stands, the rest divided by 1 − p.

    It is the dropout of whole rows of the embedding, done after they were looked up, whatever they
    were looked up in.

    Parameters
    ----------
    rows : Tensor
        Shape (T, B, d).
    ids : Tensor of int64
        Whose rows they are, shape (T, B).
    n_tokens : int
    p : float
        The share of tokens that are dropped.
    """
    kept = F.dropout(rows.new_ones(n_tokens), p)
    return rows * kept[ids].unsqueeze(-1)


def detach(state: Any) -> Any:
    """The same state without its graph; tensors in tuples and lists, or None.

    Raises
    ------
    TypeError
        Something else.
    """
    if state is None:
        return None
    if isinstance(state, Tensor):
        return state.detach()
    if isinstance(state, tuple | list):
        return type(state)(detach(part) for part in state)
    raise TypeError(f"a state holds a {type(state).__name__} and not tensors in tuples or lists")

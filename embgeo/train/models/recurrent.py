"""What the recurrent models have in common: layers one above the other, with states to carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from embgeo.train.models.base import LanguageModel, Output
from embgeo.train.models.dropouts import drop_locked
from embgeo.train.models.lstm_layer import LstmLayer, State
from embgeo.train.models.settings import flag, share, size


class RecurrentModel(LanguageModel):
    """LSTM layers, with variational dropouts before, between and after them.

    Parameters
    ----------
    n_tokens, d, embedding_dropout
        See :class:`LanguageModel`.
    hidden : int
        Units of all layers but the last, which has d.
    layers : int
    input_dropout, hidden_dropout, output_dropout : float
        Of what goes into the first layer, from one layer to the next, and into the output layer.
    recurrent_dropout : float
        Of the recurrent weights.
    drop : callable
        How recurrent weights are dropped: `drop_weights` or `drop_units`.
    tied : bool
        One matrix for the embedding and the output layer.
    bias : bool
        Whether the output layer has a bias.
    """

    #: The embedding is drawn uniformly from ± this.
    RANGE = 0.1

    def __init__(
        self,
        n_tokens: int,
        *,
        d: int,
        hidden: int,
        layers: int,
        embedding_dropout: float,
        input_dropout: float,
        hidden_dropout: float,
        output_dropout: float,
        recurrent_dropout: float,
        drop: Callable[[Tensor, float], Tensor],
        tied: bool,
        bias: bool,
    ) -> None:
        super().__init__(n_tokens, d, embedding_dropout=embedding_dropout)
        self.input_dropout = share("input_dropout", input_dropout)
        self.hidden_dropout = share("hidden_dropout", hidden_dropout)
        self.output_dropout = share("output_dropout", output_dropout)
        widths = [d, *[size("hidden", hidden)] * (size("layers", layers) - 1), d]
        self.make_embedding(self.drawn())
        self.lstms = nn.ModuleList(
            LstmLayer(before, after, dropout=recurrent_dropout, drop=drop)
            for before, after in pairwise(widths)
        )
        self.make_decoder(None if flag("tied", tied) else self.drawn(), bias=bias)

    def drawn(self) -> Tensor:
        return torch.empty(self.n_tokens, self.d).uniform_(-self.RANGE, self.RANGE)

    def layers_below(self) -> Iterator[LstmLayer]:
        for layer in self.lstms:
            assert isinstance(layer, LstmLayer)
            yield layer

    def initial_state(self, batch: int) -> tuple[State, ...]:
        return tuple(layer.initial_state(batch) for layer in self.layers_below())

    def layers_of(self, rows: Tensor, state: Sequence[State]) -> Output:
        states, last = rows, []
        dropout = self.input_dropout
        for layer, before in zip(self.layers_below(), state, strict=True):
            if self.training:
                states = drop_locked(states, dropout)
            states, after = layer(states, before)
            last.append(after)
            dropout = self.hidden_dropout
        hidden = drop_locked(states, self.output_dropout) if self.training else states
        return Output(hidden, states, tuple(last))

"""What the recurrent models have in common: layers one above the other, with states to carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from embgeo.training.models.language_model import LanguageModel, Output
from embgeo.training.models.lstm_layer import LstmLayer, State, locked_mask
from embgeo.training.models.settings import flag, share, size


class RecurrentModel(LanguageModel):
    """LSTM layers; a model says which recurrent weights and which of their states are dropped.

    Parameters
    ----------
    n_tokens, d, embedding_dropout
        See :class:`LanguageModel`.
    hidden : int
        Units of all layers but the last, which has d.
    layers : int
    input_dropout, hidden_dropout, output_dropout : float
        Of what goes into the first layer, from one layer to the next, and into the output layer.
    tied : bool
        One matrix for the embedding and the output layer.
    bias : bool
        Whether the output layer has a bias.
    row_bound : float
        The rows of the embedding and of the output layer are drawn uniformly from ± this.
    lstm_bound : float, optional
        The weights of the layers; see :class:`LstmLayer`.
    """

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
        tied: bool,
        bias: bool,
        row_bound: float = 0.1,
        lstm_bound: float | None = None,
    ) -> None:
        super().__init__(n_tokens, d, embedding_dropout=embedding_dropout)
        self.input_dropout = share("input_dropout", input_dropout)
        self.hidden_dropout = share("hidden_dropout", hidden_dropout)
        self.output_dropout = share("output_dropout", output_dropout)
        widths = [d, *[size("hidden", hidden)] * (size("layers", layers) - 1), d]

        def draw() -> Tensor:
            return torch.empty(self.n_tokens, d).uniform_(-row_bound, row_bound)

        self.make_embedding(draw())
        self.lstms = nn.ModuleList(
            LstmLayer(before, after, bound=lstm_bound) for before, after in pairwise(widths)
        )
        self.make_decoder(None if flag("tied", tied) else draw(), bias=bias)

    def lstm_layers(self) -> Iterator[LstmLayer]:
        for layer in self.lstms:
            assert isinstance(layer, LstmLayer)
            yield layer

    def initial_state(self, batch: int) -> tuple[State, ...]:
        return tuple(layer.initial_state(batch) for layer in self.lstm_layers())

    def drop_weights(self, layer: LstmLayer, batch: int, dropout: float) -> tuple[Tensor, Tensor]:
        """For one window: the recurrent weights of a layer, and the mask of what leaves it.

        Parameters
        ----------
        layer : LstmLayer
        batch : int
        dropout : float
            Of what leaves the layer.
        """
        raise NotImplementedError

    def layers_of(self, rows: Tensor, state: Sequence[State]) -> Output:
        states, last = rows, []
        if self.training and self.input_dropout:
            states = rows * locked_mask(rows, self.input_dropout)
        raw = states
        top = len(self.lstms) - 1
        for number, (layer, before) in enumerate(zip(self.lstm_layers(), state, strict=True)):
            if self.training:
                dropout = self.output_dropout if number == top else self.hidden_dropout
                recurrent, mask = self.drop_weights(layer, rows.shape[1], dropout)
                raw, after = layer(states, before, recurrent)
                states = raw * mask
            else:
                raw, after = layer(states, before)
                states = raw
            last.append(after)
        return Output(states, raw, tuple(last))

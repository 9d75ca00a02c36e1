"""LSTM models with dropout of recurrent weights in each window."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training import components
from embgeo.training.methods.weights import exact
from embgeo.training.models.language_model import LanguageModel, Output
from embgeo.training.models.mixture_of_softmaxes import MixtureOfSoftmaxes


def locked_mask(states: Tensor, p: float) -> Tensor:
    """Return a dropout mask of features that is constant in time, shape (1, B, d)."""
    return F.dropout(states.new_ones(1, *states.shape[1:]), p)


def draw_uniform(bound: float, *shape: int) -> Tensor:
    """Draw weights that are uniform in ±bound."""
    return torch.empty(shape).uniform_(-bound, bound)


def find_mirrored(lengths: Tensor, longest: int) -> Tensor:
    """Return the place of each token in its sentence read backwards, shape (T, B).

    Places after the end of a sentence are their own.
    """
    place = torch.arange(longest, device=lengths.device)[:, None]
    return torch.where(place < lengths, lengths - 1 - place, place)


def mirror(x: Tensor, places: Tensor) -> Tensor:
    """Gather states, shape (T, B, d), from other places, shape (T, B)."""
    return x.gather(0, places[:, :, None].expand(-1, -1, x.shape[2]))


State = tuple[Tensor, Tensor]


class LstmLayer(nn.Module):
    """`torch.nn.LSTM` of one layer, with the same parameters under the same names.

    It ignores autocast. Recurrent weights after dropout are an argument of the call, so that
    checkpoints hold no second copy.

    `bound`: weights are uniform in ±bound; by default 1/√hidden, as in `torch.nn.LSTM`.
    """

    def __init__(self, inputs: int, hidden: int, *, bound: float | None = None) -> None:
        super().__init__()
        self.inputs, self.hidden = inputs, hidden
        most = hidden**-0.5 if bound is None else bound
        self.weight_ih_l0 = nn.Parameter(draw_uniform(most, 4 * hidden, inputs))
        self.weight_hh_l0 = nn.Parameter(draw_uniform(most, 4 * hidden, hidden))
        self.bias_ih_l0 = nn.Parameter(draw_uniform(most, 4 * hidden))
        self.bias_hh_l0 = nn.Parameter(draw_uniform(most, 4 * hidden))

    def initial_state(self, batch: int) -> State:
        start = self.bias_hh_l0.detach().new_zeros(1, batch, self.hidden)
        return start, start

    def forward(
        self, states: Tensor, state: State, recurrent: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Get all states, shape (T, B, hidden), and the last h and c, each of shape (1, B, hidden).

        `states`: inputs, shape (T, B, inputs). `state`: h and c before the first token.
        `recurrent`: replaces ``weight_hh_l0``.
        """
        weights = [
            self.weight_ih_l0,
            self.weight_hh_l0 if recurrent is None else recurrent,
            self.bias_ih_l0,
            self.bias_hh_l0,
        ]
        if states.is_cuda:
            weights = in_one_piece(weights)
        # cuDNN has a backward pass in training mode only, and dynamic evaluation needs it. The mode
        # changes nothing else, as the kernel has no dropout.
        train = torch.is_grad_enabled()
        start = tuple(part.to(weights[0].dtype) for part in state)
        # Without autocast, which always uses float16 here on CUDA; bfloat16 needs a recent cuDNN.
        with exact(states):
            found, h, c = torch.lstm(
                states.to(weights[0].dtype), start, weights, True, 1, 0.0, train, False, False
            )
        return found, (h, c)


def in_one_piece(weights: list[Tensor]) -> list[Tensor]:
    """Copy weights into one block of memory; otherwise, cuDNN does so with a warning."""
    flat = torch.cat([weight.reshape(-1) for weight in weights])
    parts = torch.split(flat, [weight.numel() for weight in weights])
    return [part.view_as(weight) for part, weight in zip(parts, weights, strict=True)]


def keep_recurrence_exact(model: nn.Module) -> None:
    """Let the recurrent layers of torch in a model (RNN, GRU, LSTM) ignore autocast.

    On CUDA, autocast runs them in float16 whatever its own dtype, which would need a scaled loss.
    """
    for layer in model.modules():
        if isinstance(layer, nn.RNNBase):
            layer.forward = partial(call_exact, layer, layer.forward)


def call_exact(layer: nn.RNNBase, forward: Any, given: Any, state: Any = None) -> Any:
    """Call a recurrent layer of torch without autocast, in the precision of its weights.

    `given`: a tensor or a packed sequence. `state`: a tensor, h and c of an LSTM, or None.
    """
    weight = next(layer.parameters())
    if isinstance(state, tuple):
        state = tuple(part.to(weight.dtype) for part in state)
    elif state is not None:
        state = state.to(weight.dtype)
    with exact(weight):
        return forward(given.to(weight.dtype), state)


class RecurrentModel(LanguageModel):
    """LSTM layers; subclasses define the dropout of recurrent weights and states.

    Weights of the embedding and of the output layer are uniform in ±row_bound; for `lstm_bound` see
    `bound` of `LstmLayer`.
    """

    def __init__(
        self,
        n_tokens: int,
        settings: components.Recurrent,
        row_bound: float = 0.1,
        lstm_bound: float | None = None,
    ) -> None:
        d, experts = settings.d, settings.experts
        super().__init__(n_tokens, d, embedding_dropout=settings.embedding_dropout)
        self.input_dropout, self.hidden_dropout = settings.input_dropout, settings.hidden_dropout
        self.output_dropout = settings.output_dropout
        top = d if settings.last is None else settings.last
        widths = [d, *[settings.hidden] * (settings.layers - 1), top]
        self.make_embedding(draw_uniform(row_bound, n_tokens, d))
        self.lstms = nn.ModuleList(
            LstmLayer(before, after, bound=lstm_bound) for before, after in pairwise(widths)
        )
        self.mixture: MixtureOfSoftmaxes | None = None
        if experts > 1:
            dropout = settings.latent_dropout
            self.mixture = MixtureOfSoftmaxes(top, d, experts=experts, dropout=dropout)
        rows = None if settings.tied else draw_uniform(row_bound, n_tokens, d)
        self.make_decoder(rows, bias=settings.bias)

    @property
    def logits_per_state(self) -> int:
        return self.n_tokens * (1 if self.mixture is None else 2 * self.mixture.experts)

    def head(self, hidden: Tensor) -> Tensor:
        """Return the logits, or the log-probabilities of a mixture; shape (…, N)."""
        if self.mixture is None:
            return super().head(hidden)
        log_probabilities: Tensor = self.mixture(hidden, self.decoder)
        return log_probabilities

    def initial_state(self, batch: int) -> tuple[State, ...]:
        layers: Any = self.lstms
        return tuple(layer.initial_state(batch) for layer in layers)

    def drop_weights(self, layer: Any, batch: int, dropout: float) -> tuple[Tensor, Tensor]:
        """Return the recurrent weights of a layer in a window, and the mask of its states.

        `dropout`: the dropout of the layer's states.
        """
        raise NotImplementedError

    def layers_of(self, rows: Tensor, state: Sequence[State]) -> Output:
        states, last = rows, []
        if self.training and self.input_dropout:
            states = rows * locked_mask(rows, self.input_dropout)
        raw = states
        top = len(self.lstms) - 1
        for number, (layer, before) in enumerate(zip(self.lstms, state, strict=True)):
            recurrent = mask = None
            if self.training:
                dropout = self.output_dropout if number == top else self.hidden_dropout
                recurrent, mask = self.drop_weights(layer, rows.shape[1], dropout)
            raw, after = layer(states, before, recurrent)
            states = raw if mask is None else raw * mask
            last.append(after)
        return Output(states, raw, tuple(last))

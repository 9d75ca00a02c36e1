"""One LSTM layer with dropout in its recurrent weights, by the kernel that `nn.LSTM` calls."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

State = tuple[Tensor, Tensor]


class LstmLayer(nn.Module):
    """`torch.nn.LSTM` of one layer, whose recurrent weights are dropped in each window of training.

    The parameters are the raw weights, under the names that `torch.nn.LSTM` gives them. What the
    kernel sees is made of them anew in each call, and is not kept: no copy that has to be brought
    up to date, no second entry in checkpoints.

    Parameters
    ----------
    inputs, hidden : int
        Numbers of features.
    dropout : float
        The share of the recurrent weights, or of what they are multiplied by.
    drop : callable
        `drop_weights` or `drop_units`.
    """

    def __init__(
        self, inputs: int, hidden: int, *, dropout: float, drop: Callable[[Tensor, float], Tensor]
    ) -> None:
        super().__init__()
        self.inputs, self.hidden = inputs, hidden
        self.dropout = dropout
        self.drop = drop
        bound = hidden**-0.5

        def drawn(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

        self.weight_ih_l0 = drawn(4 * hidden, inputs)
        self.weight_hh_l0 = drawn(4 * hidden, hidden)
        self.bias_ih_l0 = drawn(4 * hidden)
        self.bias_hh_l0 = drawn(4 * hidden)

    def initial_state(self, batch: int) -> State:
        """Zeros."""
        start = self.bias_hh_l0.detach().new_zeros(1, batch, self.hidden)
        return start, start

    def forward(self, states: Tensor, state: State) -> tuple[Tensor, State]:
        """States of shape (T, B, hidden) for inputs of shape (T, B, inputs), and the last ones."""
        recurrent: Tensor = self.weight_hh_l0
        if self.training and self.dropout:
            recurrent = self.drop(recurrent, self.dropout)
        weights = [self.weight_ih_l0, recurrent, self.bias_ih_l0, self.bias_hh_l0]
        if states.is_cuda:
            weights = in_one_piece(weights)
        # cuDNN has no backward otherwise, and gradients are wanted in evaluation, too (dynamic
        # evaluation). Without dropout inside of the kernel, nothing else depends on it.
        train = torch.is_grad_enabled()
        found, h, c = torch.lstm(states, state, weights, True, 1, 0.0, train, False, False)
        return found, (h, c)

    def extra_repr(self) -> str:
        return f"{self.inputs}, {self.hidden}, dropout={self.dropout:g}, {self.drop.__name__}"


def in_one_piece(weights: list[Tensor]) -> list[Tensor]:
    """The same weights, one behind the other in memory: cuDNN would copy them, and say so."""
    sizes = [weight.numel() for weight in weights]
    flat = torch.cat([weight.reshape(-1) for weight in weights])
    parts = zip(torch.split(flat, sizes), weights, strict=True)
    return [part.view_as(weight) for part, weight in parts]

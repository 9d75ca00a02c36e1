"""One LSTM layer whose recurrent weights can be others in each window, by the fused kernel."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training.methods.regularizer import exact


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


def locked_mask(states: Tensor, p: float) -> Tensor:
    """A mask for features that is the same at all times of a stream, shape (1, B, d)."""
    return F.dropout(states.new_ones(1, *states.shape[1:]), p)


State = tuple[Tensor, Tensor]


class LstmLayer(nn.Module):
    """`torch.nn.LSTM` of one layer, with the same parameters under the same names.

    Under autocast it computes in the precision of its weights. Recurrent weights with some of them
    dropped are handed over in the call, and are not kept: there is no copy to bring up to date, and
    no second entry in checkpoints.

    Parameters
    ----------
    inputs, hidden : int
        Numbers of features.
    bound : float, optional
        Weights are drawn uniformly from ± this; by default 1/√hidden, as `torch.nn.LSTM` does.
    """

    def __init__(self, inputs: int, hidden: int, *, bound: float | None = None) -> None:
        super().__init__()
        self.inputs, self.hidden = inputs, hidden
        most = hidden**-0.5 if bound is None else bound

        def draw(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape).uniform_(-most, most))

        self.weight_ih_l0 = draw(4 * hidden, inputs)
        self.weight_hh_l0 = draw(4 * hidden, hidden)
        self.bias_ih_l0 = draw(4 * hidden)
        self.bias_hh_l0 = draw(4 * hidden)

    def initial_state(self, batch: int) -> State:
        """Zeros."""
        start = self.bias_hh_l0.detach().new_zeros(1, batch, self.hidden)
        return start, start

    def forward(
        self, states: Tensor, state: State, recurrent: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """All states and the last.

        Parameters
        ----------
        states : Tensor
            Shape (T, B, inputs).
        state : pair of Tensor
            h and c before the first token, each of shape (1, B, hidden).
        recurrent : Tensor, optional
            In place of ``weight_hh_l0``.

        Returns
        -------
        Tensor
            Shape (T, B, hidden).
        pair of Tensor
        """
        weights = [
            self.weight_ih_l0,
            self.weight_hh_l0 if recurrent is None else recurrent,
            self.bias_ih_l0,
            self.bias_hh_l0,
        ]
        if states.is_cuda:
            weights = in_one_piece(weights)
        # cuDNN has no backward otherwise, and gradients are wanted in evaluation, too (dynamic
        # evaluation). Without dropout inside of the kernel, nothing else depends on it.
        train = torch.is_grad_enabled()
        start = tuple(part.to(weights[0].dtype) for part in state)
        # Out of mixed precision: on CUDA, autocast has meant float16 here, whatever was asked for,
        # and bfloat16 needs a recent cuDNN.
        with exact(states):
            found, h, c = torch.lstm(
                states.to(weights[0].dtype), start, weights, True, 1, 0.0, train, False, False
            )
        return found, (h, c)

    def extra_repr(self) -> str:
        return f"{self.inputs}, {self.hidden}"


def in_one_piece(weights: list[Tensor]) -> list[Tensor]:
    """The same weights, one behind the other in memory: cuDNN would copy them, and say so."""
    flat = torch.cat([weight.reshape(-1) for weight in weights])
    parts = torch.split(flat, [weight.numel() for weight in weights])
    return [part.view_as(weight) for part, weight in zip(parts, weights, strict=True)]

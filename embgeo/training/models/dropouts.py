"""Dropouts whose masks stay as they are while a window is read."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


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

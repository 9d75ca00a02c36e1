"""A split as parallel streams of which no token is lost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embgeo.core.errors import BadOption

#: Target of positions that only fill up the last stream.
IGNORED = -100


def streams(
    rows: npt.NDArray[np.int64], batch: int, bptt: int, device: torch.device | str
) -> Iterator[tuple[Tensor, Tensor]]:
    """Windows of inputs and targets, in which each token but the first is a target once.

    Parameters
    ----------
    rows : array of int64
        Shape (n,).
    batch : int
        Streams; fewer where they would be empty.
    bptt : int
        Steps of a window.
    device : torch.device or str

    Yields
    ------
    inputs, targets : Tensor of int64
        Shape (T, B), in the order of time; targets that only fill up the last stream are
        `IGNORED`.

    Raises
    ------
    BadOption
        Less than two tokens, or no stream or step.
    """
    for name, value in (("batch", batch), ("bptt", bptt)):
        if value < 1:
            raise BadOption(f"{name} is {value:,}", where="evaluation", way_out="give 1 or more")
    predicted = len(rows) - 1
    if predicted < 1:
        raise BadOption(
            f"{len(rows):,} tokens leave nothing to predict",
            where="evaluation",
            way_out="give a split of two tokens or more",
        )
    length = -(-predicted // batch)
    batch = -(-predicted // length)
    places = np.zeros((2, batch * length), dtype=np.int64)
    places[1] = IGNORED
    places[0, :predicted], places[1, :predicted] = rows[:-1], rows[1:]
    inputs, targets = torch.from_numpy(places.reshape(2, batch, length).transpose(0, 2, 1).copy())
    for start in range(0, length, bptt):
        stop = start + bptt
        yield inputs[start:stop].to(device), targets[start:stop].to(device)

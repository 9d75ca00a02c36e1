"""A split as parallel streams, and the windows that training and evaluation see of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embgeo.core.errors import BadOption

#: Merity et al. (2018): lengths are drawn about bptt, one in twenty about half of it.
_HALVED = 0.05
_DEVIATION = 5.0
_SHORTEST = 5


class Window(NamedTuple):
    """What one training step is given.

    Attributes
    ----------
    inputs, targets : Tensor of int64
        Shape (T, B); `targets` is one token later.
    length_ratio : float
        By which the learning rate is multiplied: T/bptt where lengths are drawn at random, so that
        a token counts alike in long and short windows; 1 where they are fixed.
    first : bool
        Whether the streams begin here: the model's state starts anew.
    """

    inputs: Tensor
    targets: Tensor
    length_ratio: float
    first: bool

    @property
    def units(self) -> int:
        """How many targets there are."""
        return self.targets.numel()


def columns(rows: npt.NDArray[np.int64], batch: int) -> Tensor:
    """Lay a split out as `batch` streams side by side.

    What is left over at the end, fewer than `batch` tokens, is dropped, as in the field's training
    scripts. Evaluation drops nothing.

    Parameters
    ----------
    rows : array of int64
        The split; shape (n,).

    Returns
    -------
    Tensor of int64
        Shape (n // batch, batch), contiguous; column j follows on column j − 1.

    Raises
    ------
    BadOption
        Less than two tokens for a stream.
    """
    if batch < 1:
        raise BadOption(f"a batch of {batch:,} holds nothing", where="batch", way_out="give 1 up")
    length = len(rows) // batch
    if length < 2:
        raise BadOption(
            f"{len(rows):,} tokens are too few for {batch:,} streams of two tokens",
            where="batch",
            way_out="give a smaller batch or more text",
        )
    return torch.from_numpy(rows[: length * batch].reshape(batch, length).T.copy())


class Batches:
    """A deterministic walk over columns, window by window, that can be resumed anywhere.

    ``for window in batches`` gives the rest of the current epoch; the position moves on before a
    window is handed out, so that `state_dict` inside the loop is the state after that window.
    Each target is seen once an epoch; the last window is as short as it has to be.

    Parameters
    ----------
    columns : Tensor of int64
        As `columns` gives them, or some columns of these; shape (length, B).
    bptt : int
        Steps of a window.
    random_lengths : bool
        Draw the length of each window as AWD-LSTM does: N(bptt, 5), with probability 0.05
        N(bptt/2, 5), at least 5. The draws depend on `seed` alone: neither the model nor anything
        else that draws numbers changes the order of the data.

    Attributes
    ----------
    epoch : int
        How many epochs are finished.
    offset : int
        Step of the columns at which the next window begins.

    Raises
    ------
    BadOption
        A window of no steps, or columns without two tokens.
    """

    def __init__(
        self, columns: Tensor, bptt: int, *, random_lengths: bool = False, seed: int = 0
    ) -> None:
        if bptt < 1:
            raise BadOption(
                f"a window of {bptt:,} steps is none", where="bptt", way_out="give 1 up"
            )
        if columns.ndim != 2 or columns.shape[0] < 2:
            raise BadOption(
                f"columns of shape {tuple(columns.shape)} hold no step",
                where="batch",
                way_out="give a smaller batch or more text",
            )
        self.columns = columns
        self.bptt = bptt
        self.random_lengths = random_lengths
        self.epoch = 0
        self.offset = 0
        self._generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[Window]:
        epoch = self.epoch
        while self.epoch == epoch:
            yield self.take()

    def take(self) -> Window:
        """The next window; behind the last one of an epoch comes the first of the next."""
        steps = self.steps_per_epoch
        start = self.offset
        stop = min(start + self._length(), steps)
        self.offset = stop
        if stop == steps:
            self.epoch, self.offset = self.epoch + 1, 0
        ratio = (stop - start) / self.bptt if self.random_lengths else 1.0
        return Window(
            self.columns[start:stop], self.columns[start + 1 : stop + 1], ratio, start == 0
        )

    @property
    def steps_per_epoch(self) -> int:
        """Targets of a column."""
        return len(self.columns) - 1

    @property
    def windows_per_epoch(self) -> int:
        """How many windows an epoch has; about this many where lengths are random."""
        mean = self.bptt * (1 - _HALVED / 2) if self.random_lengths else self.bptt
        return max(1, -int(-self.steps_per_epoch // mean))

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to go on with the same windows."""
        return {
            "epoch": self.epoch,
            "offset": self.offset,
            "generator": self._generator.get_state(),
            "steps": self.steps_per_epoch,
            "bptt": self.bptt,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken.

        Raises
        ------
        BadOption
            The state is of other data.
        """
        if (state["steps"], state["bptt"]) != (self.steps_per_epoch, self.bptt):
            raise BadOption(
                f"the state is of {state['steps']:,} steps in windows of {state['bptt']:,}, the "
                f"data have {self.steps_per_epoch:,} in windows of {self.bptt:,}",
                way_out="resume with the settings and the text that the run began with",
            )
        self.epoch, self.offset = int(state["epoch"]), int(state["offset"])
        self._generator.set_state(state["generator"].cpu())

    def _length(self) -> int:
        if not self.random_lengths:
            return self.bptt
        halved = torch.rand((), generator=self._generator).item() < _HALVED
        drawn = torch.randn((), generator=self._generator).item()
        mean = self.bptt / 2 if halved else self.bptt
        return max(_SHORTEST, int(mean + _DEVIATION * drawn))


class DrawnBatches:
    """A walk over batches in an order that is drawn anew in every epoch, and can be resumed.

    The draws depend on seed and epoch alone.

    Attributes
    ----------
    epoch : int
        How many epochs are finished.
    offset : int
        Batches of the present epoch that were taken.
    steps_per_epoch : int
        Batches of an epoch, which have windows of one step.
    """

    steps_per_epoch: int

    def __init__(self, steps_per_epoch: int) -> None:
        self.steps_per_epoch = self.windows_per_epoch = steps_per_epoch
        self.epoch = self.offset = 0
        self.draw_order()

    def draw_order(self) -> None:
        """Draw the order of the epoch."""
        raise NotImplementedError

    def advance(self) -> None:
        """To the next batch; behind the last one of an epoch comes the first of the next."""
        self.offset += 1
        if self.offset == self.steps_per_epoch:
            self.epoch, self.offset = self.epoch + 1, 0
            self.draw_order()

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to go on, with the same settings and data."""
        return {"epoch": self.epoch, "offset": self.offset}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self.epoch, self.offset = int(state["epoch"]), int(state["offset"])
        self.draw_order()


#: Target of positions that only fill up the last stream.
IGNORED = -100


def streams(
    rows: npt.NDArray[np.int64],
    batch: int,
    bptt: int,
    device: torch.device | str,
    *,
    stride: int | None = None,
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
    stride : int, optional
        Steps from the end of one window to the end of the next; by default `bptt`. With less,
        windows overlap: what is read again is there as context, and its targets are `IGNORED`.

    Yields
    ------
    inputs, targets : Tensor of int64
        Shape (T, B), in the order of time; targets that only fill up the last stream are
        `IGNORED`.
    """
    new = bptt if stride is None else stride
    for name, value in (("batch", batch), ("bptt", bptt), ("stride", new)):
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
    for start in range(0, length, new):
        stop = start + new
        first = max(0, stop - bptt) if new < bptt else start
        wanted = targets[first:stop].clone()
        wanted[: start - first] = IGNORED
        yield inputs[first:stop].to(device), wanted.to(device)

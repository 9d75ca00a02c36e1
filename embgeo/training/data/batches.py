"""A split as parallel streams, and the batches of windows that training and evaluation read."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.core.settings import Positive, parse_value
from embgeo.training.loop.distributed import ProcessGroup

#: The way out of too little text.
SMALLER_BATCH = f"lower training.batch with {argument('settings', 'training.batch=N')}"
#: Merity et al. (2018): window lengths are drawn around bptt, one in twenty around half of it.
_HALVED = 0.05
_DEVIATION = 5.0
_SHORTEST = 5


class BatchIterator:
    """A deterministic walk over the batches of a process, which can be resumed anywhere.

    A batch has `units`, the number of targets, pairs or documents over which its loss is a mean.
    Every process has the same number in a step, so that means average to means; otherwise it is the
    mean over the processes, and `Task.loss` divides by it. `length_ratio` is the factor of the
    learning rate of the step, usually 1; `first` tells whether to start from an initial state
    instead of the state after the batch before.

    `epoch`: finished epochs. `offset`, `steps_per_epoch`: where in the epoch the next batch begins,
    and where the epoch ends. `windows_per_epoch`: batches of an epoch.
    """

    def __init__(self, steps_per_epoch: int, windows_per_epoch: int | None = None) -> None:
        self.steps_per_epoch = steps_per_epoch
        self.windows_per_epoch = windows_per_epoch or steps_per_epoch
        self.epoch = self.offset = 0
        self.draw_order()

    def take(self) -> Any:
        """Return the next batch; after the last one of an epoch comes the first of the next."""
        raise NotImplementedError

    def draw_order(self) -> None:
        """Draw the order of an epoch before its first batch, from the seed and `epoch` alone."""

    def advance(self, steps: int = 1) -> None:
        """Go on in the epoch, and to the next one after the last batch."""
        self.offset += steps
        if self.offset == self.steps_per_epoch:
            self.epoch, self.offset = self.epoch + 1, 0
            self.draw_order()

    def state_dict(self) -> dict[str, Any]:
        """Return everything that `load_state_dict` needs, given the same settings and data."""
        return {"epoch": self.epoch, "offset": self.offset, "steps": self.steps_per_epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state`; `BadOption` if it belongs to other data."""
        if state["steps"] != self.steps_per_epoch:
            raise refuse_state(f"{state['steps']:,} batches an epoch", f"{self.steps_per_epoch:,}")
        self.epoch, self.offset = int(state["epoch"]), int(state["offset"])
        self.draw_order()


def refuse_state(before: str, now: str) -> BadOption:
    """Return the error for a state of other data."""
    return BadOption(
        f"the state is of {before}, the data have {now}",
        way_out=f"choose another folder with {argument('out')}",
    )


class Window(NamedTuple):
    """The batch of a training step."""

    #: Shape (T, B); `targets` is one token later.
    inputs: Tensor
    targets: Tensor
    #: Factor of the learning rate: T/bptt for random lengths, so that a token has the same weight
    #: in long and short windows; 1 for fixed lengths.
    length_ratio: float
    #: Whether the streams begin here, so that the model starts from its initial state.
    first: bool

    @property
    def units(self) -> int:
        """The number of targets."""
        return self.targets.numel()


def columns(rows: IntArray, batch: int) -> Tensor:
    """Arrange a split as `batch` parallel streams.

    The remainder, fewer than `batch` tokens, is dropped, as in the field's training scripts.
    Evaluation drops nothing.

    `rows`: the split; shape (n,). Returns shape (n // batch, batch), contiguous; column j continues
    column j − 1. Raises BadOption for fewer than two tokens for a stream.
    """
    length = len(rows) // parse_value(batch, Positive, "batch")
    if length < 2:
        raise BadOption(
            f"{len(rows):,} tokens are too few for {batch:,} streams of two tokens",
            where="batch",
            way_out=SMALLER_BATCH,
        )
    return torch.from_numpy(rows[: length * batch].reshape(batch, length).T.copy())


class Batches(BatchIterator):
    """The windows of parallel streams in order.

    ``for window in batches`` yields the rest of the current epoch. The position advances before a
    window is returned, so that `state_dict` inside the loop is the state after that window. Each
    target occurs once an epoch; the last window may be shorter.

    Parameters
    ----------
    columns : Tensor of int64
        The streams of `columns`, or some of them; shape (length, B).
    bptt : int
        Tokens of a window.
    random_lengths : bool
        Draw the length of each window as AWD-LSTM does: N(bptt, 5), with probability 0.05
        N(bptt/2, 5), at least 5. The draws depend on `seed` alone, so that no other random number
        changes the order of the data.

    Raises
    ------
    BadOption
        A window without tokens, or streams with fewer than two.
    """

    def __init__(
        self, columns: Tensor, bptt: int, *, random_lengths: bool = False, seed: int = 0
    ) -> None:
        parse_value(bptt, Positive, "bptt")
        if columns.ndim != 2 or columns.shape[0] < 2:
            raise BadOption(
                f"streams of shape {tuple(columns.shape)} have no target",
                where="batch",
                way_out=SMALLER_BATCH,
            )
        self.columns, self.bptt, self.random_lengths = columns, bptt, random_lengths
        self._generator = torch.Generator().manual_seed(seed)
        steps = len(columns) - 1
        mean = bptt * (1 - _HALVED / 2) if random_lengths else bptt
        super().__init__(steps, max(1, -int(-steps // mean)))

    def __iter__(self) -> Iterator[Window]:
        epoch = self.epoch
        while self.epoch == epoch:
            yield self.take()

    def take(self) -> Window:
        start = self.offset
        stop = min(start + self._draw_length(), self.steps_per_epoch)
        self.advance(stop - start)
        ratio = (stop - start) / self.bptt if self.random_lengths else 1.0
        return Window(
            self.columns[start:stop], self.columns[start + 1 : stop + 1], ratio, start == 0
        )

    def _draw_length(self) -> int:
        if not self.random_lengths:
            return self.bptt
        halved = torch.rand((), generator=self._generator).item() < _HALVED
        drawn = torch.randn((), generator=self._generator).item()
        mean = self.bptt / 2 if halved else self.bptt
        return max(_SHORTEST, int(mean + _DEVIATION * drawn))

    def state_dict(self) -> dict[str, Any]:
        own = {"generator": self._generator.get_state(), "bptt": self.bptt}
        return super().state_dict() | own

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if (state["steps"], state["bptt"]) != (self.steps_per_epoch, self.bptt):
            raise refuse_state(
                f"{state['steps']:,} steps in windows of {state['bptt']:,}",
                f"{self.steps_per_epoch:,} in windows of {self.bptt:,}",
            )
        super().load_state_dict(state)
        self._generator.set_state(state["generator"].cpu())


class RandomWindows(BatchIterator):
    """Shuffled windows of a text, without a state from window to window.

    Each epoch cuts the text into windows, from a first token that is drawn anew. The remainder,
    less than a batch, is dropped.

    `rows`: the training split, shape (n,). `batch`: windows of a step, over all processes. `bptt`:
    targets of a window.
    """

    def __init__(
        self, rows: Tensor, batch: int, bptt: int, *, group: ProcessGroup, seed: int
    ) -> None:
        # One window fewer than fit, so that all of them can be shifted.
        self.windows = max(0, len(rows) // bptt - 1)
        if self.windows < batch:
            raise BadOption(
                f"{len(rows):,} tokens are too few for {batch:,} windows of {bptt:,}",
                where="batch",
                way_out=SMALLER_BATCH,
            )
        self.rows, self.batch, self.bptt = rows, batch, bptt
        self.group, self.seed = group, seed
        super().__init__(self.windows // batch)

    def draw_order(self) -> None:
        generator = np.random.default_rng((self.seed, self.epoch))
        moved = int(generator.integers(self.bptt))
        self.starts = torch.from_numpy(moved + self.bptt * generator.permutation(self.windows))

    def take(self) -> Window:
        chosen = self.starts[self.offset * self.batch : (self.offset + 1) * self.batch]
        places = self.group.part(chosen + torch.arange(self.bptt + 1).unsqueeze(1))
        found = self.rows[places.to(self.rows.device)]
        self.advance()
        return Window(found[:-1], found[1:], 1.0, first=True)


#: Target of positions that pad the last stream.
IGNORED = -100


def streams(
    rows: IntArray,
    batch: int,
    bptt: int,
    device: torch.device | str,
    *,
    stride: int | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield windows in which each token but the first is a target once.

    `rows`: shape (n,). `batch`: streams; fewer if some would be empty. `bptt`: tokens of a window.
    `stride`: tokens from the end of one window to the end of the next; by default `bptt`. With
    less, windows overlap: tokens that are read again serve as context, and their targets are
    `IGNORED`. Yields shape (T, B), time first; targets that pad the last stream are `IGNORED`.
    """
    new = bptt if stride is None else stride
    for name, value in (("batch", batch), ("bptt", bptt), ("stride", new)):
        parse_value(value, Positive, name)
    predicted = len(rows) - 1
    if predicted < 1:
        raise BadOption(
            f"{len(rows):,} tokens leave nothing to predict",
            where="evaluation",
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
        masked = targets[first:stop].clone()
        masked[: start - first] = IGNORED
        yield inputs[first:stop].to(device), masked.to(device)

"""Windows that begin anywhere in a text, in an order that is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.training.data.batches import Window
from embgeo.training.loop.process import World


class RandomWindows:
    """A deterministic walk over windows of a text that can be resumed anywhere.

    Each epoch cuts the text into windows, from a first token that is drawn anew, and takes them in
    an order that is drawn; what is left over, less than a batch, is dropped. No state is carried
    from window to window. The draws depend on the seed and the epoch alone.

    Parameters
    ----------
    rows : Tensor of int64
        The training split, shape (n,).
    batch : int
        Windows of a step, of all processes.
    bptt : int
        Targets of a window.
    world : World
        Which of the windows are those of this process.

    Attributes
    ----------
    epoch : int
        How many epochs are finished.
    offset : int
        Batches of the present epoch that were taken.
    """

    def __init__(self, rows: Tensor, batch: int, bptt: int, *, world: World, seed: int) -> None:
        # One window less than there could be, so that all of them may be moved.
        self.windows = max(0, len(rows) // bptt - 1)
        if self.windows < batch:
            raise BadOption(
                f"{len(rows):,} tokens are too few for {batch:,} windows of {bptt:,}",
                where="batch",
                way_out="give a smaller batch or more text",
            )
        self.rows, self.batch, self.bptt = rows, batch, bptt
        self.world, self.seed = world, seed
        self.epoch = self.offset = 0
        self._starts = self._draw()

    def take(self) -> Window:
        """The windows of the next step; after those of an epoch come those of the next."""
        chosen = self._starts[self.offset * self.batch : (self.offset + 1) * self.batch]
        places = self.world.part(chosen + torch.arange(self.bptt + 1).unsqueeze(1))
        found = self.rows[places.to(self.rows.device)]
        self.offset += 1
        if self.offset == self.steps_per_epoch:
            self.epoch, self.offset = self.epoch + 1, 0
            self._starts = self._draw()
        return Window(found[:-1], found[1:], 1.0, first=True)

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch."""
        return self.windows // self.batch

    @property
    def windows_per_epoch(self) -> int:
        """The same: a batch has windows of one step."""
        return self.steps_per_epoch

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to go on with the same windows."""
        return {"epoch": self.epoch, "offset": self.offset}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken, with the same settings and text."""
        self.epoch, self.offset = int(state["epoch"]), int(state["offset"])
        self._starts = self._draw()

    def _draw(self) -> Tensor:
        """First tokens of all windows of the epoch."""
        generator = np.random.default_rng((self.seed, self.epoch))
        moved = int(generator.integers(self.bptt))
        return torch.from_numpy(moved + self.bptt * generator.permutation(self.windows))

"""Windows that begin anywhere in a text, in an order that is drawn."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.training.data.batches import DrawnBatches, Window
from embgeo.training.loop.process import World


class RandomWindows(DrawnBatches):
    """Windows of a text in an order that is drawn.

    Each epoch cuts the text into windows, from a first token that is drawn anew, and takes them in
    an order that is drawn; what is left over, less than a batch, is dropped. No state is carried
    from window to window.

    `rows`: the training split, shape (n,). `batch`: windows of a step, of all processes. `bptt`:
    targets of a window. `world`: which of the windows are those of this process.
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
        super().__init__(self.windows // batch)

    def take(self) -> Window:
        """The windows of the next step."""
        chosen = self.starts[self.offset * self.batch : (self.offset + 1) * self.batch]
        places = self.world.part(chosen + torch.arange(self.bptt + 1).unsqueeze(1))
        found = self.rows[places.to(self.rows.device)]
        self.advance()
        return Window(found[:-1], found[1:], 1.0, first=True)

    def draw_order(self) -> None:
        """First tokens of all windows of the epoch."""
        generator = np.random.default_rng((self.seed, self.epoch))
        moved = int(generator.integers(self.bptt))
        self.starts = torch.from_numpy(moved + self.bptt * generator.permutation(self.windows))

"""Losses of a model by blocks of the text, and a bootstrap over these blocks.

The interval over seeds is about other starts of the training, that over blocks about other texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.io.bounded.records import RecordFormat

#: Maximum number of blocks of a split; a split of fewer windows has a block for each window.
MOST_BLOCKS = 200


@dataclass(frozen=True, slots=True)
class TextLosses:
    """Losses of a model on the tokens of a split, in blocks in the order of the text.

    Attributes
    ----------
    split : str
        ``"valid"`` or ``"test"``.
    losses : tuple of float
        Sum of −ln p over the tokens of each block.
    tokens : tuple of int
        Number of tokens of each block.
    """

    LEAST_UNITS: ClassVar = 20
    DRAWS: ClassVar = 2_000

    split: str
    losses: tuple[float, ...]
    tokens: tuple[int, ...]

    def units(self, score: str) -> tuple[object, int] | None:
        """The numbers of tokens of the blocks; perplexity is about them."""
        return (self.tokens, len(self.tokens)) if score == "perplexity" else None

    @staticmethod
    def differences(held: Sequence[TextLosses], _score: str, draws: int) -> FloatArray:
        """Mean of ln(perplexity after / perplexity before) in each draw of blocks."""
        tokens = np.array(held[0].tokens, dtype=np.float64)
        n = len(tokens)
        steps = np.mean(
            [np.subtract(b.losses, a.losses) for a, b in zip(held[::2], held[1::2], strict=True)],
            axis=0,
        )
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), size=draws)
        return np.asarray(drawn @ steps / (drawn @ tokens))


TEXT_LOSSES = RecordFormat(
    "embgeo.losses",
    1,
    TextLosses,
    "losses.json",
    what="the losses of a run",
    again="train it again with: embgeo train",
)


def merge_blocks(split: str, windows: Sequence[tuple[float, int]]) -> TextLosses:
    """Join adjacent windows to at most `MOST_BLOCKS` blocks of summed losses and tokens."""
    kept = np.array([window for window in windows if window[1]], dtype=np.float64).reshape(-1, 2)
    blocks = np.array_split(kept, min(MOST_BLOCKS, max(len(kept), 1)))
    sums = [block.sum(axis=0) for block in blocks]
    return TextLosses(split, tuple(float(s[0]) for s in sums), tuple(int(s[1]) for s in sums))

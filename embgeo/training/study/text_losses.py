"""Losses of a model by blocks of the text, and a bootstrap over these blocks.

The spread over seeds says what another start of the training would have given; that over blocks of
the text what another text of the same kind would have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.spread import pair_seeds, take_percentiles

#: Blocks of a split; a split of fewer windows has as many blocks as windows.
MOST_BLOCKS = 200
#: Blocks without which no interval is given.
LEAST_BLOCKS = 20
DRAWS = 2_000
LOSSES_NAME = "losses.json"


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
        How many tokens each block has.
    """

    split: str
    losses: tuple[float, ...]
    tokens: tuple[int, ...]


TEXT_LOSSES = RecordFormat(
    "embgeo.losses",
    1,
    TextLosses,
    LOSSES_NAME,
    what="the losses of a run",
    again="train it again with: embgeo train",
)


def merge_blocks(split: str, windows: Sequence[tuple[float, int]]) -> TextLosses:
    """Join adjacent windows to at most `MOST_BLOCKS` blocks of summed losses and tokens."""
    kept = np.array([window for window in windows if window[1]], dtype=np.float64).reshape(-1, 2)
    blocks = np.array_split(kept, min(MOST_BLOCKS, max(len(kept), 1)))
    sums = [block.sum(axis=0) for block in blocks]
    return TextLosses(split, tuple(float(s[0]) for s in sums), tuple(int(s[1]) for s in sums))


def bootstrap_text(
    before: Mapping[int, TextLosses], after: Mapping[int, TextLosses]
) -> tuple[float, float] | None:
    """95 % interval of ln(perplexity after / perplexity before) over other texts.

    See :func:`pair_seeds`; None without a common seed, with too few blocks, or where the blocks are
    not the same.
    """
    held = pair_seeds(before, after)
    if not held or len({(one.split, one.tokens) for one in held}) > 1:
        return None
    tokens = np.array(held[0].tokens, dtype=np.float64)
    n = len(tokens)
    if n < LEAST_BLOCKS:
        return None
    steps = np.mean(
        [np.subtract(b.losses, a.losses) for a, b in zip(held[::2], held[1::2], strict=True)],
        axis=0,
    )
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), size=DRAWS)
    return take_percentiles(drawn @ steps / (drawn @ tokens))

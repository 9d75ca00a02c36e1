"""Validation and test splits of a text that comes without them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embgeo.training.data.encoding import EncodedText

#: Of the tokens, what validation and test get each.
SHARE = 0.05
#: With fewer units than this a draw would not come near the share.
_FEWEST_UNITS = 200

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TextSplit:
    """A text in three.

    Attributes
    ----------
    train, valid, test : array of int32
    how : str
        What was done, in words.
    """

    train: Ids
    valid: Ids
    test: Ids
    how: str


def cut_text(text: EncodedText, *, stream: bool, seed: int) -> TextSplit:
    """Take a twentieth of the tokens each for validation and for test.

    A stream has them at its end. Of a text in sentences, whole paragraphs are drawn (or lines,
    where there are fewer than 200 paragraphs), and each split keeps the order of the text; so a
    text that is sorted by subject has all of its subjects in each split. Where there are not even
    200 lines, the end is taken too.

    Parameters
    ----------
    text : Encoded
    stream : bool
    seed : int
        Of the draw.
    """
    units = {"paragraphs": text.paragraphs, "lines": text.lines}
    for name, ends in units.items():
        if len(ends) >= _FEWEST_UNITS and not stream:
            parts = _draw_splits(ends, len(text.ids), seed)
            train, valid, test = (
                text.ids[np.repeat(parts == k, np.diff(ends, prepend=0))] for k in range(3)
            )
            return TextSplit(train, valid, test, f"whole {name} drawn with seed {seed}")
    size = int(SHARE * len(text.ids))
    start = len(text.ids) - 2 * size
    train, valid, test = np.split(text.ids, [start, start + size])
    return TextSplit(train, valid, test, "the last tenth of the text, first validation, then test")


def _draw_splits(ends: npt.NDArray[np.int64], tokens: int, seed: int) -> npt.NDArray[np.int8]:
    """For each unit 0 (train), 1 (valid) or 2 (test)."""
    sizes = np.diff(ends, prepend=0)
    room = {1: SHARE * tokens, 2: SHARE * tokens}
    parts = np.zeros(len(ends), dtype=np.int8)
    for unit in np.random.default_rng(seed).permutation(len(ends)):
        for part in room:
            if sizes[unit] <= room[part]:
                room[part] -= sizes[unit]
                parts[unit] = part
                break
        if max(room.values()) < 1:
            break
    return parts

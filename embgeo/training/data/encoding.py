"""Files of a text as one array of numbers, and its cut into splits where it has none."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import UnreadableFile
from embgeo.training.data.layouts import SPLITS
from embgeo.training.data.text import pieces
from embgeo.training.data.vocabulary import END

#: Bounds what a mistaken or hostile text takes in memory.
MOST_TYPES = 10_000_000


class Words(dict[str, int]):
    """Words to numbers; a new word gets the next one.

    `path`: of the text, named in errors.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number

    def end(self) -> int:
        """Number of the word that ends a sentence."""
        return self[END]

    def encode(self, lines: list[str]) -> list[list[int]]:
        """Numbers of the words of each line; white space of any kind separates them."""
        if len(self) > MOST_TYPES:
            raise UnreadableFile(
                f"the text has more than {MOST_TYPES:,} different words",
                where=self.path,
                way_out="check that it is a text, or give a tokenizer.json",
            )
        return [list(map(self.__getitem__, line.split())) for line in lines]


#: Lines of a text to the numbers of their tokens. Lines of a stream have their line ends.
Encode = Callable[[list[str]], Sequence[Sequence[int]]]

#: Bounds what a mistaken or hostile text takes in memory.
MOST_TOKENS = 2**31


@dataclass(frozen=True, slots=True)
class EncodingRules:
    """What becomes of line ends.

    Attributes
    ----------
    end : int, optional
        Number of the token that is put at the end of each line; None for a stream.
    empty_lines : bool
        Whether an empty line is a line like others; otherwise it separates paragraphs and has no
        token.
    separator : int, optional
        Number of the token that is put at the end of each file.
    """

    end: int | None
    empty_lines: bool = False
    separator: int | None = None


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A text as numbers.

    Attributes
    ----------
    ids : array of int32
        Shape (n,).
    lines, paragraphs : array of int64
        Where they end, as places in `ids`, ascending. A paragraph ends at an empty line and with
        its file.
    """

    ids: npt.NDArray[np.int32]
    lines: npt.NDArray[np.int64]
    paragraphs: npt.NDArray[np.int64]


def encode_files(
    paths: Sequence[Path], encode: Encode, rules: EncodingRules, *, limit: int | None = None
) -> EncodedText:
    """Read files one after the other, up to `limit` tokens in all."""
    text = _Growing(rules)
    for path in paths:
        for piece in pieces(path):
            # Not splitlines, which also cuts at form feeds, U+0085, U+2028 and others.
            *lines, rest = piece.split("\n")
            line_end = "\n" if rules.end is None else ""
            for ids in encode([line + line_end for line in lines]):
                text.ids.extend(ids)
                text.end_line()
            if rest:
                text.ids.extend(*encode([rest]))
            if limit is not None and len(text.ids) >= limit:
                del text.ids[limit:]
                return text.finished()
            if len(text.ids) > MOST_TOKENS:
                raise UnreadableFile(
                    f"the text has more than {MOST_TOKENS:,} tokens",
                    where=path,
                    way_out="take its beginning with tokens = N",
                )
        text.end_file()
    return text.finished()


class _Growing:
    def __init__(self, rules: EncodingRules) -> None:
        self.rules = rules
        self.ids = array("i")
        self.lines = array("q", [0])
        self.paragraphs = array("q", [0])

    def end_line(self) -> None:
        if len(self.ids) > self.lines[-1] or self.rules.empty_lines:
            if self.rules.end is not None:
                self.ids.append(self.rules.end)
            self.lines.append(len(self.ids))
        else:
            self._end_paragraph()

    def end_file(self) -> None:
        if len(self.ids) > self.lines[-1]:
            self.end_line()
        if self.rules.separator is not None:
            self.ids.append(self.rules.separator)
        self._end_paragraph()

    def finished(self) -> EncodedText:
        ids = np.frombuffer(self.ids, dtype=np.int32) if self.ids else np.empty(0, np.int32)
        return EncodedText(ids, np.array(self.lines[1:]), np.array(self.paragraphs[1:]))

    def _end_paragraph(self) -> None:
        if len(self.ids) > self.paragraphs[-1]:
            self.paragraphs.append(len(self.ids))


#: Of the tokens, what validation and test get each.
SHARE = 0.05
#: Tokens of a piece of the training text that keeps its order.
PIECE = 1000
#: With fewer units than this a draw would not come near the share.
_FEWEST_UNITS = 200


def cut_text(
    text: EncodedText, *, stream: bool, seed: int, shuffle: bool = False
) -> tuple[dict[str, npt.NDArray[np.int32]], str]:
    """Take a twentieth of the tokens each for validation and for test, and say how.

    A stream has them at its end. Of a text in sentences, whole paragraphs are drawn (or lines,
    where there are fewer than 200 paragraphs), so that a text which is sorted by subject has all
    of its subjects in each split. Where there are not even 200 lines, the end is taken too.

    Parameters
    ----------
    seed : int
        Of the draws.
    shuffle : bool
        Whether pieces of the drawn training text, whole paragraphs (or lines) of some 1,000 tokens
        together, are put into an order that is drawn, so that the subject of its end does not
        decide the last steps. Otherwise each split keeps the order of the text.
    """
    units = {"paragraphs": text.paragraphs, "lines": text.lines}
    for name, ends in units.items():
        if len(ends) >= _FEWEST_UNITS and not stream:
            parts = _draw_splits(ends, len(text.ids), seed)
            sizes = np.diff(ends, prepend=0)
            cut = {split: text.ids[np.repeat(parts == k, sizes)] for k, split in enumerate(SPLITS)}
            how = f"whole {name} drawn with seed {seed}"
            if shuffle:
                cut["train"] = shuffle_pieces(cut["train"], sizes[parts == 0], seed)
                how += f"; the training text in pieces of {PIECE:,} tokens, shuffled"
            return cut, how
    size = int(SHARE * len(text.ids))
    start = len(text.ids) - 2 * size
    cut = dict(zip(SPLITS, np.split(text.ids, [start, start + size]), strict=True))
    return cut, "the last tenth of the text, first validation, then test"


def shuffle_pieces(
    ids: npt.NDArray[np.int32], sizes: npt.NDArray[np.int64], seed: int
) -> npt.NDArray[np.int32]:
    """Units of these sizes, in pieces of about `PIECE` tokens, in an order that is drawn."""
    starts = np.cumsum(sizes) - sizes
    firsts = starts[np.flatnonzero(np.diff(starts // PIECE)) + 1]
    pieces = np.split(ids, firsts)
    # Another draw than that of the splits, which it leaves as they are.
    order = np.random.default_rng((seed, 1)).permutation(len(pieces))
    return np.concatenate([pieces[place] for place in order])


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

"""Texts as arrays of tokens: files, sequences, and the cut of a text without splits."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.training.data.layouts import SPLITS
from embgeo.training.data.text import pieces

Ids = npt.NDArray[np.int32]
#: Bound the memory that a mistaken or untrusted text takes.
MOST_TYPES, MOST_TOKENS = 10_000_000, 2**31
FEWER_TOKENS = f"set data.tokens with {argument('settings', 'data.tokens=N')}"


class Words(dict[str, int]):
    """The number of each word; a new word gets the next one. Errors name `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number

    def encode(self, words: Iterable[str]) -> list[int]:
        """Return the numbers of words."""
        if len(self) > MOST_TYPES:
            raise UnreadableFile(
                f"the text has more than {MOST_TYPES:,} different words",
                where=self.path,
                way_out=FEWER_TOKENS,
            )
        return list(map(self.__getitem__, words))

    def encode_lines(self, lines: list[str], _path: Path) -> list[list[int]]:
        """Return the numbers of the words of each line, which white space separates."""
        return [self.encode(line.split()) for line in lines]


#: Lines of a file to the numbers of their tokens. Lines of a stream have their line ends.
Encode = Callable[[list[str], Path], Iterable[Sequence[int]]]


@dataclass(frozen=True, slots=True)
class EncodedText:
    """The tokens of a text, shape (n,), and where its lines and paragraphs end among them.

    A paragraph ends at an empty line and at the end of its file.
    """

    ids: Ids
    lines: IntArray
    paragraphs: IntArray


def encode_files(
    paths: Sequence[Path],
    encode: Encode,
    *,
    end: int | None,
    empty_lines: bool = False,
    separator: int | None = None,
    limit: int | None = None,
) -> EncodedText:
    """Encode files one after the other.

    `end`: the token to put at the end of each line; None for a stream. `empty_lines`: whether an
    empty line gets an end, too; otherwise it only separates paragraphs. `separator`: a token to put
    at the end of each file. `limit`: tokens to read at most; paragraphs are then not known.
    """
    ids, lines, paragraphs = array("i"), array("q", [0]), array("q", [0])

    def end_line() -> None:
        if len(ids) > lines[-1] or empty_lines:
            if end is not None:
                ids.append(end)
            lines.append(len(ids))
        elif len(ids) > paragraphs[-1]:
            paragraphs.append(len(ids))

    line_end = "\n" if end is None else ""
    for path in paths:
        for piece in pieces(path):
            # Not splitlines, which also cuts at form feeds, U+0085, U+2028 and others.
            *whole, rest = piece.split("\n")
            for own in encode([line + line_end for line in whole], path):
                ids.extend(own)
                end_line()
            if rest:
                ids.extend(*encode([rest], path))
            if limit is not None and len(ids) >= limit:
                del ids[limit:]
                ends = np.array(lines[1:])
                return EncodedText(np.asarray(ids), np.append(ends[ends < limit], limit), ends[:0])
            if len(ids) > MOST_TOKENS:
                raise UnreadableFile(
                    f"the text has more than {MOST_TOKENS:,} tokens",
                    where=path,
                    way_out=FEWER_TOKENS,
                )
        if len(ids) > lines[-1]:
            end_line()
        if separator is not None:
            ids.append(separator)
        if len(ids) > paragraphs[-1]:
            paragraphs.append(len(ids))
    return EncodedText(np.asarray(ids), np.array(lines[1:]), np.array(paragraphs[1:]))


#: Share of the tokens for validation, and for test.
SHARE = 0.05
#: Tokens that stay together when the training text is shuffled.
PIECE = 1000
#: Fewer units than this cannot be drawn close to the share.
_FEWEST_UNITS = 200


def cut_text(text: EncodedText, *, seed: int) -> tuple[dict[str, Ids], str]:
    """Cut off a twentieth of the tokens each for validation and test, and say how.

    Whole paragraphs are drawn (or lines, with fewer than 200 paragraphs), so that each split of a
    text that is sorted by subject has all subjects. Pieces of the training text, whole paragraphs
    (or lines) of some 1,000 tokens together, are shuffled, so that the subject of its end does not
    decide the last steps. A text with fewer than 200 lines has its splits at the end.
    """
    units = {"paragraphs": text.paragraphs, "lines": text.lines}
    for name, ends in units.items():
        if len(ends) >= _FEWEST_UNITS:
            parts = _draw_splits(ends, len(text.ids), seed)
            sizes = np.diff(ends, prepend=0)
            cut = {split: text.ids[np.repeat(parts == k, sizes)] for k, split in enumerate(SPLITS)}
            cut["train"] = shuffle_pieces(cut["train"], sizes[parts == 0], seed)
            return cut, (
                f"whole {name} drawn with seed {seed}; the training text in pieces of {PIECE:,} "
                "tokens, shuffled"
            )
    size = int(SHARE * len(text.ids))
    start = len(text.ids) - 2 * size
    cut = dict(zip(SPLITS, np.split(text.ids, [start, start + size]), strict=True))
    return cut, "the last tenth of the text, first validation, then test"


def shuffle_pieces(ids: Ids, sizes: IntArray, seed: int) -> Ids:
    """Shuffle pieces of about `PIECE` tokens, cut between units of these sizes."""
    starts = np.cumsum(sizes) - sizes
    firsts = starts[np.flatnonzero(np.diff(starts // PIECE)) + 1]
    pieces = np.split(ids, firsts)
    # Independent of the draw of the splits.
    order = np.random.default_rng((seed, 1)).permutation(len(pieces))
    return np.concatenate([pieces[place] for place in order])


def _draw_splits(ends: IntArray, tokens: int, seed: int) -> npt.NDArray[np.int8]:
    """Draw 0 (train), 1 (valid) or 2 (test) for each unit."""
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


@dataclass(frozen=True, slots=True)
class RowSequences:
    """Documents or sentences as rows of a vocabulary, one after the other."""

    #: All tokens; shape (T,).
    rows: npt.NDArray[np.integer[Any]]
    #: Where each sequence begins in `rows`, and where the last one ends; shape (n + 1,).
    ends: IntArray

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def lengths(self) -> IntArray:
        """Tokens of each sequence; shape (n,)."""
        return np.diff(self.ends)

    def pad(self, chosen: IntArray) -> tuple[npt.NDArray[np.integer[Any]], IntArray]:
        """Get some sequences, each padded with its last row to shape (B, T), and their lengths."""
        begins = self.ends[chosen]
        lengths = self.ends[chosen + 1] - begins
        places = begins[:, None] + np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)
        return self.rows[places], lengths

    def within(self, tokens: int | None) -> IntArray:
        """Return the places of the sequences that lie whole in the first tokens, ascending.

        The first of the sequences in an order that is drawn with seed 0: files are often sorted by
        class or by source.
        """
        if tokens is None:
            return np.arange(len(self))
        order = np.random.default_rng(0).permutation(len(self))
        places = np.sort(order[np.cumsum(self.lengths[order]) <= tokens])
        if not len(places):
            cause = f"none of the {len(self):,} texts to train on has so few tokens"
            way_out = f"raise data.tokens with {argument('settings', 'data.tokens=N')}"
            raise BadOption(cause, where="data", way_out=way_out)
        return places

    def select(self, chosen: IntArray) -> RowSequences:
        """Return some sequences, given in ascending order."""
        mask = np.zeros(len(self), dtype=bool)
        mask[chosen] = True
        rows = self.rows[np.repeat(mask, self.lengths)]
        return RowSequences(rows, np.concatenate([[0], np.cumsum(self.lengths[chosen])]))


def join_sequences(sequences: Iterable[Iterable[int]], *, end: int | None = None) -> RowSequences:
    """Put sequences into one array, each followed by the row `end` if there is one."""
    rows, ends = array("i"), array("q", [0])
    for sequence in sequences:
        rows.extend(sequence)
        if end is not None:
            rows.append(end)
        ends.append(len(rows))
    return RowSequences(np.array(rows, dtype=np.int32), np.array(ends))

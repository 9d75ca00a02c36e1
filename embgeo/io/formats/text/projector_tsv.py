"""TensorBoard projector's ``tensors.tsv``: a row of numbers a line, labels in a file next to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import map_file
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.formats.text.blocks import (
    MAX_COLUMNS,
    fill_rows,
    is_plain_number,
    line_blocks,
    numbers_in,
)
from embgeo.io.formats.text.projector_config import metadata_of

NAME = "projector tsv"
RECOGNIZED = "lines of nothing but numbers between tabs, the first of which are no row numbers"
READ = "numbers in memory or a temporary file"
EXTRA = ""

_WHOLE = re.compile(rb"[+-]?\d+")


def sniff(head: bytes) -> bool:
    """Whether every line consists of numbers between tabs, and none is only a row's number."""
    lines = head.split(b"\n")
    if len(lines) > 1:
        lines.pop()  # cut off, or empty
    rows = [line.rstrip(b"\r").split(b"\t") for line in lines]
    if len(lines) == 1:
        rows = [rows[0][:-1]] if len(rows[0]) > 2 else rows
    widths = {len(row) for row in rows}
    if len(widths) != 1 or (len(lines) > 1 and widths == {1}) or len(rows[0]) < 2:
        return False
    if not all(is_plain_number(cell) for row in rows for cell in row):
        return False
    return not (
        all(_WHOLE.fullmatch(row[0]) for row in rows)
        and any(not _WHOLE.fullmatch(cell) for row in rows for cell in row[1:])
    )


def open_checkpoint(path: Path) -> Checkpoint:
    """The one matrix of the file, with labels from the metadata next to it.

    Raises
    ------
    UnreadableFile
        Lines of different length.
    """
    map_file(path)  # refuses what is not a regular file
    n, d = _shape(path)
    metadata = metadata_of(path, n)
    return Checkpoint(
        path=path,
        format=NAME,
        tensors=(Tensor("vectors", (n, d), "float32", partial(_numbers, path, n, d)),),
        files=(path,),
        tokens=metadata.tokens,
        tokens_source=metadata.source,
        notes=metadata.notes,
        counts=metadata.counts,
        counts_source=f"counts in {metadata.source}" if metadata.counts is not None else "",
    )


def _shape(path: Path) -> tuple[int, int]:
    n, d = 0, 0
    for start, lines in line_blocks(path):
        for number, line in enumerate(lines, start):
            if not line.strip():
                continue
            width = line.count(b"\t") + 1
            d = d or width
            if width != d or width > MAX_COLUMNS:
                raise Damaged(
                    f"line {number:,} has {width:,} numbers where {min(d, MAX_COLUMNS):,} fit",
                    "every line needs the same number of them; it may be cut off there",
                )
            n += 1
    if not n:
        raise Damaged("it holds no numbers")
    return n, d


def _numbers(path: Path, n: int, d: int) -> npt.NDArray[np.float32]:
    return fill_rows(_blocks(path, d), (n, d), path)


def _blocks(path: Path, d: int) -> Iterator[npt.NDArray[np.float32]]:
    for start, lines in line_blocks(path):
        try:
            yield numbers_in([line for line in lines if line.strip()], b"\t", 0, d)
        except ValueError:
            last = start + len(lines) - 1
            raise UnreadableFile(
                f"lines {start:,} to {last:,} hold something that is not a number",
                where=path,
                way_out="every line has to be numbers between tabs",
            ) from None

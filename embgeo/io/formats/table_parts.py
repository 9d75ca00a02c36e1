"""Parquet datasets: tables in several files, in the order of their names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.io.bounded.guard import refuse
from embgeo.io.bounded.maps import Array
from embgeo.io.checkpoint import Checkpoint, RowRanges, Tensor
from embgeo.io.formats.parts import Box, put_together

ENDING = ".parquet"


def is_dataset(files: Sequence[str]) -> bool:
    return len(files) > 1 and all(name.endswith(ENDING) for name in files)


def join_tables(folder: Path, tables: Sequence[Checkpoint]) -> Checkpoint:
    """Concatenate tables; tokens and counts are kept if all of them have some."""
    filled = [table for table in tables if any(t.shape[:1] != (0,) for t in table.tensors)]
    by_name = [{tensor.name: tensor for tensor in table.tensors} for table in filled]
    columns = [
        [own[name] for own in by_name]
        for name in (by_name[0] if filled else ())
        if all(name in own for own in by_name) and len({_kind(own[name]) for own in by_name}) == 1
    ]
    columns = [parts for parts in columns if parts[0].ranges is not None]
    if not columns:
        cause = "its Parquet files have no column of vectors in common"
        raise refuse(folder, cause, "name one of the files")
    tokens = [table.tokens for table in filled if table.tokens is not None]
    counts = [table.counts for table in filled if table.counts is not None]
    has_tokens, has_counts = len(tokens) == len(filled), len(counts) == len(filled)
    return Checkpoint(
        folder,
        tables[0].format,
        tuple(map(_join_column, columns)),
        tuple(file for table in tables for file in table.files),
        tokens=tuple(one for own in tokens for one in own) if has_tokens else None,
        tokens_source=filled[0].tokens_source,
        notes=(
            f"rows of {len(tables):,} files in the order of their names",
            *dict.fromkeys(note for table in tables for note in table.notes),
        ),
        counts=np.concatenate(counts) if has_counts else None,
        counts_source=filled[0].counts_source,
    )


def _kind(tensor: Tensor) -> tuple[object, ...]:
    """What has to agree in all files of a table."""
    return tensor.shape[1:], tensor.dtype, tensor.columns, tensor.ranges is None


def _join_column(parts: Sequence[Tensor]) -> Tensor:
    rows, width = sum(part.shape[0] for part in parts), parts[0].shape[1]
    read = partial(_read, tuple(parts))
    whole = partial(read, 0, rows)
    known = [part.ranges.identity for part in parts if part.ranges is not None]
    ranges = RowRanges(read, hashlib.sha256("\n".join(known).encode()).hexdigest())
    return replace(parts[0], shape=(rows, width), open=whole, ranges=ranges)


def _read(parts: Sequence[Tensor], start: int, stop: int, rows: IntArray | None = None) -> Array:
    """Rows `start` to `stop` of the table, or those of `rows` among them."""
    pieces: list[tuple[Box, Callable[[], Array]]] = []
    width, end, n = parts[0].shape[1], 0, 0
    for part in parts:
        first, end = end, end + part.shape[0]
        low, high = max(start, first), min(stop, end)
        chosen = None if rows is None else rows[(low <= rows) & (rows < high)] - first
        count = high - low if chosen is None else len(chosen)
        if count > 0 and part.ranges is not None:
            read = partial(part.ranges.read, low - first, high - first, chosen)
            pieces.append((((n, 0), (count, width)), read))
            n += count
    return put_together(pieces, (n, width), parts[0].dtype)

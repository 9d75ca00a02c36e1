"""TensorBoard's projector: tensors as lines of numbers or as float32 without a header.

``tensors.tsv`` has a row of numbers on each line; a configuration gives the shape of ``.bytes``.
Labels are in a metadata file next to either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.companions import is_foreign_link
from embgeo.io.bounded.guard import Damaged, short
from embgeo.io.bounded.maps import Bytes, count, map_file
from embgeo.io.bounded.small_files import (
    HEAD_BYTES,
    decode_text,
    read_bytes,
    read_text,
    safe_text,
    split_lines,
)
from embgeo.io.checkpoint import Checkpoint, stored_tensor
from embgeo.io.formats.text.blocks import is_plain_number, line_blocks
from embgeo.io.formats.text.table import TableLayout, read_table
from embgeo.io.labels import side_tables
from embgeo.io.labels.counts_file import whole_counts

NAME = "projector"
RECOGNIZED = (
    "tsv: numbers between tabs without row numbers; bytes: a projector_config.pbtxt or .json next "
    "to it that gives its shape"
)
READ = "tsv: numbers are read into memory or a temporary file; bytes: mapped"
EXTRA = ""

_WHOLE = re.compile(rb"[+-]?\d+")


def sniff(head: bytes) -> bool:
    """Whether every line consists of numbers between tabs and does not begin with its number."""
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


def belongs(path: Path) -> bool:
    """Whether a configuration next to the file gives it a shape of two dimensions."""
    entry = entry_for(path)
    return entry is not None and len(entry.shape) == 2


def open_checkpoint(path: Path) -> Checkpoint:
    data = map_file(path)
    is_bytes = belongs(path) and not sniff(data[:HEAD_BYTES].tobytes())
    if is_bytes:
        checkpoint = _from_bytes(path, data)
    else:
        _, lines = next(line_blocks(path), (1, []))
        first = next((line for line in lines if line.strip()), b"")
        layout = TableLayout(b"\t", False, 0, first.count(b"\t") + 1)
        checkpoint = replace(read_table(path, layout), format="projector tsv")
    metadata = _find_metadata(path)
    return checkpoint if metadata is None else _with_metadata(checkpoint, metadata)


def _from_bytes(path: Path, data: Bytes) -> Checkpoint:
    entry = entry_for(path)
    shape = () if entry is None else entry.shape
    if len(shape) != 2 or 4 * count(shape) != len(data):
        raise Damaged(
            f"the configuration's shape {'×'.join(map(str, shape))} does not fit "
            f"its {len(data):,} bytes",
            "put the configuration of the same run next to it",
        )
    tensor = stored_tensor("vectors", data, "float32", shape)
    return Checkpoint(path, "projector bytes", (tensor,), (path,))


_TEXT_CONFIGURATION = "projector_config.pbtxt"
_JSON_CONFIGURATIONS = "*projector_config.json"
_MOST_CONFIGURATIONS = 10
_LARGEST_CONFIGURATION = 256 * 2**10
#: Unterminated and long strings are matched in pieces, so that the time is linear.
_PART = re.compile(
    r'"((?:[^"\\]|\\.){0,1000})"?|\'((?:[^\'\\]|\\.){0,1000})\'?|([\w.+-]+)|([{}:<>])|#[^\n]*'
)

#: Parts of names of tensor files, in place of "metadata" in the name of the metadata file.
_TENSOR_WORDS = ("tensors", "tensor", "vectors")
_METADATA = "metadata.tsv"


@dataclass(frozen=True, slots=True)
class ConfiguredTensor:
    """A tensor file in a configuration; paths without their folders."""

    tensor: str
    metadata: str
    shape: tuple[int, ...]


def entry_for(path: Path) -> ConfiguredTensor | None:
    return next((entry for entry in _entries(path.parent) if entry.tensor == path.name), None)


def _entries(folder: Path) -> Iterator[ConfiguredTensor]:
    found = sorted(folder.glob(_JSON_CONFIGURATIONS))[:_MOST_CONFIGURATIONS]
    for file in (folder / _TEXT_CONFIGURATION, *found):
        if not file.is_file() or is_foreign_link(file):
            continue
        try:
            text = decode_text(read_bytes(file, _LARGEST_CONFIGURATION), file)
        except UnreadableFile:
            continue
        yield from _from_json(text) if file.suffix == ".json" else _from_text(text)


def _from_json(text: str) -> Iterator[ConfiguredTensor]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return
    listed = data.get("embeddings") if isinstance(data, dict) else None
    for fields in listed if isinstance(listed, list) else ():
        if isinstance(fields, dict):
            shape = fields.get("tensorShape", fields.get("tensor_shape"))
            yield _entry(
                fields.get("tensorPath", fields.get("tensor_path")),
                fields.get("metadataPath", fields.get("metadata_path")),
                shape if isinstance(shape, list) else [],
            )


def _from_text(text: str) -> Iterator[ConfiguredTensor]:
    """The ``embeddings { … }`` blocks of a protocol buffer in text form."""
    depth, key = 0, ""
    fields: dict[str, Any] = {}
    shape: list[int] = []
    for part in _PART.finditer(text):
        double, single, word, sign = part.groups()
        if sign in ("{", "<"):
            depth += 1
            if depth == 1:
                fields, shape = {}, []
        elif sign in ("}", ">"):
            depth -= 1
            if depth == 0:
                yield _entry(fields.get("tensor_path"), fields.get("metadata_path"), shape)
        elif depth == 1 and key == "tensor_shape" and word and word.isdecimal():
            shape.append(int(word[:18]))
            key = ""
        elif depth == 1 and key and (double is not None or single is not None):
            fields[key] = double if double is not None else single
        elif word:
            key = word


def _entry(tensor: object, metadata: object, shape: list[Any]) -> ConfiguredTensor:
    sizes = tuple(size for size in shape if type(size) is int and 0 < size < 2**40)
    return ConfiguredTensor(_file_name(tensor), _file_name(metadata), sizes)


def _file_name(value: object) -> str:
    """The name without folders: only files in the same folder are read."""
    return PurePosixPath(value).name if isinstance(value, str) and value.isprintable() else ""


def _find_metadata(path: Path) -> Path | None:
    entry = entry_for(path)
    names = [entry.metadata] if entry is not None and entry.metadata else []
    if not names:
        names = [path.name.replace(w, "metadata") for w in _TENSOR_WORDS if w in path.name]
        names.append(_METADATA)
    for name in names:
        file = path.with_name(name)
        if file.suffix == ".tsv" and file.is_file() and file != path and not is_foreign_link(file):
            return file
    return None


def _with_metadata(checkpoint: Checkpoint, file: Path) -> Checkpoint:
    """Add labels and counts of the rows, or a note on why the metadata file is not used."""
    n, source = checkpoint.tensors[0].shape[0], f"{short(file.name)} next to"
    try:
        lines = split_lines(read_text(file))
    except UnreadableFile as error:
        return replace(checkpoint, notes=(f"{source} it is not used: {error.cause}",))
    columns: tuple[int, int | None] | None = None
    cells = list(side_tables.split_cells(lines))
    # By the documentation of the projector only files of several columns have a header.
    if cells and len(cells[0]) > 1:
        columns = side_tables.find_columns(cells[0])
        cells = cells[1:]
    token_column, count_column = columns or (0, None)
    if len(cells) != n:
        note = f"{source} it labels {len(cells):,} rows, not {n:,}: not used"
        return replace(checkpoint, notes=(note,))
    if any(len(row) <= token_column for row in cells):
        return replace(checkpoint, notes=(f"{source} it has lines without a label: not used",))
    tokens, _ = side_tables.unescape([row[token_column] for row in cells], file)
    counts = None
    if count_column is not None:
        texts = (row[count_column] if count_column < len(row) else "" for row in cells)
        counts = whole_counts(texts)
    return replace(
        checkpoint,
        tokens=tuple(safe_text(token) for token in tokens),
        tokens_source=f"{source} the file",
        counts=None if counts is None else np.array(counts, dtype=np.float64),
        counts_source=f"counts in {source} the file",
    )

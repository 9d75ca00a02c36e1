"""TensorBoard's embedding projector: a folder to point it at.

``tensors.tsv`` (or ``tensors.bytes``: bare float32 numbers), ``metadata.tsv`` (a line a row, with a
header where it has several columns) and ``projector_config.pbtxt``, which names both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded.saved import is_record
from embgeo.publish.export.escaping import protobuf_text, tsv_cell
from embgeo.publish.export.target import FORMAT, Labels, Request, Target, Vectors

CONFIGURATION = "projector_config.pbtxt"
METADATA = "metadata.tsv"
RECORD = "provenance.json"
#: What the projector looks at; further points are not shown.
SHOWN_POINTS = 100_000


def write(request: Request, path: Path) -> None:
    vectors = request.vectors
    assert vectors is not None
    path.mkdir()
    tensors = path / ("tensors.bytes" if request.binary else "tensors.tsv")
    with tensors.open("wb") as stream:
        for block in vectors.blocks():
            stream.write(binary_block(block) if request.binary else text_block(block))
    with (path / METADATA).open("wb") as stream:
        stream.writelines(metadata_lines(vectors.labels))
    (path / CONFIGURATION).write_text(configuration(vectors, tensors.name), "ascii", newline="\n")
    record = json.dumps(request.record, indent=1, allow_nan=False) + "\n"
    (path / RECORD).write_text(record, "ascii", newline="\n")


def text_block(block: npt.NDArray[np.float64]) -> bytes:
    """Numbers between tabs; nine digits, which give every float32 back."""
    with np.errstate(over="ignore"):
        rows = block.astype(np.float32).tolist()
    return "".join("\t".join(f"{x:.9g}" for x in row) + "\n" for row in rows).encode()


def binary_block(block: npt.NDArray[np.float64]) -> bytes:
    with np.errstate(over="ignore"):
        return block.astype("<f4").tobytes()


def metadata_lines(labels: Labels) -> Iterator[bytes]:
    """Labels with tabs and line ends spelled out; one column alone must have no header."""
    if len(labels.names) > 1:
        yield ("\t".join(map(tsv_cell, labels.names)) + "\n").encode()
    for row in zip(*labels.columns, strict=True):
        yield ("\t".join(map(cell, row)) + "\n").encode()


def cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    return tsv_cell(value) if isinstance(value, str) else str(value)


def configuration(vectors: Vectors, tensors: str) -> str:
    """The projector's configuration as a protocol buffer in text form."""
    return (
        "embeddings {\n"
        f"  tensor_name: {protobuf_text(vectors.name)}\n"
        f"  tensor_path: {protobuf_text(tensors)}\n"
        f"  tensor_shape: {vectors.n}\n"
        f"  tensor_shape: {vectors.d}\n"
        f"  metadata_path: {protobuf_text(METADATA)}\n"
        "}\n"
    )


def is_ours(path: Path) -> bool:
    return is_record(path / RECORD, FORMAT)


TARGET = Target("projector", ".projector", write, is_ours, needs_vectors=True)

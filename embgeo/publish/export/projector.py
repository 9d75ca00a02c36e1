"""A folder for TensorBoard's embedding projector.

``tensors.tsv`` (or ``tensors.bytes``: bare float32 numbers), ``metadata.tsv`` (a line a row, with a
header if it has several columns) and ``projector_config.pbtxt``, which names both.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.files.records import as_text
from embgeo.files.saved import is_formula, is_record, write_file
from embgeo.publish.export.escaping import protobuf_text, tsv_cell
from embgeo.publish.export.target import FORMAT, Request, Target, Vectors

CONFIGURATION = "projector_config.pbtxt"
METADATA = "metadata.tsv"
TENSORS = ("tensors.tsv", "tensors.bytes")
RECORD = "provenance.json"
FILES = (*TENSORS, METADATA, CONFIGURATION, RECORD)
#: The projector shows no further points.
SHOWN_POINTS = 100_000


def write(request: Request, path: Path) -> None:
    vectors = request.vectors
    assert vectors is not None
    path.mkdir(exist_ok=True)
    tensors = TENSORS[request.binary]
    write_file(path / tensors, (render_block(one, request.binary) for one in vectors.blocks()))
    write_file(path / METADATA, metadata_lines(vectors.labels))
    write_file(path / CONFIGURATION, configuration(vectors, tensors))
    write_file(path / RECORD, as_text(request.record))


def render_block(block: npt.NDArray[np.float64], binary: bool) -> bytes:
    with np.errstate(over="ignore"):
        short = block.astype("<f4")
    if binary:
        return short.tobytes()
    # Nine digits give every float32 back.
    return "".join("\t".join(f"{x:.9g}" for x in row) + "\n" for row in short.tolist()).encode()


def metadata_lines(labels: Mapping[str, Sequence[Any]]) -> Iterator[bytes]:
    """Yield labels between tabs; a single column must have no header."""
    if len(labels) > 1:
        yield ("\t".join(map(tsv_cell, labels)) + "\n").encode()
    for row in zip(*labels.values(), strict=True):
        yield ("\t".join(map(render_cell, row)) + "\n").encode()


def render_cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    if not isinstance(value, str):
        return str(value)
    # People open the table as a spreadsheet, too.
    return tsv_cell(f"'{value}" if is_formula(value) else value)


def configuration(vectors: Vectors, tensors: str) -> str:
    """Return the configuration as a protocol buffer in text form."""
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

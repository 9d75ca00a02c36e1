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
from embgeo.publish.export.target import FORMAT, Request, Target, Vectors

CONFIGURATION = "projector_config.pbtxt"
METADATA = "metadata.tsv"
TENSORS = ("tensors.tsv", "tensors.bytes")
RECORD = "provenance.json"
FILES = (*TENSORS, METADATA, CONFIGURATION, RECORD)
#: The projector shows no further points.
SHOWN_POINTS = 100_000
_NAMED = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


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


def tsv_cell(text: str) -> str:
    r"""Return text between tabs, with the escapes ``\n``, ``\t``, ``\r`` and ``\\``.

    Other controls, line separators and lone surrogates become ``\\uXXXX``, with two backslashes:
    a reader that resolves the four escapes sees the code.

    >>> print(tsv_cell("a\tb\\c"), tsv_cell("\x00"))
    a\tb\\c \\u0000
    """
    return "".join(
        _NAMED.get(c) or (c if c.isprintable() or c in "\u00a0\u3000" else f"\\\\u{ord(c):04x}")
        for c in text
    )


def protobuf_text(text: str) -> str:
    r"""Return a string of a protocol buffer in text form; bytes beyond ASCII are octal.

    >>> print(protobuf_text('a"b'), protobuf_text("é"))
    "a\"b" "\303\251"
    """
    body = "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "backslashreplace")
    )
    return f'"{body}"'

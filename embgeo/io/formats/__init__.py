"""All formats, in the order in which they are tried."""

from __future__ import annotations

from pathlib import Path

from embgeo.io.formats import (
    arrow,
    flax,
    gensim,
    gguf,
    hdf5,
    npy,
    npz,
    onnx,
    pickled,
    safetensors,
    sharded,
    tensorflow,
)
from embgeo.io.formats import fasttext as fasttext_model
from embgeo.io.formats.format import Described, Format, NeighborFormat, find_plugin
from embgeo.io.formats.text import (
    glove_binary,
    json_vectors,
    projector,
    table,
    vector_column,
    word2vec_binary,
    word_vectors,
)
from embgeo.io.formats.torch import (
    distributed_checkpoint,
    legacy_checkpoint,
    tar_checkpoint,
    zip_checkpoint,
)

#: Formats recognized by their first bytes: those with a magic number first, text formats last.
FORMATS: tuple[Format, ...] = (
    zip_checkpoint,
    npz,
    npy,
    legacy_checkpoint,
    tar_checkpoint,
    distributed_checkpoint,
    gguf,
    hdf5,
    tensorflow,
    onnx,
    flax,
    fasttext_model,
    arrow,
    safetensors,
    sharded,
    gensim,
    pickled,
    word2vec_binary,
    json_vectors,
    vector_column,
    table,
    projector,
    word_vectors,
)

#: Formats without a header, tried for files that none of `FORMATS` recognizes.
NEIGHBOR_FORMATS: tuple[NeighborFormat, ...] = (projector, glove_binary)


def find_format(path: Path, head: bytes) -> Described | None:
    """The format of a file that begins with `head`, if any; plug-ins are tried last."""
    known = _sniff(head) or next((f for f in NEIGHBOR_FORMATS if f.belongs(path)), None)
    return known or find_plugin(head)


def is_known_head(head: bytes) -> bool:
    return (_sniff(head) or find_plugin(head)) is not None


def _sniff(head: bytes) -> Format | None:
    return next((known for known in FORMATS if known.sniff(head)), None)

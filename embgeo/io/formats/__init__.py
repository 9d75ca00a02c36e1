"""All formats, in the order in which they are tried."""

from __future__ import annotations

from embgeo.io.convert import arrow, hdf5
from embgeo.io.formats import fasttext as fasttext_model
from embgeo.io.formats import (
    gensim,
    gguf,
    npy,
    npz,
    onnx,
    pickled,
    safetensors,
    sharded,
)
from embgeo.io.formats.format import Format, find_plugin
from embgeo.io.formats.text import (
    json_vectors,
    table,
    vector_column,
    word2vec_binary,
    word_vectors,
)
from embgeo.io.formats.torch import (
    distributed_checkpoint,
    legacy_checkpoint,
    zip_checkpoint,
)

#: Formats recognized by their first bytes: those with a magic number first, text formats last.
FORMATS: tuple[Format, ...] = (
    zip_checkpoint,
    npz,
    npy,
    legacy_checkpoint,
    distributed_checkpoint,
    gguf,
    hdf5,
    onnx,
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
    word_vectors,
)


def find_format(head: bytes) -> Format | None:
    """The format of a file that begins with `head`, if any; plug-ins are tried last."""
    known = next((known for known in FORMATS if known.sniff(head)), None)
    return known or find_plugin(head)

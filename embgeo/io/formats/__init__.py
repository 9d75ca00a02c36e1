"""All formats, in the order in which they are tried."""

from embgeo.io.formats import (
    arrow,
    gensim,
    gguf,
    hdf5,
    npy,
    npz,
    onnx,
    pickled,
    safetensors,
    sharded,
    text_table,
    torch_distributed,
    torch_legacy,
    torch_zip,
    word2vec_binary,
    word_vectors,
)
from embgeo.io.formats import fasttext as fasttext_model
from embgeo.io.formats.format import Format, find_plugin

#: Formats recognized by their first bytes: those with a magic number first, text formats last.
FORMATS: tuple[Format, ...] = (
    npz,
    hdf5,
    torch_zip,
    npy,
    torch_legacy,
    torch_distributed,
    gguf,
    onnx,
    fasttext_model,
    arrow,
    safetensors,
    sharded,
    gensim,
    pickled,
    word2vec_binary,
    text_table,
    word_vectors,
)


def find_format(head: bytes) -> Format | None:
    """Find the format of a file that begins with `head`, if any; plug-ins are tried last."""
    known = next((known for known in FORMATS if known.sniff(head)), None)
    return known or find_plugin(head)

"""Small sound files of every format, and of what may lie around and next to them, to be mutated."""

from __future__ import annotations

import base64
import gzip
import io
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as safetensors_bytes

from tests.io.test_embedding_libraries_hostile import SOUND as FASTTEXT
from tests.io.test_hostile_mutations import SMALL
from tests.support.binary_files import archive_of, checkpoint, tensor_program
from tests.support.embedding_files import fasttext_bytes
from tests.support.framework_files import (
    gguf_bytes,
    gguf_tensor,
    onnx_bytes,
    onnx_tensor,
)
from tests.support.hostile_folders import piece
from tests.support.torch_files import Built, Named, legacy, pickle_value, tensor

W = np.arange(12, dtype="<f4").reshape(4, 3) + 0.5
RAW = W.tobytes()
WORDS = ["the", "cat", "naïve", "日本"]
GLOVE = "".join(
    f"{w} {' '.join(map(str, row))}\n" for w, row in zip(WORDS, W.tolist(), strict=True)
)
PROGRAM = tensor_program()

Make = Callable[[Path], bytes]


def same(content: bytes) -> bytes:
    return content


@dataclass(frozen=True)
class Seed:
    """A sound file.

    Attributes
    ----------
    name : str
    make : callable
        Writes what lies next to it into a folder, and gives the content that is mutated.
    wrap : callable
        Makes the file of the content, so that what is inside a checksum can be mutated too.
    file : str
        The name of the file that holds it.
    open : str
        The name of what is opened, where that is another file or, as ".", the folder.
    side : str
        "tokens" or "counts", if it is a file next to a matrix.
    needs : str
        A package that makes it, or reads it.
    slow : bool
        A library in C reads it, in a process of its own for each mutant.
    """

    name: str
    make: Make
    wrap: Callable[[bytes], bytes] = same
    file: str = "a"
    open: str = ""
    side: str = ""
    needs: str = ""
    slow: bool = False


def keep_content(content: bytes) -> Make:
    return lambda _folder: content


def beside(content: bytes, **files: bytes) -> Make:
    """Other files too; two underscores in a name stand for a point."""

    def make(folder: Path) -> bytes:
        for name, data in files.items():
            (folder / name.replace("__", ".")).write_bytes(data)
        return content

    return make


def zstd(content: bytes) -> bytes:
    import zstandard

    packed: bytes = zstandard.ZstdCompressor().compress(content)
    return packed


# Pickles and what holds them


def script(program: bytes) -> bytes:
    constants = {"constants.pkl": program, "constants/0": RAW[:24]}
    return checkpoint(program, RAW[:24], **constants)


#: A tensor by itself, not in a dict.
PIECE = b"\x80\x02" + PROGRAM[len(b"\x80\x02}X\x01\0\0\0w") : -len(b"s.")] + b"."


def metadata() -> bytes:
    base = "torch.distributed.checkpoint"
    half = [((0, 0), (2, 3)), ((2, 0), (2, 3))]
    length = len(checkpoint(PIECE, RAW[:24]))
    entry = Built(
        f"{base}.metadata.TensorStorageMetadata",
        {
            "properties": Built(f"{base}.metadata.TensorProperties", (Named("torch.float32"), 0)),
            "size": (4, 3),
            "chunks": [
                Built(f"{base}.metadata.ChunkStorageMetadata", {"offsets": a, "sizes": n})
                for a, n in half
            ],
        },
    )
    places = {
        Built(f"{base}.metadata.MetadataIndex", {"fqn": "w", "offset": first, "index": k}): Built(
            f"{base}.filesystem._StorageInfo",
            {"relative_path": "__0_0.distcp", "offset": k * length, "length": length},
        )
        for k, (first, _) in enumerate(half)
    }
    fields = {"state_dict_metadata": {"w": entry}, "storage_data": places}
    return pickle_value(Built(f"{base}.metadata.Metadata", fields))


def write_distributed(folder: Path) -> bytes:
    (folder / "__0_0.distcp").write_bytes(checkpoint(PIECE, RAW[:24]) * 2)
    return metadata()


def gensim(folder: Path) -> bytes:
    np.save(folder / "a.vectors.npy", W)
    state = {
        "vector_size": 3,
        "index_to_key": WORDS,
        "key_to_index": {w: k for k, w in enumerate(WORDS)},
        "expandos": {"count": np.array([9, 7, 5, 3])},
        "__numpys": ["vectors"],
        "__scipys": [],
        "__ignoreds": [],
    }
    head = b"\x80\x02cgensim.models.keyedvectors\nKeyedVectors\n)\x81"
    return head + pickle.dumps(state, 2)[2:-1] + b"b."


def vocab_objects(_folder: Path) -> bytes:
    """A save of gensim 3: a Vocab object for each word, and the arrays inside."""
    words = {
        w: Built("gensim.models.keyedvectors.Vocab", {"count": 9 - k, "index": k})
        for k, w in enumerate(WORDS)
    }
    state = {"index2word": WORDS, "vocab": words, "syn0": 0}
    program = pickle_value(Built("gensim.models.keyedvectors.KeyedVectors", state))
    array = pickle.dumps(W, 2)[2:-1]
    return program[:-1] + b"}X\x04\x00\x00\x00syn0" + array + b"sb."


def pickled_tensors(_folder: Path) -> bytes:
    import torch

    return pickle.dumps({"a": torch.tensor(W), "b": torch.tensor(W[0])}, 4)


def words_npz() -> bytes:
    target = io.BytesIO()
    np.savez(target, **{f"word{k}": W[0] + k for k in range(9)})
    return target.getvalue()


MANY = [f"word{k}" for k in range(10)]
VECTORS = np.arange(20.0).reshape(10, 2) + 0.5
LISTS = dict(zip(MANY, VECTORS.tolist(), strict=True))

PICKLES = [
    *(Seed(name, keep_content(content)) for name, (_, content) in SMALL.items()),
    Seed("torch data.pkl", keep_content(PROGRAM), lambda p: checkpoint(p, RAW[:24])),
    Seed("TorchScript", keep_content(PROGRAM), script),
    Seed(
        "torch legacy",
        keep_content(
            legacy({"a": tensor(), "b": tensor(part=("1", 2, 4), shape=(2, 2), strides=(2, 1))})
        ),
    ),
    Seed("torch distributed", write_distributed, file=".metadata", open="."),
    Seed("gensim", gensim),
    Seed("gensim 3", vocab_objects),
    Seed(
        "pickled dict of arrays",
        keep_content(pickle.dumps(dict(zip(MANY, VECTORS, strict=True)), 4)),
    ),
    Seed("pickled dict of lists", keep_content(pickle.dumps(LISTS, 2))),
    Seed("pickled words and matrix", keep_content(pickle.dumps((WORDS, W), 4))),
    Seed("pickled tensors", pickled_tensors, needs="torch"),
    Seed("npz of words", keep_content(words_npz())),
    Seed("npz member", keep_content(SMALL["npy"][1]), lambda p: archive_of({"w.npy": p})),
]


# Frameworks


def gguf() -> bytes:
    data = {"tokenizer.ggml.tokens": WORDS, "tokenizer.ggml.token_type": [1, 3, 1, 5]}
    blocks = [gguf_tensor("w", [3, 4], 0, 0), gguf_tensor("q", [32, 2], 2, 64)]
    more = {"general.alignment": 32, "lists": [["a"], ["b"]]}
    return gguf_bytes({**data, **more}, blocks, RAW + bytes(16) + bytes(range(36)))


OUTER = onnx_tensor("v", [4, 3], None, location="data", offset="0", length="48")

FRAMEWORKS = [
    Seed("gguf", lambda _: gguf(), needs="gguf"),
    Seed("onnx", beside(onnx_bytes([onnx_tensor("w", [4, 3], RAW), OUTER]), data=RAW)),
    *(Seed(f"fastText {name}", keep_content(content)) for name, content in FASTTEXT.items()),
    Seed("fastText in gzip", keep_content(fasttext_bytes()), gzip.compress),
]


# Text, and numbers beside text

BINARY = b"4 3\n" + b"".join(
    w.encode() + b" " + row.tobytes() + b"\n" for w, row in zip(WORDS, W, strict=True)
)
TSV = b"".join(b"\t".join(b"%g" % x for x in row) + b"\n" for row in W)
COMMAS = b"word,0,1,2\n" + GLOVE.encode().replace(b" ", b",")
QUOTED = b'"","x0","x1"\n' + b"".join(
    b'"%b, ""a""",%g,%g\n' % (w.encode(), *row[:2])
    for w, row in zip(WORDS, W.tolist(), strict=True)
)
TEXTS = [
    Seed("glove text", keep_content(GLOVE.encode())),
    Seed("word2vec text", keep_content(b"4 3\n" + GLOVE.encode())),
    Seed("word2vec binary", keep_content(BINARY)),
    Seed("text table", keep_content(COMMAS)),
    Seed("text table with quotes", keep_content(QUOTED)),
    Seed("text table of numbers", keep_content(TSV.replace(b"\t", b" "))),
    Seed("text table of tabs", keep_content(TSV)),
]


# Wrappings

WRAPPINGS = [
    Seed("gzip", keep_content(GLOVE.encode()), gzip.compress),
    Seed("zstd", keep_content(GLOVE.encode()), zstd, needs="zstandard"),
]


# Folders and side files

WEIGHTS = safetensors_bytes({"model.embed_tokens.weight": W})
INDEX = json.dumps(
    {"metadata": {"total_size": 48}, "weight_map": {"model.embed_tokens.weight": "s.safetensors"}}
).encode()
CONFIG = json.dumps(
    {"tie_word_embeddings": True, "vocab_size": 4, "model_type": "gpt2", "text_config": {"a": 1}}
).encode()
TOKENIZER = json.dumps(
    {
        "added_tokens": [{"id": 3, "content": "<pad>", "special": True}],
        "model": {"type": "BPE", "vocab": {"the": 0, "Ġcat": 1, "na": 2}, "merges": []},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}]},
        "decoder": {"type": "ByteLevel"},
    }
).encode()
SCORED = b"".join(piece(w.encode()) for w in WORDS)
RANKS = b"".join(base64.b64encode(w.encode()) + b" %d\n" % k for k, w in enumerate(WORDS))
COUNTS = "".join(f"{w}\t{9 - k}\n" for k, w in enumerate(WORDS)).encode()
TOKENS = json.dumps({w: k for k, w in enumerate(WORDS)}).encode()


def in_folder(name: str, content: bytes, **more: bytes) -> Seed:
    files = {"model__safetensors": WEIGHTS, **more}
    return Seed(f"folder {name}", beside(content, **files), file=name, open=".")


FOLDERS = [
    Seed(
        "safetensors index",
        beside(INDEX, s__safetensors=WEIGHTS),
        file="model.safetensors.index.json",
    ),
    in_folder("config.json", CONFIG),
    in_folder("tokenizer.json", TOKENIZER),
    in_folder("vocab.json", TOKENS),
    in_folder("vocab.txt", "\n".join(WORDS).encode()),
    in_folder("tokenizer.model", SCORED),
    in_folder("tokenizer_config.json", CONFIG, tokenizer__json=TOKENIZER),
    *(
        Seed(f"tokens {name}", keep_content(content), side="tokens")
        for name, content in {
            "json": TOKENS,
            "text": "\n".join(WORDS).encode(),
            "table": b"word\tcount\n" + COUNTS,
            "tokenizer": TOKENIZER,
            "sentencepiece": SCORED,
            "tiktoken": RANKS,
            "UTF-16": "\n".join(WORDS).encode("utf-16"),
        }.items()
    ),
    Seed("counts table", keep_content(COUNTS), side="counts"),
    Seed("counts json", keep_content(TOKENS), side="counts"),
]


# Libraries in C


def hdf5(folder: Path) -> bytes:
    import h5py

    with h5py.File(folder / "made", "w") as file:
        file.create_dataset("a/w", data=W, compression="gzip")
        file["b"] = W
        file["words"] = np.array(WORDS, dtype=object)
    content = (folder / "made").read_bytes()
    (folder / "made").unlink()
    return content


def table() -> Any:
    import pyarrow

    vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(W.ravel()), 3)
    return pyarrow.table({"word": WORDS, "count": [9, 7, 5, 3], "e": vectors})


def parquet(_folder: Path) -> bytes:
    from pyarrow import parquet as library

    target = io.BytesIO()
    library.write_table(table(), target)
    return target.getvalue()


def arrow(stream: bool) -> Make:
    def make(_folder: Path) -> bytes:
        import pyarrow

        target = io.BytesIO()
        opened = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
        value = table()
        with opened(target, value.schema) as out:
            out.write_table(value)
        return target.getvalue()

    return make


LIBRARIES = [
    Seed("hdf5", hdf5, needs="h5py", slow=True),
    Seed("parquet", parquet, needs="pyarrow", slow=True),
    Seed("arrow file", arrow(False), needs="pyarrow", slow=True),
    Seed("arrow stream", arrow(True), needs="pyarrow", slow=True),
]

SEEDS = {
    seed.name: seed
    for group in (PICKLES, FRAMEWORKS, TEXTS, WRAPPINGS, FOLDERS, LIBRARIES)
    for seed in group
}

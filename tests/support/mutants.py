"""One small sound file of each format, and the mutator that damages them."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import pickle
import random
import signal
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
from safetensors.numpy import save as safetensors_bytes

from tests.support.binary_files import archive_of, checkpoint, tensor_program
from tests.support.embedding_files import fasttext_bytes
from tests.support.framework_files import field, gguf_bytes, gguf_tensor, onnx_bytes, onnx_tensor
from tests.support.torch_files import Built, Named, legacy, pickle_value, tensor

W = np.arange(12, dtype="<f4").reshape(4, 3) + 0.5
RAW = W.tobytes()
WORDS = ["the", "cat", "naïve", "日本"]
LINES = "".join(f"{w} {' '.join(map(str, r))}\n" for w, r in zip(WORDS, W.tolist(), strict=True))
#: What the samples of torch hold: the first two rows, named ``w``.
PROGRAM = tensor_program()
#: A tensor by itself, not in a dict.
PIECE = b"\x80\x02" + PROGRAM[len(b"\x80\x02}X\x01\0\0\0w") : -len(b"s.")] + b"."


@dataclass(frozen=True)
class Sample:
    """A sound file.

    Attributes
    ----------
    name : str
    make : callable
        Writes what lies next to it into a folder, and gives the content that is mutated.
    wrap : callable
        Makes the file of the content, so that what is inside a checksum can be mutated, too.
    file, open : str
        The name of the file that holds it, and of what is opened; ``"."`` is the folder.
    needs : str
        A package that makes it, or reads it.
    is_whole : bool
        Whether a file that is cut anywhere is refused.
    is_slow : bool
        Whether a library in C reads it, in a process of its own.
    """

    name: str
    make: Callable[[Path], bytes]
    wrap: Callable[[bytes], bytes] = bytes
    file: str = "a"
    open: str = ""
    needs: str = ""
    is_whole: bool = False
    is_slow: bool = False


def of(content: bytes, **files: bytes) -> Callable[[Path], bytes]:
    """Other files next to it; two underscores in a name stand for a point."""

    def make(folder: Path) -> bytes:
        for name, data in files.items():
            (folder / name.replace("__", ".")).write_bytes(data)
        return content

    return make


def npy(array: np.ndarray = W) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(compress: bool) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(out, W=W, words=np.array(WORDS))
    return out.getvalue()


def torch_zip(program: bytes = PROGRAM, **more: bytes) -> bytes:
    return checkpoint(program, RAW[:24], byteorder=b"little", **more)


def distributed(folder: Path) -> bytes:
    base, piece = "torch.distributed.checkpoint", checkpoint(PIECE, RAW[:24])
    (folder / "__0_0.distcp").write_bytes(piece * 2)
    places = [((0, 0), (2, 3)), ((2, 0), (2, 3))]
    entry = {
        "properties": Built(f"{base}.metadata.TensorProperties", (Named("torch.float32"), 0)),
        "size": (4, 3),
        "chunks": [
            Built(f"{base}.metadata.ChunkStorageMetadata", {"offsets": a, "sizes": n})
            for a, n in places
        ],
    }
    storage = {
        Built(f"{base}.metadata.MetadataIndex", {"fqn": "w", "offset": first, "index": k}): Built(
            f"{base}.filesystem._StorageInfo",
            {
                "relative_path": "__0_0.distcp",
                "offset": k * len(piece),
                "length": len(piece),
            },
        )
        for k, (first, _) in enumerate(places)
    }
    tensors = {"w": Built(f"{base}.metadata.TensorStorageMetadata", entry)}
    fields = {"state_dict_metadata": tensors, "storage_data": storage}
    return pickle_value(Built(f"{base}.metadata.Metadata", fields))


def gensim(folder: Path) -> bytes:
    np.save(folder / "a.vectors.npy", W)
    state = {
        "index_to_key": WORDS,
        "key_to_index": {w: k for k, w in enumerate(WORDS)},
        "expandos": {"count": np.array([9, 7, 5, 3])},
        "__numpys": ["vectors"],
    }
    head = b"\x80\x02cgensim.models.keyedvectors\nKeyedVectors\n)\x81"
    return head + pickle.dumps(state, 2)[2:-1] + b"b."


def pickled(protocol: int) -> bytes:
    value = {"W": W, "id_to_word": dict(enumerate(WORDS)), "more": [W.T, {"b": W[0].tolist()}]}
    return pickle.dumps(value, protocol)


def gguf(_folder: Path) -> bytes:
    data = {"tokenizer.ggml.tokens": WORDS, "tokenizer.ggml.token_type": [1, 3, 1, 5]}
    blocks = [gguf_tensor("token_embd.weight", [3, 4], 0, 0), gguf_tensor("q", [32, 2], 2, 64)]
    more = {"general.alignment": 32, "lists": [["a"], ["b"]]}
    return gguf_bytes({**data, **more}, blocks, RAW + bytes(16) + bytes(range(36)))


def hdf5(folder: Path) -> bytes:
    import h5py

    with h5py.File(folder / "made", "w") as file:
        file.create_dataset("w", data=W, compression="gzip")
        file["words"] = np.array(WORDS, dtype=object)
    content = (folder / "made").read_bytes()
    (folder / "made").unlink()
    return content


def table(write: Callable[[object, io.BytesIO], None]) -> Callable[[Path], bytes]:
    def make(_folder: Path) -> bytes:
        import pyarrow

        vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(W.ravel()), 3)
        out = io.BytesIO()
        write(pyarrow.table({"word": WORDS, "count": [9, 7, 5, 3], "e": vectors}), out)
        return out.getvalue()

    return make


def write_parquet(value: object, out: io.BytesIO) -> None:
    from pyarrow import parquet

    parquet.write_table(value, out)


def write_arrow(value: object, out: io.BytesIO) -> None:
    from pyarrow import feather

    feather.write_feather(value, out, compression="uncompressed")


def zstd(content: bytes) -> bytes:
    import zstandard

    packed: bytes = zstandard.ZstdCompressor().compress(content)
    return packed


OUTER = onnx_tensor("v", [4, 3], None, location="data", offset="0", length="48")
ONNX = onnx_bytes([onnx_tensor("w", [4, 3], RAW), OUTER])
BINARY = b"4 3\n" + b"".join(
    word.encode() + b" " + row.tobytes() for word, row in zip(WORDS, W, strict=True)
)
QUOTED = b'"","x0","x1"\n' + b"".join(
    b'"%b, ""a""",%g,%g\n' % (w.encode(), *row[:2])
    for w, row in zip(WORDS, W.tolist(), strict=True)
)
WEIGHTS = safetensors_bytes({"model.embed_tokens.weight": W})
INDEX = json.dumps({"weight_map": {"model.embed_tokens.weight": "s.safetensors"}}).encode()
CONFIG = {"tie_word_embeddings": True, "vocab_size": 4, "model_type": "gpt2", "text_config": {}}
TOKENIZER = {
    "added_tokens": [{"id": 3, "content": "<pad>", "special": True}],
    "model": {"type": "BPE", "vocab": {"the": 0, "Ġcat": 1, "na": 2}, "merges": []},
    "decoder": {"type": "ByteLevel"},
}
SCORED = b"".join(field(1, field(1, w) + b"\x15" + struct.pack("<f", 1.0)) for w in WORDS)
RANKS = b"".join(base64.b64encode(w.encode()) + b" %d\n" % k for k, w in enumerate(WORDS))


def beside(name: str, content: bytes) -> Sample:
    """A file of a model folder."""
    return Sample(name, of(content, model__safetensors=WEIGHTS), file=name, open=".")


SAMPLES = (
    Sample("npy", of(npy()), is_whole=True),
    Sample("npz", of(npz(False)), is_whole=True),
    Sample("npz compressed", of(npy()), lambda c: archive_of({"w.npy": c}, zipfile.ZIP_DEFLATED)),
    Sample("safetensors", of(WEIGHTS), is_whole=True),
    Sample("index", of(INDEX, s__safetensors=WEIGHTS), file="model.safetensors.index.json"),
    Sample("torch", of(PROGRAM), torch_zip, is_whole=True),
    Sample("torch legacy", of(legacy({"a": tensor()})), is_whole=True),
    Sample("torch distributed", distributed, file=".metadata", open="."),
    Sample("pickle 0", of(pickled(0)), is_whole=True),
    Sample("pickle 4", of(pickled(4)), is_whole=True),
    Sample("gensim", gensim, is_whole=True),
    Sample("gguf", gguf, needs="gguf", is_whole=True),
    Sample("onnx", of(ONNX, data=RAW)),
    Sample("fastText", of(fasttext_bytes()), is_whole=True),
    Sample("word2vec binary", of(BINARY), is_whole=True),
    Sample("word2vec text", of(b"4 3\n" + LINES.encode())),
    Sample("text vectors", of(LINES.encode())),
    Sample("text table", of(QUOTED)),
    Sample("gzip", of(LINES.encode()), gzip.compress),
    Sample("zstd", of(LINES.encode()), zstd, needs="zstandard"),
    Sample("hdf5", hdf5, needs="h5py", is_slow=True),
    Sample("parquet", table(write_parquet), needs="pyarrow", is_slow=True),
    Sample("arrow", table(write_arrow), needs="pyarrow", is_slow=True),
    beside("config.json", json.dumps(CONFIG).encode()),
    beside("tokenizer.json", json.dumps(TOKENIZER).encode()),
    beside("tokenizer.model", SCORED),
    beside("tiktoken.model", RANKS),
    beside("vocab.txt", "\n".join(WORDS).encode()),
)  # fmt: skip


# The mutator

_LARGE = (0, 1, 2, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**53,
          2**62, 2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip
_DIGITS = (b"-1", b"0", b"1e999", b"nan", b"9" * 400, b"2147483648", b"9223372036854775808")


def mutant(content: bytes, chance: random.Random) -> bytes:
    """Return the content with one to eight changes."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        if data:
            _change(data, chance)
    return bytes(data)


def _change(data: bytearray, chance: random.Random) -> None:
    at, size = chance.randrange(len(data)), chance.choice((1, 2, 4, 8, 64))
    match chance.randrange(9):
        case 0 | 1:
            data[at] ^= 1 << chance.randrange(8)
        case 2:
            data[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        case 3 | 4:
            width, order = chance.choice((2, 4, 8, 8)), chance.choice("<<<>")
            value = chance.choice(_LARGE) % 2 ** (8 * width)
            data[at : at + width] = struct.pack(order + {2: "H", 4: "I", 8: "Q"}[width], value)
        case 5:  # another number where there are digits, as text has them
            places = [k for k, byte in enumerate(data) if 48 <= byte <= 57]
            if places:
                place = chance.choice(places)
                data[place : place + 1] = chance.choice(_DIGITS)
        case 6:
            del data[at : at + size]
        case 7:
            data[at:at] = data[at : at + size] * chance.choice((1, 1, 1, 2, 50))
        case 8:
            del data[at:]


#: Seconds of computing of this process.
DEADLINE = 10


@contextlib.contextmanager
def deadline() -> Iterator[None]:
    """End a mutant that takes implausibly long; no handler of exceptions catches it."""

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise TooLong(f"more than {DEADLINE} seconds")

    if not hasattr(signal, "setitimer"):  # Windows
        yield
        return
    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, DEADLINE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class TooLong(BaseException):
    """Past every handler of exceptions."""

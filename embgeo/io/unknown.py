"""Advice on files and folders that no format recognizes: many belong to other tools."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from embgeo.core.errors import UnreadableFile, argument
from embgeo.io.bounded.guard import RIGHT_FILE, refuse
from embgeo.io.bounded.small_files import HEAD_BYTES

_UNPACK = "unpack it and name the file inside"
_OLD_GGML = "use the checkpoint it was made from, or convert it to GGUF"
_MATLAB = "save the matrix with scipy as .npy"
_R = "write the matrix with write.table, words first"
_EXPORT = "save the matrix as .npy or as text"
_INDEX = "name the file next to it that ends in .index"
_MADE_FROM = "use the model it was made from"
_SAVED_MODEL = (
    "is a TensorFlow SavedModel, a graph without its variables",
    "name the folder that it lies in, or variables/variables.index there",
)

#: First bytes as a pattern, what they mean, and the way out.
WELL_KNOWN: tuple[tuple[bytes, str, str], ...] = (
    (
        rb"version https://git-lfs\.github\.com/spec",
        "is a Git LFS pointer, not the file itself",
        "run 'git lfs pull' in its repository",
    ),
    (rb"lmgg", "is an old ggml model of whisper or llama, which is not read", _OLD_GGML),
    (rb"fmgg", "is an old ggml model (GGMF), which is not read", _OLD_GGML),
    (rb"tjgg", "is an old ggml model (GGJT), which is not read", _OLD_GGML),
    (rb"algg", "is a ggml adapter (GGLA), which holds no embeddings", _OLD_GGML),
    (rb"7z\xbc\xaf", "is a 7-zip archive, which is not read", _UNPACK),
    (rb"Rar!\x1a\x07", "is a RAR archive, which is not read", _UNPACK),
    (rb"\x1f\x9d", "is compressed with compress (.Z), which is not read", _UNPACK),
    (rb"\x04\x22\x4d\x18", "is compressed with lz4, which is not read", _UNPACK),
    (rb"LZIP", "is compressed with lzip, which is not read", _UNPACK),
    (rb"MATLAB 5\.0 MAT-file", "is a MATLAB file (version 5), which is not read", _MATLAB),
    (rb"MATLAB 7\.3 MAT-file", "is a MATLAB file (version 7.3), which is not read", _MATLAB),
    (rb"RDX|RDA", "is an R workspace, which is not read", _R),
    (rb"X\n\0\0\0|A\n[23]\n", "is an R object (.rds), which is not read", _R),
    (rb"SQLite format 3\0", "is an SQLite database, which is not read", _EXPORT),
    (rb".{8}DUCK", "is a DuckDB database, which is not read", "export the table to Parquet"),
    (rb"\xd0\xcf\x11\xe0", "is an old Office document, which is not read", _EXPORT),
    (rb"\x7fELF", "is a program or library, not a checkpoint", RIGHT_FILE),
    (rb"%PDF-", "is a PDF document, not a checkpoint", RIGHT_FILE),
    (rb"\x89PNG", "is a picture (PNG), not a checkpoint", RIGHT_FILE),
    (rb"\xff\xd8\xff", "is a picture (JPEG), not a checkpoint", RIGHT_FILE),
    (rb"GIF8", "is a picture (GIF), not a checkpoint", RIGHT_FILE),
    (rb"\n\x0e\n\x05<unk>", "is a SentencePiece model, a tokenizer without vectors", RIGHT_FILE),
    (
        rb"I[xw][FPS]|IHN|IxM",
        "is an index of faiss, which is not read",
        "load it with faiss and save index.reconstruct_n(0, index.ntotal) with numpy.save",
    ),
    (rb"FiFu", "is a finalfusion model, which is not read", "convert it to .vec with finalfusion"),
    (rb"<!DOCTYPE|<html", "is a web page", "download the file itself"),
    (rb".{257}ustar", "is a damaged tar archive", "download or pack it again"),
    (rb".{4}TFL3", "is a TensorFlow Lite model, which is not read", _MADE_FROM),
    (
        # The first entry of its table: no name, and a SavedTensorSlices with a list of tensors.
        rb"\0\0[\x80-\xff]{0,4}[\0-\x7f]\n[\x80-\xff]{0,4}[\0-\x7f]\n",
        "is a TensorFlow checkpoint from before version 0.12, which is not read",
        "load it with TensorFlow and save it with tf.compat.v1.train.Saver",
    ),
    # Field 1, the version 1, then field 2, the graph with its tags and functions.
    (rb"\x08\x01\x12", *_SAVED_MODEL),
    (
        rb"model_checkpoint_path:",
        "says which TensorFlow checkpoint of its folder is the newest",
        "name that checkpoint's file that ends in .index",
    ),
)

#: File names as a pattern, what they mean, and the way out.
NAMES: tuple[tuple[str, str, str], ...] = (
    (r"saved_model\.pb", *_SAVED_MODEL),
    (r".*\.data-\d{5}-of-\d{5}", "holds the numbers of a TensorFlow checkpoint", _INDEX),
    (r".*\.meta", "is the graph of a TensorFlow checkpoint, without its numbers", _INDEX),
    (
        r".*\.pb",
        "is a graph of TensorFlow, which is not read",
        "use the checkpoint it was made from",
    ),
    (r".*\.mlmodel", "is a Core ML model, which is not read", _MADE_FROM),
)

_ZLIB = (
    "is compressed with zlib, as joblib does, which is not read",
    "load it with joblib and save the matrix with numpy.save",
)
_ZLIB_STARTS = (b"x\x01", b"x^", b"x\x9c", b"x\xda")
_JSON = (
    "is JSON that names no shards of a checkpoint, and holds no matrix that is read",
    f"name the weights next to it; tokens go with {argument('tokens')}, "
    f"counts with {argument('counts')}",
)
_COUNTS = (
    "is a table of words and counts, without vectors",
    f"give it with {argument('counts')} next to the matrix it belongs to",
)
_TEXT = (
    "is text, and its lines do not end in vectors",
    f"a list of tokens goes with {argument('tokens')}, a corpus with {argument('corpus')}, "
    "next to a matrix",
)
_NUMBERS = (
    "looks like bare numbers, without anything that says what they are",
    "put next to it what its program wrote (GloVe's vocab.txt, the projector's "
    "projector_config.pbtxt), or save it as .npy: numpy.save('a.npy', "
    "numpy.fromfile(FILE, DTYPE).reshape(ROWS, COLUMNS))",
)
#: Files that are recognized by their content; the documentation lists them.
OTHER_SIGNS = (_ZLIB, _JSON, _COUNTS, _TEXT)
_COUNTED = re.compile(rb"[^\t\n]*[\t ] *\d+\r?")

#: Names of files in a folder as a pattern, what the folder is, and the way out.
FOLDERS: tuple[tuple[str, str, str], ...] = (
    (r"models--.*", "a Hugging Face cache", "name the folder of a model in it: models--ORG--NAME"),
    (
        r"manifest\.ocdbt|_CHECKPOINT_METADATA",
        "an Orbax checkpoint of JAX, which is not read",
        "restore it with orbax and save the matrix with numpy.save, or the parameters with "
        "flax.serialization.to_bytes",
    ),
    (
        r"latest",
        "a DeepSpeed checkpoint, whose file 'latest' names a folder inside",
        "run its zero_to_fp32.py, or name mp_rank_00_model_states.pt in that folder",
    ),
    (
        r"shared_vocabulary\.(json|txt)",
        "a CTranslate2 model, which is not read",
        "use the model that it was converted from",
    ),
    (
        r"modules\.json",
        "a SentenceTransformer whose modules lie in folders of their own",
        "name the folder of the module that holds the embedding, such as 0_StaticEmbedding",
    ),
    (
        r"\.zarray|zarr\.json",
        "a Zarr array, which is not read",
        "load it with zarr and save it with numpy.save",
    ),
)

_READ = (
    "torch, safetensors, GGUF, Keras, ONNX, Flax and TensorFlow checkpoints, model folders, .npy, "
    ".npz, pickled arrays, Parquet and Arrow, gensim's, word2vec, GloVe and fastText vectors, "
    "tables of numbers and vectors in JSON are read"
)

#: Most bytes of a character of UTF-8; the head may end inside one.
_LONGEST_CHARACTER = 4

# Of other bytes, fewer than half are numbers between these.
_SMALLEST, _LARGEST = 1e-8, 1e3
_FEWEST = 16
_MOST = 0.99


def find_well_known(head: bytes) -> tuple[str, str] | None:
    """Describe a file of another tool by its first bytes: what it is, and the way out."""
    found = (said for pattern, *said in WELL_KNOWN if re.match(pattern, head, re.DOTALL))
    return next(((cause, way_out) for cause, way_out in found), None)


def unknown_format(path: Path, head: bytes) -> UnreadableFile:
    """Error for a file that starts with `head`, with advice if its kind is known."""
    by_name = ((cause, way) for pattern, cause, way in NAMES if re.fullmatch(pattern, path.name))
    said = find_well_known(head) or next(by_name, None) or _find_by_text(head)
    if said is None and head.startswith(_ZLIB_STARTS):
        said = _ZLIB
    if said is None and _are_bare_numbers(head):
        said = _NUMBERS
    return refuse(path, *(said or ("its format is not known", _READ)))


def _find_by_text(head: bytes) -> tuple[str, str] | None:
    """Describe a text file by its first lines."""
    text = head.removeprefix(b"\xef\xbb\xbf").strip(b" ")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        if len(head) < HEAD_BYTES or error.start < len(text) - _LONGEST_CHARACTER:
            return None
    has_controls = any(byte < 32 and byte not in b"\t\n\f\r\x1b" for byte in text)
    if has_controls or not any(blank in text for blank in (b" ", b"\n")):
        return None
    if text.lstrip().startswith((b"{", b"[")):
        return _JSON
    *lines, rest = text.split(b"\n")
    counted = [_COUNTED.fullmatch(line) is not None for line in lines if line]
    # The first line may be a heading, and the last one cut off.
    is_counts = any(counted) and all(counted[1:]) and (len(counted) > 1 or not rest)
    return _COUNTS if is_counts else _TEXT


def _are_bare_numbers(head: bytes) -> bool:
    """Whether the bytes are float64 or float32 of the size of vectors' entries."""
    for code in ("<f8", "<f4"):
        sample = np.frombuffer(head[: len(head) // 8 * 8], dtype=code)
        with np.errstate(invalid="ignore"):
            sizes = np.abs(sample[sample != 0])
        usual = (sizes > _SMALLEST) & (sizes < _LARGEST)
        if len(sizes) >= _FEWEST and usual.mean() > _MOST:
            return True
    return False


def unknown_folder(names: Iterable[str]) -> tuple[str, str] | None:
    """Describe a folder of another tool by the names in it: what it is, and the way out."""
    held = list(names)
    for pattern, cause, way_out in FOLDERS:
        if any(re.fullmatch(pattern, name) for name in held):
            return cause, way_out
    return None

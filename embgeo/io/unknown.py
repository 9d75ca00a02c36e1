"""What to say about a file that no format knows: many are well-known formats of other tools."""

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
_JOBLIB = "load it with joblib and save the matrix with numpy.save"
_R = "write the matrix with write.table, words first"
_EXPORT = "save the matrix as .npy or as text"
_FAISS = (
    "is an index of faiss, which is not read",
    "load it with faiss and save index.reconstruct_n(0, index.ntotal) with numpy.save",
)
_DUCKDB = ("is a DuckDB database, which is not read", "export the table to Parquet")

#: First bytes, what they mean, and the way out.
WELL_KNOWN: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs.github.com/spec",
        "is a Git LFS pointer, not the file itself",
        "run 'git lfs pull' in its repository",
    ),
    (b"lmgg", "is an old ggml model of whisper or llama, which is not read", _OLD_GGML),
    (b"fmgg", "is an old ggml model (GGMF), which is not read", _OLD_GGML),
    (b"tjgg", "is an old ggml model (GGJT), which is not read", _OLD_GGML),
    (b"algg", "is a ggml adapter (GGLA), which holds no embeddings", _OLD_GGML),
    (b"7z\xbc\xaf", "is a 7-zip archive, which is not read", _UNPACK),
    (b"Rar!\x1a\x07", "is a RAR archive, which is not read", _UNPACK),
    (b"\x1f\x9d", "is compressed with compress (.Z), which is not read", _UNPACK),
    (b"\x04\x22\x4d\x18", "is compressed with lz4, which is not read", _UNPACK),
    (b"LZIP", "is compressed with lzip, which is not read", _UNPACK),
    (b"MATLAB 5.0 MAT-file", "is a MATLAB file (version 5), which is not read", _MATLAB),
    (b"MATLAB 7.3 MAT-file", "is a MATLAB file (version 7.3), which is not read", _MATLAB),
    (b"RDX", "is an R workspace, which is not read", _R),
    (b"RDA", "is an R workspace, which is not read", _R),
    (b"X\n\0\0\0", "is an R object (.rds), which is not read", _R),
    (b"A\n2\n", "is an R object (.rds), which is not read", _R),
    (b"A\n3\n", "is an R object (.rds), which is not read", _R),
    (b"SQLite format 3\0", "is an SQLite database, which is not read", _EXPORT),
    (b"\xd0\xcf\x11\xe0", "is an old Office document, which is not read", _EXPORT),
    (b"\x7fELF", "is a program or library, not a checkpoint", RIGHT_FILE),
    (b"%PDF-", "is a PDF document, not a checkpoint", RIGHT_FILE),
    (b"\x89PNG", "is a picture (PNG), not a checkpoint", RIGHT_FILE),
    (b"\xff\xd8\xff", "is a picture (JPEG), not a checkpoint", RIGHT_FILE),
    (b"GIF8", "is a picture (GIF), not a checkpoint", RIGHT_FILE),
    (b"\n\x0e\n\x05<unk>", "is a SentencePiece model, a tokenizer without vectors", RIGHT_FILE),
    *((sign, *_FAISS) for sign in (b"IxF", b"IxP", b"IxS", b"IwF", b"IwP", b"IwS", b"IHN", b"IxM")),
    (b"FiFu", "is a finalfusion model, which is not read", "convert it to .vec with finalfusion"),
    (b"<!DOCTYPE", "is a web page", "download the file itself"),
    (b"<html", "is a web page", "download the file itself"),
)

#: The same for files that are known by bytes further inside, or by their names.
_SAVED_MODEL = (
    "is a TensorFlow SavedModel, a graph without its variables",
    "name the folder that it lies in, or variables/variables.index there",
)
_TFLITE = ("is a TensorFlow Lite model, which is not read", "use the model it was made from")
_CORE_ML = ("is a Core ML model, which is not read", "use the model it was made from")
_TENSORFLOW_1 = (
    "is a TensorFlow checkpoint from before version 0.12, which is not read",
    "load it with TensorFlow and save it with tf.compat.v1.train.Saver",
)
_TENSORFLOW_DATA = (
    "holds the numbers of a TensorFlow checkpoint",
    "name the file next to it that ends in .index",
)
_TENSORFLOW_META = (
    "is the graph of a TensorFlow checkpoint, without its numbers",
    "name the file next to it that ends in .index",
)
_TENSORFLOW_STATE = (
    "says which TensorFlow checkpoint of its folder is the newest",
    "name that checkpoint's file that ends in .index",
)
_ZLIB = ("is compressed with zlib, as joblib does, which is not read", _JOBLIB)
_ZLIB_STARTS = (b"x\x01", b"x^", b"x\x9c", b"x\xda")
_GRAPH = (
    "is a graph of TensorFlow, which is not read",
    "use the checkpoint it was made from",
)
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
OTHER_SIGNS = (
    _SAVED_MODEL,
    _GRAPH,
    _TFLITE,
    _CORE_ML,
    _TENSORFLOW_1,
    _TENSORFLOW_DATA,
    _TENSORFLOW_META,
    _TENSORFLOW_STATE,
    _ZLIB,
    _JSON,
    _COUNTS,
    _TEXT,
)
_DATA_NAME = re.compile(r".*\.data-\d{5}-of-\d{5}")
#: The first entry of its table: no name, and a SavedTensorSlices with a list of tensors.
_TENSORFLOW_1_START = re.compile(rb"\0\0[\x80-\xff]{0,4}[\0-\x7f]\n[\x80-\xff]{0,4}[\0-\x7f]\n")
_BY_NAME = ((".mlmodel", _CORE_ML), (".meta", _TENSORFLOW_META), (".pb", _GRAPH))
_COUNTED = re.compile(rb"[^\t\n]*[\t ] *\d+\r?")

#: Folders without weights that are read: a file in them, what they are, and the way out.
_ORBAX = (
    "an Orbax checkpoint of JAX, which is not read",
    "restore it with orbax and save the matrix with numpy.save, or the parameters with "
    "flax.serialization.to_bytes",
)
_DEEPSPEED = (
    "a DeepSpeed checkpoint, whose file 'latest' names a folder inside",
    "run its zero_to_fp32.py, or name mp_rank_00_model_states.pt in that folder",
)
_CACHE = ("a Hugging Face cache", "name the folder of a model in it: models--ORG--NAME")
_CTRANSLATE2 = (
    "a CTranslate2 model, which is not read",
    "use the model that it was converted from",
)
_MODULES = (
    "a SentenceTransformer whose modules lie in folders of their own",
    "name the folder of the module that holds the embedding, such as 0_StaticEmbedding",
)
_ZARR = ("a Zarr array, which is not read", "load it with zarr and save it with numpy.save")
FOLDERS: tuple[tuple[str, str, str], ...] = (
    ("manifest.ocdbt", *_ORBAX),
    ("_CHECKPOINT_METADATA", *_ORBAX),
    ("latest", *_DEEPSPEED),
    ("shared_vocabulary.json", *_CTRANSLATE2),
    ("shared_vocabulary.txt", *_CTRANSLATE2),
    ("modules.json", *_MODULES),
    (".zarray", *_ZARR),
    ("zarr.json", *_ZARR),
)

_READ = (
    "torch, safetensors, GGUF, Keras, ONNX, Flax and TensorFlow checkpoints, model folders, .npy, "
    ".npz, pickled arrays, Parquet and Arrow, gensim's, word2vec, GloVe and fastText vectors, "
    "tables of numbers and vectors in JSON are read"
)

#: Bytes of a character of UTF-8, of which the head may hold a part.
_LONGEST_CHARACTER = 4

# Of bytes that are not numbers, fewer than half read as numbers of these sizes.
_SMALLEST, _LARGEST = 1e-8, 1e3
_FEWEST = 16
_MOST = 0.99


def find_well_known(head: bytes) -> tuple[str, str] | None:
    """What a file of another tool is, by its first bytes, and the way out."""
    found = (said for magic, *said in WELL_KNOWN if head.startswith(magic))
    return next(((cause, way_out) for cause, way_out in found), None)


def unknown_format(path: Path, head: bytes) -> UnreadableFile:
    """The error for a file that begins with `head`, with advice where its kind is known."""
    if (known := find_well_known(head)) is not None:
        return refuse(path, *known)
    if head[257:262] == b"ustar":
        return refuse(path, "is a damaged tar archive", "download or pack it again")
    named = _by_other_signs(path, head)
    if named is not None:
        return refuse(path, named[0], named[1])
    if _are_bare_numbers(head):
        return refuse(
            path,
            "looks like bare numbers, without anything that says what they are",
            "put next to it what its program wrote (GloVe's vocab.txt, the projector's "
            "projector_config.pbtxt), or save it as .npy: numpy.save('a.npy', "
            "numpy.fromfile(FILE, DTYPE).reshape(ROWS, COLUMNS))",
        )
    return refuse(path, "its format is not known", _READ)


def _by_other_signs(path: Path, head: bytes) -> tuple[str, str] | None:
    """What a file is and the way out, where its first bytes alone do not say."""
    if head[4:8] == b"TFL3":
        return _TFLITE
    if head[8:12] == b"DUCK":
        return _DUCKDB
    if _TENSORFLOW_1_START.match(head):
        return _TENSORFLOW_1
    # Field 1, the version 1, then field 2, the graph with its tags and functions.
    if head.startswith(b"\x08\x01\x12") or path.name == "saved_model.pb":
        return _SAVED_MODEL
    if _DATA_NAME.fullmatch(path.name):
        return _TENSORFLOW_DATA
    if head.startswith(b"model_checkpoint_path:"):
        return _TENSORFLOW_STATE
    by_name = next((said for ending, said in _BY_NAME if path.name.endswith(ending)), None)
    if by_name is not None:
        return by_name
    by_text = _by_text(head)
    return _ZLIB if by_text is None and head.startswith(_ZLIB_STARTS) else by_text


def _by_text(head: bytes) -> tuple[str, str] | None:
    """What a text file is, judged by its first lines; the last one may be cut off."""
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
    """Whether the bytes read as float64, or as float32, of the size that vectors have."""
    for code in ("<f8", "<f4"):
        sample = np.frombuffer(head[: len(head) // 8 * 8], dtype=code)
        with np.errstate(invalid="ignore"):
            sizes = np.abs(sample[sample != 0])
        usual = (sizes > _SMALLEST) & (sizes < _LARGEST)
        if len(sizes) >= _FEWEST and usual.mean() > _MOST:
            return True
    return False


def unknown_folder(names: Iterable[str]) -> tuple[str, str] | None:
    """What a folder with files of these names is, and the way out, where it is of another tool."""
    held = set(names)
    if any(name.startswith("models--") for name in held):
        return _CACHE
    return next(((cause, way_out) for name, cause, way_out in FOLDERS if name in held), None)

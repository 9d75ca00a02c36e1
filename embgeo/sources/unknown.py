"""What to say about a file that no format knows: many are well-known formats of other tools."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from embgeo.errors import UnreadableFile

_UNPACK = "unpack it and name the file inside"
_OLD_GGML = "use the checkpoint it was made from, or convert it to GGUF"
_MATLAB = "save the matrix with scipy as .npy"
_R = "write the matrix with write.table, words first"
_EXPORT = "save the matrix as .npy or as text"
_RIGHT_FILE = "check that it is the right file"

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
    (b"\x7fELF", "is a program or library, not a checkpoint", _RIGHT_FILE),
    (b"%PDF-", "is a PDF document, not a checkpoint", _RIGHT_FILE),
    (b"\x89PNG", "is a picture (PNG), not a checkpoint", _RIGHT_FILE),
    (b"\xff\xd8\xff", "is a picture (JPEG), not a checkpoint", _RIGHT_FILE),
    (b"GIF8", "is a picture (GIF), not a checkpoint", _RIGHT_FILE),
    (b"\n\x0e\n\x05<unk>", "is a SentencePiece model, a tokenizer without vectors", _RIGHT_FILE),
    (b"<!DOCTYPE", "is a web page", "download the file itself"),
    (b"<html", "is a web page", "download the file itself"),
)

#: The same for files that are known by bytes further inside, or by the end of the name.
_SAVED_MODEL = (
    "is a TensorFlow SavedModel, a graph without its variables",
    "name the file variables/variables.index beside it",
)
_TFLITE = ("is a TensorFlow Lite model, which is not read", "use the model it was made from")
_CORE_ML = ("is a Core ML model, which is not read", "use the model it was made from")
_TENSORFLOW_DATA = (
    "holds the numbers of a TensorFlow checkpoint",
    "name the file that ends in .index beside it",
)
OTHER_SIGNS = (_SAVED_MODEL, _TFLITE, _CORE_ML, _TENSORFLOW_DATA)
_DATA_NAME = re.compile(r".*\.data-\d{5}-of-\d{5}")

_READ = (
    "torch, safetensors, GGUF, Keras, ONNX, Flax and TensorFlow checkpoints, model folders, .npy, "
    ".npz, pickled arrays, word2vec, GloVe and fastText vectors are read"
)

# Of bytes that are no numbers, fewer than half read as numbers of these sizes.
_SMALLEST, _LARGEST = 1e-8, 1e3
_FEWEST = 16
_MOST = 0.99


def unknown_format(path: Path, head: bytes) -> UnreadableFile:
    """The error for a file that begins with `head`, with advice where its kind is known."""
    for magic, cause, way_out in WELL_KNOWN:
        if head.startswith(magic):
            return UnreadableFile(cause, where=path, way_out=way_out)
    if head[257:262] == b"ustar":
        return UnreadableFile(
            "is a damaged tar archive", where=path, way_out="download or pack it once more"
        )
    named = _by_other_signs(path, head)
    if named is not None:
        return UnreadableFile(named[0], where=path, way_out=named[1])
    if _are_bare_numbers(head):
        return UnreadableFile(
            "looks like bare numbers, without anything that says what they are",
            where=path,
            way_out="put beside it what its program wrote: GloVe's vocab.txt, or the projector's "
            "projector_config.pbtxt",
        )
    return UnreadableFile("its format is not known", where=path, way_out=_READ)


def _by_other_signs(path: Path, head: bytes) -> tuple[str, str] | None:
    """What a file is and the way out, where its first bytes alone do not tell."""
    if head[4:8] == b"TFL3":
        return _TFLITE
    if path.suffix == ".mlmodel":
        return _CORE_ML
    # Field 1, the version 1, then field 2, the graph with its tags and functions.
    if head.startswith(b"\x08\x01\x12") or path.name == "saved_model.pb":
        return _SAVED_MODEL
    if _DATA_NAME.fullmatch(path.name):
        return _TENSORFLOW_DATA
    return None


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

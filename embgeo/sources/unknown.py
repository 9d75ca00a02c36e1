"""What to say about a file that no format knows: many are well-known formats of other tools."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embgeo.errors import UnreadableFile

#: First bytes, what they mean, and the way out.
_WELL_KNOWN: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs.github.com/spec",
        "is a Git LFS pointer, not the file itself",
        "run 'git lfs pull' in its repository",
    ),
    (b"\x89HDF\r\n", "is an HDF5 file (Keras, TensorFlow)", "export the matrix as .npy"),
    (b"GGUF", "is a GGUF file, which is not read yet", "use the safetensors it was made from"),
    (b"\xfd7zXZ", "is compressed with xz", "decompress it first"),
    (b"BZh", "is compressed with bzip2", "decompress it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "decompress it first"),
    (b"7z\xbc\xaf", "is a 7-zip archive", "unpack it and name the file inside"),
    (b"<!DOCTYPE", "is a web page", "download the file itself"),
    (b"<html", "is a web page", "download the file itself"),
)

_READ = (
    "torch and safetensors checkpoints, model folders, .npy, .npz, pickled arrays, "
    "word2vec, GloVe and fastText vectors are read"
)

# Of bytes that are no numbers, fewer than half read as numbers of these sizes.
_SMALLEST, _LARGEST = 1e-8, 1e3
_FEWEST = 16
_MOST = 0.99


def unknown_format(path: Path, head: bytes) -> UnreadableFile:
    """The error for a file that begins with `head`, with advice where its kind is known."""
    for magic, cause, way_out in _WELL_KNOWN:
        if head.startswith(magic):
            return UnreadableFile(cause, where=path, way_out=way_out)
    if head[257:262] == b"ustar":
        return UnreadableFile(
            "is a tar archive", where=path, way_out="unpack it and name the file inside"
        )
    if _are_bare_numbers(head):
        return UnreadableFile(
            "looks like bare numbers, without anything that says what they are",
            where=path,
            way_out="put beside it what its program wrote: GloVe's vocab.txt, or the projector's "
            "projector_config.pbtxt",
        )
    return UnreadableFile("its format is not known", where=path, way_out=_READ)


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

"""What to say about a file that no format knows: many are well-known formats of other tools."""

from __future__ import annotations

from pathlib import Path

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


def unknown_format(path: Path, head: bytes) -> UnreadableFile:
    """The error for a file that begins with `head`, with advice where its kind is known."""
    for magic, cause, way_out in _WELL_KNOWN:
        if head.startswith(magic):
            return UnreadableFile(cause, where=path, way_out=way_out)
    if head[257:262] == b"ustar":
        return UnreadableFile(
            "is a tar archive", where=path, way_out="unpack it and name the file inside"
        )
    return UnreadableFile("its format is not known", where=path, way_out=_READ)

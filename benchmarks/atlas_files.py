"""Matrices in files that embgeo has no reader for, read with plain numpy for the atlas."""

import csv
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.floating[Any]]


def read_thinc(path: Path, node: str) -> Rows:
    """The `node`-th table of hash embeddings in a model of spaCy, written by msgpack-numpy."""
    stored = msgspec.msgpack.decode(path.read_bytes())
    tables = [
        parameter["E"]
        for one, parameter in zip(stored["nodes"], stored["params"], strict=True)
        if one["name"] == "hashembed"
    ]
    table = tables[int(node)]
    flat = np.frombuffer(table[b"data"], dtype=np.dtype(table[b"type"]))
    return flat.reshape(table[b"shape"])


def read_sphinx(path: Path, feature: str) -> Rows:
    """Means of a semi-continuous acoustic model: a row for each Gaussian of each codebook."""
    stored = path.read_bytes()
    start = stored.index(b"endhdr\n") + len(b"endhdr\n") + 4
    codebooks, features, densities = np.frombuffer(stored, "<i4", 3, start)
    lengths = np.frombuffer(stored, "<i4", int(features), start + 12)
    values = np.frombuffer(stored, "<f4", offset=start + 12 + 4 * int(features) + 4)[:]
    size = int(codebooks * densities * lengths.sum())
    by_codebook = values[:size].reshape(int(codebooks), -1)
    widths = densities * lengths
    first = int(widths[: int(feature)].sum())
    chosen = by_codebook[:, first : first + int(widths[int(feature)])]
    return chosen.reshape(-1, int(lengths[int(feature)]))


def read_named_lists(path: Path, _: str) -> Rows:
    """Lines ``name:[numbers],``, as IR2Vec keeps its seed embeddings."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return np.array(
        [json.loads(line.partition(":")[2].strip().rstrip(",")) for line in lines if ":" in line]
    )


def read_bits(path: Path, _: str) -> Rows:
    """An array of bits, the first axis the rows."""
    bits = np.load(path, allow_pickle=False)
    return bits.reshape(len(bits), -1).astype(np.float32)


def read_array(path: Path, name: str) -> Rows:
    """A named array of an .npz with axes of length one left out."""
    with np.load(path, allow_pickle=False) as arrays:
        return np.asarray(np.squeeze(arrays[name]))


def read_navec(path: Path, _: str) -> Rows:
    """Word vectors of navec: each piece of a row is one of the vectors of a codebook."""
    with tarfile.open(path) as archive:
        file = archive.extractfile("pq.bin")
        assert file is not None
        stored = file.read()
    n, d, pieces, size = np.frombuffer(stored, "<u4", 4).tolist()
    codes = np.frombuffer(stored, "u1", n * pieces, 16).reshape(n, pieces)
    books = np.frombuffer(stored, "<f4", size * d, 16 + codes.size)
    books = books.reshape(pieces, size, d // pieces)
    return np.concatenate([books[k][codes[:, k]] for k in range(pieces)], axis=1)


def read_signs(path: Path, _: str) -> Rows:
    """A table of features: a name, then ``+``, ``-`` or ``0`` for each."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))[1:]
    sign = {"+": 1.0, "-": -1.0, "0": 0.0}
    return np.array([[sign[one] for one in line[1:]] for line in lines])


DECODERS: dict[str, Callable[[Path, str], Rows]] = {
    "thinc": read_thinc,
    "sphinx": read_sphinx,
    "named lists": read_named_lists,
    "bits": read_bits,
    "array": read_array,
    "navec": read_navec,
    "signs": read_signs,
}

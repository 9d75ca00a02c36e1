"""Made matrices, written once to a file and opened without embgeo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

TENSOR = "model.embed_tokens.weight"
BLOCK_ROWS = 2048
#: Share of that square along the common direction, on average: about the mean cosine.
COMMON = 0.1


@dataclass(frozen=True)
class Shape:
    """Rows, columns and entries of a made matrix.

    Attributes
    ----------
    rows, columns : int
    dtype : {"float32", "float64", "bfloat16"}
        bfloat16 is written as .safetensors, the others as .npy.
    decay : float
        σ_k ∝ k^(−decay).
    length : float
        Root of the mean square of the rows' lengths.
    """

    rows: int
    columns: int
    dtype: str = "float32"
    decay: float = 0.35
    length: float = 1.0

    @property
    def file_name(self) -> str:
        suffix = "safetensors" if self.dtype == "bfloat16" else "npy"
        size = f"{self.rows}x{self.columns}"
        return f"{size}-{self.dtype}-decay{self.decay}-length{self.length}.{suffix}"

    @property
    def text(self) -> str:
        return f"{self.rows:,} × {self.columns:,} {self.dtype}"


def write_matrix(shape: Shape, folder: Path) -> Path:
    """The file of a matrix, made unless it is there."""
    path = folder / shape.file_name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.partial")
        with partial.open("wb") as stream:
            write_header(stream, shape)
            for block in blocks(shape):
                stream.write(block.tobytes())
        partial.replace(path)
    return path


def blocks(shape: Shape) -> Iterator[Array]:
    """Rows in a cone with a power-law spectrum, the rarer the farther along the cone."""
    from scipy.fft import dct

    rng = np.random.default_rng([2019, shape.rows, shape.columns])
    sigma = np.arange(1, shape.columns + 1, dtype=np.float32) ** -shape.decay
    sigma *= shape.length * np.sqrt((1 - COMMON) / np.sum(sigma**2))
    common = rng.standard_normal(shape.columns)
    common *= shape.length * np.sqrt(COMMON) / np.linalg.norm(common)
    signs = rng.choice(np.array([-1, 1], dtype=np.float32), shape.columns)
    for start in range(0, shape.rows, BLOCK_ROWS):
        index = np.arange(start, min(start + BLOCK_ROWS, shape.rows))
        rows = rng.standard_normal((len(index), shape.columns), dtype=np.float32)
        # A turn that costs little and leaves no coordinate an eigenvector.
        turned = dct(rows * sigma * signs, axis=1, norm="ortho")
        turned += (0.5 + index / shape.rows)[:, None] * common
        yield turned.astype(dtype_of(shape.dtype))


def dtype_of(name: str) -> np.dtype[Any]:
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


def write_header(stream: BinaryIO, shape: Shape) -> None:
    size = (shape.rows, shape.columns)
    if shape.dtype != "bfloat16":
        description = np.lib.format.dtype_to_descr(np.dtype(shape.dtype))
        np.lib.format.write_array_header_1_0(
            stream, {"descr": description, "fortran_order": False, "shape": size}
        )
        return
    end = 2 * shape.rows * shape.columns
    text = json.dumps({TENSOR: {"dtype": "BF16", "shape": size, "data_offsets": [0, end]}})
    header = text.encode().ljust(-(-len(text) // 8) * 8)
    stream.write(len(header).to_bytes(8, "little") + header)


def open_matrix(path: Path) -> Array:
    """A map of the matrix in a file that :func:`written` made."""
    if path.suffix == ".npy":
        mapped: Array = np.load(path, mmap_mode="r")
        return mapped
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        shape = json.loads(stream.read(length))[TENSOR]["shape"]
    raw = np.memmap(path, dtype=np.uint16, mode="r", offset=8 + length, shape=tuple(shape))
    return raw.view(dtype_of("bfloat16"))


def cut(path: Path, rows: int | None, columns: int | None) -> Array:
    """The first rows and columns of a matrix, in memory and in C order."""
    return np.array(open_matrix(path)[:rows, :columns], order="C")


def warm_cache(path: Path) -> None:
    """Bring a file into the page cache, so that no contender waits for the disk."""
    with path.open("rb") as stream:
        while stream.read(2**24):
            pass

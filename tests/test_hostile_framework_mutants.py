"""Mutants of sound GGUF, HDF5, ONNX, Flax and TensorFlow files; other tools' files, by name."""

from __future__ import annotations

import os
import random
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import embgeo
from embgeo.errors import UnreadableFile
from embgeo.sources import (
    flax_msgpack,
    gguf_file,
    hdf5_file,
    onnx_file,
    tensorflow_checkpoint,
)
from tests.binary_files import open_all, quick
from tests.framework_files import (
    bundle_header,
    flax_array,
    flax_bytes,
    flax_chunks,
    gguf_bytes,
    gguf_tensor,
    hdf5,
    needs,
    onnx_bytes,
    onnx_tensor,
    table_of,
    variable,
)

W = np.arange(12, dtype="<f4").reshape(4, 3)
RAW = W.tobytes()


def sound_files(tmp_path: Path) -> dict[str, tuple[ModuleType, bytes]]:
    """One small sound file for each format; what lies beside it is written once."""
    needs("msgpack")
    needs("gguf")
    (tmp_path / "a.data-00000-of-00001").write_bytes(RAW * 3)
    (tmp_path / "data").write_bytes(RAW)
    metadata = {
        "tokenizer.ggml.tokens": ["▁a", "b", "c", "d"],
        "tokenizer.ggml.token_type": [1, 3, 1, 5],
        "lists": [["a"], ["b"]],
    }
    blocks = [gguf_tensor("w", [3, 4], 0, 0), gguf_tensor("q", [32, 2], 2, 64)]
    entries = [(b"", bundle_header())]
    entries += [(f"w{k}".encode(), variable([4, 3], 48 * k, 48)) for k in range(3)]
    half = onnx_tensor("v", [4, 3], None, location="data")
    tree = {"p": {"w": flax_array(W), "c": flax_chunks(W, 5)}, "n": [1, 2.5, None, "x", -3]}
    return {
        "gguf": (gguf_file, gguf_bytes(metadata, blocks, RAW + bytes(16) + bytes(range(36)))),
        "onnx": (onnx_file, onnx_bytes([onnx_tensor("w", [4, 3], RAW), half])),
        "tensorflow": (tensorflow_checkpoint, table_of(entries)),
        "flax": (flax_msgpack, flax_bytes(tree)),
    }


def mutant(content: bytes, generator: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(generator.choice((1, 1, 2, 5))):
        at = generator.randrange(len(changed))
        flipped = changed[at] ^ (1 << generator.randrange(8))
        changed[at] = generator.choice((flipped, 0, 255, generator.randrange(256)))
    if generator.random() < 0.2:
        del changed[generator.randrange(len(changed)) :]
    return bytes(changed)


def survives(module: ModuleType, path: Path) -> bool:
    try:
        open_all(module, path)
    except UnreadableFile:
        return False
    return True


@pytest.mark.parametrize("name", ["gguf", "onnx", "tensorflow", "flax"])
def test_mutants(name: str, tmp_path: Path) -> None:
    """`EMBGEO_MUTANTS` asks for more of them."""
    module, content = sound_files(tmp_path)[name]
    path = tmp_path / ("a.index" if name == "tensorflow" else "a")
    generator = random.Random(name)
    count = int(os.environ.get("EMBGEO_MUTANTS", "250"))
    with quick(20 + count / 20):
        path.write_bytes(content)
        assert survives(module, path)
        for _ in range(count):
            path.write_bytes(mutant(content, generator))
            module.sniff(path.read_bytes()[:4096])
            survives(module, path)


def test_cuts(tmp_path: Path) -> None:
    for name, (module, content) in sound_files(tmp_path).items():
        path = tmp_path / ("a.index" if name == "tensorflow" else "a")
        for end in range(0, len(content), 3):
            path.write_bytes(content[:end])
            assert not survives(module, path), (name, end)


def test_mutants_of_hdf5(tmp_path: Path) -> None:
    """Few, as each takes a process of its own."""
    path = hdf5(tmp_path, lambda file: file.create_dataset("a/w", data=W, compression="gzip"))
    content = path.read_bytes()
    generator = random.Random(5)
    for _ in range(int(os.environ.get("EMBGEO_MUTANTS", "80")) // 10):
        path.write_bytes(mutant(content, generator))
        with quick(10):
            survives(hdf5_file, path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"lmgg\x01\0\0\0", "old ggml model"),
        (b"tjgg\x03\0\0\0", "GGJT"),
        (b"fmgg\x01\0\0\0", "GGMF"),
        (b"algg\x01\0\0\0", "GGLA"),
        (b"Rar!\x1a\x07\x01\0", "RAR"),
        (b"7z\xbc\xaf\x27\x1c", "7-zip"),
        (b"%PDF-1.7", "PDF"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"\x08\x01\x12\xff\x01\n\x05", "SavedModel"),
        (b"\x1c\0\0\0TFL3", "TensorFlow Lite"),
        (b"MATLAB 5.0 MAT-file, Platform", "MATLAB file .version 5."),
        (b"MATLAB 7.3 MAT-file, Platform", "MATLAB file .version 7.3."),
        (b"X\n\0\0\0\x03", "R object"),
        (b"RDX3\nX\n", "R workspace"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_formats_that_are_refused_by_name(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=expected) as caught:
        embgeo.load(path)
    assert ";" in str(caught.value)

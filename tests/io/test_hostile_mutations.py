"""Sound binary files cut short, and random bytes: they are refused; never anything else."""

from __future__ import annotations

import io
import pickle
import random
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from embgeo.core.errors import UnreadableFile
from embgeo.io.mapped import npy as numpy_npy
from embgeo.io.mapped import npz as numpy_npz
from embgeo.io.mapped import pickled as pickle_arrays
from embgeo.io.mapped import safetensors as safetensors_file
from embgeo.io.mapped import torch_zip
from tests.support.binary_files import (
    FORMATS,
    archive_of,
    entry,
    open_all,
    safetensors_of,
    tensor_program,
)


def small_files() -> dict[str, tuple[ModuleType, bytes]]:
    """One small sound file for each format."""
    array = np.arange(12, dtype="f4").reshape(4, 3)
    value = {"W": array, "id_to_word": dict(enumerate("abcd")), "more": [array.T]}
    stored, compressed, plain = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez(stored, W=array, words=np.array(list("abcd")))
    np.savez_compressed(compressed, W=array, words=np.array(list("abcd")))
    np.save(plain, array)
    header = {"a": entry(), "b": entry("BF16", [2, 2], [8, 16]), "__metadata__": {"k": "v"}}
    torch_members = {
        "a/data.pkl": tensor_program(),
        "a/byteorder": b"little",
        "a/data/0": bytes(24),
        "a/version": b"3\n",
    }
    return {
        "npy": (numpy_npy, plain.getvalue()),
        "npz": (numpy_npz, stored.getvalue()),
        "npz compressed": (numpy_npz, compressed.getvalue()),
        "safetensors": (safetensors_file, safetensors_of(header, bytes(16))),
        "torch": (torch_zip, archive_of(torch_members)),
        "torch compressed": (torch_zip, archive_of(torch_members, zipfile.ZIP_DEFLATED)),
        **{
            f"pickle {protocol}": (pickle_arrays, pickle.dumps(value, protocol=protocol))
            for protocol in range(6)
        },
    }


SMALL = small_files()


def survives(module: ModuleType, path: Path) -> bool:
    """Whether the file opens; anything raised but UnreadableFile passes through."""
    module.sniff(path.read_bytes()[:4096])
    try:
        open_all(module, path)
    except UnreadableFile:
        return False
    return True


@pytest.mark.parametrize("name", list(SMALL))
@pytest.mark.slow
def test_every_cut_is_refused(name: str, tmp_path: Path) -> None:
    module, content = SMALL[name]
    path = tmp_path / "a"
    path.write_bytes(content)
    assert survives(module, path)
    for end in range(0, len(content), max(1, len(content) // 80)):
        path.write_bytes(content[:end])
        assert not survives(module, path), end


@pytest.mark.parametrize("module", FORMATS, ids=lambda module: module.NAME)
def test_random_bytes_and_short_heads(module: ModuleType, tmp_path: Path) -> None:
    generator = random.Random(module.NAME)
    path = tmp_path / "a"
    for size in (0, 1, 2, 7, 8, 9, 15, 16, 100, 5000):
        path.write_bytes(generator.randbytes(size))
        assert not survives(module, path)
    for _, content in SMALL.values():
        for end in range(64):
            assert module.sniff(content[:end]) in (True, False)

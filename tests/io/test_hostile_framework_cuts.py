"""GGUF and ONNX files cut short; files of other tools, refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from tests.support.framework_files import needs
from tests.support.fuzz_seeds import SEEDS


@pytest.mark.parametrize("name", ["gguf", "onnx"])
@pytest.mark.slow
def test_cuts(name: str, tmp_path: Path) -> None:
    seed = SEEDS[name]
    if seed.needs:
        needs(seed.needs)
    content, path = seed.make(tmp_path), tmp_path / seed.file
    for end in range(0, len(content), 3):
        path.write_bytes(content[:end])
        with pytest.raises(UnreadableFile):
            embgeo.load(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"lmgg\x01\0\0\0", "old ggml model"),
        (b"tjgg\x03\0\0\0", "old ggml model"),
        (b"fmgg\x01\0\0\0", "old ggml model"),
        (b"algg\x01\0\0\0", "GGLA"),
        (b"Rar!\x1a\x07\x01\0", "RAR"),
        (b"7z\xbc\xaf\x27\x1c", "7-zip"),
        (b"%PDF-1.7", "PDF"),
        (b"\x89PNG\r\n\x1a\n", "picture"),
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

"""Compressed files and pipes: the same matrix comes out, and nothing else happens."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.files import compressed
from embgeo.files import scratch as scratch_files
from embgeo.files.guard import Damaged
from embgeo.io.load import open_checkpoint
from tests.support.refusals import refusal

W = np.arange(18, dtype=np.float32).reshape(6, 3) + 1
GLOVE = "".join(f"t{k} {' '.join(map(str, row))}\n" for k, row in enumerate(W.tolist())).encode()


def npy() -> bytes:
    out = io.BytesIO()
    np.save(out, W)
    return out.getvalue()


def zstd(data: bytes) -> bytes:
    package = pytest.importorskip("zstandard", reason="zstandard is not installed")
    packed: bytes = package.ZstdCompressor().compress(data)
    return packed


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd}
each_codec = pytest.mark.parametrize("codec", list(COMPRESSORS))


def written(tmp_path: Path, content: bytes, name: str = "some.file") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def refused(path: Path | str) -> None:
    with refusal(UnreadableFile):
        embgeo.load(path)


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


# Compressed files


@each_codec
@pytest.mark.parametrize(("inner", "name"), [(npy(), "npy"), (GLOVE, "GloVe text")])
def test_compressed_files(tmp_path: Path, codec: str, inner: bytes, name: str) -> None:
    path = written(tmp_path, COMPRESSORS[codec](inner))
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.origin.format == f"{name}, {codec}"
    assert matrix.origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert matrix.name == "some.file"


@each_codec
def test_side_files_may_be_compressed_too(tmp_path: Path, codec: str) -> None:
    pack = COMPRESSORS[codec]
    path = written(tmp_path, npy())
    tokens = written(tmp_path, pack(b"a\nb\nc\nd\ne\nf\n"), "tokens")
    corpus = written(tmp_path, pack(b"a b a"), "corpus")
    matrix = embgeo.load(path, tokens=tokens, corpus=corpus)
    assert matrix.tokens == tuple("abcdef")
    assert matrix.frequency is not None
    np.testing.assert_array_equal(matrix.frequency.counts, [2, 1, 0, 0, 0, 0])


@each_codec
def test_streams_one_after_the_other_are_one_file(tmp_path: Path, codec: str) -> None:
    pack = COMPRESSORS[codec]
    middle = len(GLOVE) // 2
    content = pack(GLOVE[:middle]) + pack(GLOVE[middle:])
    np.testing.assert_array_equal(embgeo.load(written(tmp_path, content)).data, W)


@each_codec
def test_cut_and_damaged_data_are_refused(tmp_path: Path, scratch: Path, codec: str) -> None:
    whole = COMPRESSORS[codec](np.random.default_rng(0).bytes(3000))
    for end in (8, 20, len(whole) // 2, len(whole) - 1):
        refused(written(tmp_path, whole[:end]))
    refused(written(tmp_path, whole + b"more"))
    assert list(scratch.iterdir()) == []


@each_codec
def test_bombs(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, codec: str) -> None:
    monkeypatch.setattr(compressed, "RATIO_FREE_BYTES", 2**20)
    path = written(tmp_path, COMPRESSORS[codec](100 * GLOVE + bytes(20_000_000)))
    refused(path)
    with refusal(UnreadableFile):
        embgeo.load(written(tmp_path, npy(), "a.npy"), tokens=path)
    assert list(scratch.iterdir()) == []


def test_very_many_empty_frames_of_zstd_are_refused(tmp_path: Path) -> None:
    """Those of 32 MB took minutes."""
    for frame in (zstd(b""), b"\x50\x2a\x4d\x18" + bytes(4)):
        open_checkpoint(written(tmp_path, zstd(GLOVE) + 9_000 * frame))
        refused(written(tmp_path, zstd(GLOVE) + 11_000 * frame))


def test_windows_beyond_the_memory_bound_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("zstandard", reason="zstandard is not installed")
    huge = b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"  # a window of 2 GiB, then an empty block
    refused(written(tmp_path, huge))


def test_zstd_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, zstd(GLOVE))
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    refused(path)


def test_a_mapped_array_lives_as_long_as_its_tensor(tmp_path: Path, scratch: Path) -> None:
    opened = open_checkpoint(written(tmp_path, gzip.compress(npy())))
    assert len(list(scratch.iterdir())) == 1
    array = opened.tensors[0].open()
    del opened
    assert list(scratch.iterdir()) == []
    np.testing.assert_array_equal(array, W)


def test_one_layer_is_unpacked_and_no_archive(tmp_path: Path, scratch: Path) -> None:
    tar, archive = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as writer:
        writer.addfile(tarfile.TarInfo("v.txt"))
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("v.txt", GLOVE)
    for content in (gzip.compress(gzip.compress(GLOVE)), tar.getvalue(), archive.getvalue()):
        for packed in (content, gzip.compress(content)):
            refused(written(tmp_path, packed))
    assert list(scratch.iterdir()) == []


def test_errors_and_notes_name_the_compressed_file(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(GLOVE + b"t6 1.5\n"), "v.gz")
    refused(path)
    words = written(tmp_path, gzip.compress(GLOVE + GLOVE), "twice.txt.gz")
    assert not any("embgeo-" in note for note in embgeo.load(words).origin.notes)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_is_named_when_little_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(path=Path("/dev/full"), remove=lambda: None)
    monkeypatch.setattr(scratch_files, "ScratchFile", lambda: full)
    with refusal(Damaged):
        scratch_files.write_scratch([b"x"], "it")


# Standard input


def piped(monkeypatch: pytest.MonkeyPatch, content: bytes, terminal: bool = False) -> None:
    fake = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: terminal)
    monkeypatch.setattr("sys.stdin", fake)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    content = pack(GLOVE)
    piped(monkeypatch, content)
    matrix = embgeo.load("-")
    np.testing.assert_array_equal(matrix.data, W)
    assert (matrix.origin.path, matrix.name) == ("-", "stdin")
    assert matrix.origin.sha256 == hashlib.sha256(content).hexdigest()
    assert list(scratch.iterdir()) == []


def test_standard_input_is_received_up_to_the_limit(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embgeo.io.load._PIECE", 10)
    monkeypatch.setattr("embgeo.io.load.MAX_BYTES", len(GLOVE))
    piped(monkeypatch, GLOVE)
    np.testing.assert_array_equal(embgeo.load("-").data, W)
    monkeypatch.setattr("embgeo.io.load.MAX_BYTES", len(GLOVE) - 1)
    piped(monkeypatch, GLOVE)
    refused("-")
    assert list(scratch.iterdir()) == []


def test_nothing_more_is_received_of_what_is_not_read(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not end would fill the disk."""
    piped(monkeypatch, bytes(10**6))
    refused("-")
    assert sys.stdin.buffer.tell() < 10**5
    monkeypatch.setattr("embgeo.io.load.write_scratch", lambda *_: 1 / 0)
    refused(written(scratch, gzip.compress(b"just some prose\n")))


def test_there_may_be_no_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    refused("-")


@pytest.mark.parametrize(
    ("content", "terminal"),
    [
        (b"", False),
        (b"just some prose\n", False),
        (GLOVE, True),
        (gzip.compress(GLOVE)[:-9], False),
    ],
)
def test_standard_input_that_is_refused(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, terminal: bool
) -> None:
    piped(monkeypatch, content, terminal)
    refused("-")
    assert list(scratch.iterdir()) == []

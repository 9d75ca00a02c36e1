"""Compressed files, archives and pipes: the same matrix comes out, and nothing else happens."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import save as safetensors_bytes

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io import containers, open_checkpoint
from embgeo.io.bounded import compressed, tar_members
from embgeo.io.bounded import scratch as scratch_files
from embgeo.io.bounded.guard import Damaged

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


def zipped(method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> bytes:
    return zip_of(members, method)


def zip_of(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def tar_of(members: dict[str, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


ARCHIVERS: dict[str, Callable[[dict[str, bytes]], bytes]] = {"zip": zip_of, "tar": tar_of}
each_archive = pytest.mark.parametrize("kind", list(ARCHIVERS))


def written(tmp_path: Path, content: bytes, name: str = "some.file") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def refused(path: Path | str) -> str:
    with pytest.raises(UnreadableFile) as caught:
        embgeo.load(path)
    text = str(caught.value)
    assert "\n" not in text
    assert ";" in text, "a way out is missing"
    assert "embgeo-" not in text, "a scratch file is named instead of the user's"
    return text


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
        text = refused(written(tmp_path, whole[:end]))
        assert "damaged or cut off" in text or "format is not known" in text, end
    assert f"its {codec} data are damaged" in refused(written(tmp_path, whole + b"more"))
    assert list(scratch.iterdir()) == []


@each_codec
@pytest.mark.slow
def test_bombs(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, codec: str) -> None:
    monkeypatch.setattr(compressed, "RATIO_FREE_BYTES", 2**20)
    path = written(tmp_path, COMPRESSORS[codec](bytes(20_000_000)))
    assert "decompression bomb" in refused(path)
    assert list(scratch.iterdir()) == []


def test_windows_beyond_the_memory_bound_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("zstandard", reason="zstandard is not installed")
    huge = b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"  # a window of 2 GiB, then an empty block
    assert "zstd data are damaged" in refused(written(tmp_path, huge))


def test_zstd_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, zstd(GLOVE))
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    assert "pip install 'embgeo[zstd]'" in refused(path)


# Archives


@pytest.mark.parametrize(
    ("kind", "codec"), [("zip", ""), ("tar", ""), *(("tar", codec) for codec in COMPRESSORS)]
)
def test_the_only_file_of_an_archive(tmp_path: Path, scratch: Path, kind: str, codec: str) -> None:
    content = ARCHIVERS[kind]({"folder/vectors.txt": GLOVE})
    path = written(tmp_path, COMPRESSORS[codec](content) if codec else content)
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens == tuple(f"t{k}" for k in range(6))
    layers = f"{kind}, {codec}" if codec else kind
    assert matrix.origin.format == f"GloVe text, {layers}"
    assert matrix.origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"folder/vectors.txt in the {kind} archive is read" in matrix.origin.notes
    assert list(scratch.iterdir()) == []


@each_archive
def test_a_mapped_member_lives_as_long_as_its_tensor(
    tmp_path: Path, scratch: Path, kind: str
) -> None:
    opened = open_checkpoint(written(tmp_path, ARCHIVERS[kind]({"x.md": b"#", "w.npy": npy()})))
    assert len(list(scratch.iterdir())) == 1
    array = opened.tensors[0].open()
    del opened
    assert list(scratch.iterdir()) == []
    np.testing.assert_array_equal(array, W)


@each_archive
def test_one_file_among_several(tmp_path: Path, kind: str) -> None:
    noise = {
        "readme.md": b"# words\n",
        "__MACOSX/._vectors.txt": GLOVE,
        ".hidden.txt": GLOVE,
        "empty.txt": b"",
    }
    matrix = embgeo.load(written(tmp_path, ARCHIVERS[kind]({**noise, "vectors.txt": GLOVE})))
    np.testing.assert_array_equal(matrix.data, W)
    note = f"vectors.txt in the {kind} archive is read, its 1 other files are not"
    assert note in matrix.origin.notes


@each_archive
def test_a_member_is_named_behind_two_colons(tmp_path: Path, kind: str) -> None:
    other = GLOVE.replace(b"t", b"u")
    path = written(tmp_path, ARCHIVERS[kind]({"50d.txt": GLOVE, "in/100d.txt": other}))
    text = refused(path)
    assert "several files that can be read: 50d.txt, in/100d.txt" in text
    assert f"as in {path}::50d.txt" in text
    matrix = embgeo.load(f"{path}::in/100d.txt")
    assert matrix.tokens is not None
    assert matrix.tokens[0] == "u0"
    assert matrix.origin.path == f"{path}::in/100d.txt"
    assert "has no file 100d.txt, but 50d.txt, in/100d.txt" in refused(f"{path}::100d.txt")
    assert "not an archive" in refused(f"{written(tmp_path, GLOVE, 'plain')}::50d.txt")
    assert "no such file" in refused(f"{tmp_path / 'nowhere'}::50d.txt")


@each_archive
def test_known_weights_are_preferred(tmp_path: Path, kind: str) -> None:
    weights = safetensors_bytes({"wte.weight": W})
    members = {
        "bert/config.json": b"{}",
        "bert/merges.txt": b"#version: 0.2\na 1 2\nb 3 4\n",
        "bert/vectors.txt": GLOVE,
        "bert/model.safetensors": weights,
    }
    matrix = embgeo.load(written(tmp_path, ARCHIVERS[kind](members)))
    assert matrix.origin.tensor == "wte.weight"
    np.testing.assert_array_equal(matrix.data, W)


@each_archive
def test_nothing_readable(tmp_path: Path, scratch: Path, kind: str) -> None:
    path = written(tmp_path, ARCHIVERS[kind]({"a.md": b"# a", "b.md": b"# b"}))
    assert "holds no file that can be read (a.md, b.md)" in refused(path)
    many = {f"{k}.md": b"#" for k in range(20)}
    assert "and 12 more" in refused(written(tmp_path, ARCHIVERS[kind](many)))
    alone = refused(written(tmp_path, ARCHIVERS[kind]({"a.pdf": b"%PDF-1.7 "})))
    assert "PDF" in alone
    assert list(scratch.iterdir()) == []


@each_archive
@pytest.mark.parametrize("name", ["../../evil.txt", "/evil.txt", "..\\evil.txt", "C:\\evil.txt"])
def test_names_that_lead_out_of_the_folder_lead_nowhere(
    tmp_path: Path, scratch: Path, kind: str, name: str
) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    path = written(folder, ARCHIVERS[kind]({name: GLOVE}))
    before = sorted(tmp_path.rglob("*"))
    matrix = embgeo.load(f"{path}::{name}")
    np.testing.assert_array_equal(matrix.data, W)
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/evil.txt").exists()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "layers"),
    [
        (zipped(**{"v.txt": gzip.compress(GLOVE)}), "zip"),
        (tar_of({"v.txt": gzip.compress(GLOVE)}), "tar"),
        (zipped(**{"v.tar": tar_of({"v.txt": GLOVE})}), "zip"),
        (gzip.compress(gzip.compress(GLOVE)), "gzip"),
        (gzip.compress(tar_of({"v.txt": gzip.compress(GLOVE)})), "tar in gzip"),
        (gzip.compress(zipped(**{"v.txt": GLOVE})), "gzip"),
    ],
)
def test_one_layer_is_unpacked(tmp_path: Path, scratch: Path, content: bytes, layers: str) -> None:
    said = refused(written(tmp_path, content))
    assert f"holds a compressed file or archive inside ({layers}), which is not read" in said
    assert list(scratch.iterdir()) == []


def test_errors_and_notes_name_the_archive(tmp_path: Path) -> None:
    path = written(tmp_path, zipped(**{"v.txt": GLOVE + b"t6 1.5\n"}), "v.zip")
    assert refused(path).startswith(str(path))
    words = written(tmp_path, gzip.compress(GLOVE + GLOVE), "twice.txt.gz")
    assert not any("embgeo-" in note for note in embgeo.load(words).origin.notes)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_members_that_lie(tmp_path: Path, method: int) -> None:
    sound = zipped(method, **{"v.txt": GLOVE})
    directory = sound.rfind(b"PK\x01\x02")
    checksum = bytearray(sound)
    checksum[directory + 16] ^= 1
    assert "does not match its checksum" in refused(written(tmp_path, bytes(checksum)))
    if method == zipfile.ZIP_DEFLATED:
        for change, expected in ((-1, "longer than the directory says"), (1, "shorter than")):
            size = bytearray(sound)
            size[directory + 24 : directory + 28] = struct.pack("<I", len(GLOVE) + change)
            assert expected in refused(written(tmp_path, bytes(size)))


def test_zip_bombs(tmp_path: Path, scratch: Path) -> None:
    path = written(tmp_path, zipped(**{"v.txt": bytes(20 * 2**20)}))
    assert "would grow from" in refused(path)
    overlapping = bytearray(zip_of({"a.txt": GLOVE, "b.txt": GLOVE}, zipfile.ZIP_STORED))
    second = overlapping.rfind(b"PK\x01\x02")
    overlapping[second + 42 : second + 46] = struct.pack("<I", 0)
    assert "overlaps another member" in refused(written(tmp_path, bytes(overlapping)))
    assert list(scratch.iterdir()) == []


# The tar walker


def listed(content: bytes) -> list[tuple[str, bytes]]:
    data = np.frombuffer(content, dtype=np.uint8)
    return [(m.name, content[m.start : m.start + m.size]) for m in tar_members.members(data)]


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar_members_are_those_of_tarfile(format: int) -> None:
    members = {"a": b"1", "ö/b": b"x" * 512, f"{'d' * 120}/{'e' * 90}": b"y" * 1000, "last": b""}
    content = tar_of(members, format)
    assert listed(content) == list(members.items())
    assert tar_members.is_tar(content[:512])


def test_only_regular_files_are_listed() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo("x")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    assert listed(out.getvalue()) == []


def test_sizes_beyond_octal_digits() -> None:
    content = bytearray(tar_of({"a": b"12345"}, tarfile.GNU_FORMAT))
    content[124:136] = b"\x80" + (5).to_bytes(11, "big")
    assert listed(with_checksum(content)) == [("a", b"12345")]
    content[124:136] = b"\x80" + (2**80).to_bytes(11, "big")
    with pytest.raises(Damaged, match="longer than the file"):
        listed(with_checksum(content))


def with_checksum(content: bytearray, at: int = 0) -> bytes:
    header = content[at : at + 512]
    header[148:156] = b" " * 8
    content[at + 148 : at + 156] = b"%06o\0 " % sum(header)
    return bytes(content)


def pax(records: bytes, size: int | None = None) -> bytes:
    header = bytearray(tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT))
    header[124:136] = b"%011o\0" % (len(records) if size is None else size)
    header[156:157] = b"x"
    padded = records + bytes(-len(records) % 512)
    return with_checksum(header) + padded + tar_of({"a": b"1"}, tarfile.USTAR_FORMAT)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_is_named_when_little_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(path=Path("/dev/full"), remove=lambda: None)
    monkeypatch.setattr(scratch_files, "ScratchFile", lambda: full)
    with pytest.raises(Damaged, match="no room for it in ") as caught:
        scratch_files.write_scratch([b"x"], "it")
    assert "TMPDIR" in caught.value.way_out


def test_sparse_members_of_posix_archives_are_left_out() -> None:
    """GNU tar writes them as regular files whose bytes begin with a map of the holes."""
    member = tarfile.TarInfo("sparse.npy")
    member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member)
        archive.addfile(tarfile.TarInfo("whole"))
    assert [name for name, *_ in listed(out.getvalue())] == ["whole"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (pax(b"", size=2**33 - 1), "longer than the file"),
        (pax(bytes(2**20 + 1)), "implausibly long"),
        (pax(b"0 path=x\n"), "extended header"),
        (pax(b"99 path=x\n"), "extended header"),
        (pax(b"999999999999 path=x\n"), "extended header"),
        (pax(b"path=x\n"), "extended header"),
        (pax(b"13 size=\xd9\xa3x\n"), "extended header"),
        (pax(b"11 size=-1\n"), "extended header"),
        (pax(b"26 size=99999999999999999\n"), "longer than the file"),
        (bytes(100), "cut off"),
    ],
)
def test_tar_headers_that_lie(content: bytes, expected: str) -> None:
    with pytest.raises(Damaged, match=expected):
        listed(content)


def test_members_that_are_not_read_take_little_memory(tmp_path: Path) -> None:
    path, members = tmp_path / "a.tar", 1000
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for number in range(members):
            archive.addfile(tarfile.TarInfo(f"m{number}"))
    tracemalloc.start()
    try:
        entries = containers._tar_entries(path)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(entries) == members
    # A header takes 512 bytes of the archive.
    assert taken < 900 * members


def test_tar_with_a_damaged_second_header(tmp_path: Path) -> None:
    content = bytearray(tar_of({"a": GLOVE, "b": b"1"}, tarfile.USTAR_FORMAT))
    content[content.rfind(b"ustar") - 200] ^= 0xFF
    assert "tar header at byte" in refused(written(tmp_path, bytes(content)))


def test_too_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_members, "_MOST_MEMBERS", 3)
    with pytest.raises(Damaged, match="implausibly many"):
        listed(tar_of({str(k): b"" for k in range(4)}))


# Standard input


def piped(monkeypatch: pytest.MonkeyPatch, content: bytes, terminal: bool = False) -> None:
    fake = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: terminal)
    monkeypatch.setattr("sys.stdin", fake)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda data: tar_of({"v": data})])
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


@pytest.mark.parametrize(
    ("content", "terminal", "expected"),
    [
        (b"", False, "stdin: the file is empty"),
        (b"just some prose\n", False, "stdin: is text without vectors"),
        (GLOVE, True, "stdin: is not a pipe"),
        (gzip.compress(GLOVE)[:-9], False, "stdin: its gzip data are damaged"),
    ],
)
def test_standard_input_that_is_refused(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, terminal: bool, expected: str
) -> None:
    piped(monkeypatch, content, terminal)
    assert refused("-").startswith(expected)
    assert list(scratch.iterdir()) == []


def test_endless_input_is_refused(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, bytes(3 * 2**20))
    monkeypatch.setattr("embgeo.io.opening.MAX_BYTES", 2**20)
    assert "gives more than" in refused("-")
    assert list(scratch.iterdir()) == []


def test_members_are_split_from_their_archive() -> None:
    assert containers.split_member("a.zip::b::c") == ("a.zip", "b::c")
    assert containers.split_member("::b") == ("::b", "")
    assert containers.split_member("a::") == ("a::", "")


@pytest.mark.parametrize("kind", list(ARCHIVERS))
def test_a_checkpoint_of_several_files_has_to_be_unpacked(tmp_path: Path, kind: str) -> None:
    index = json.dumps({"weight_map": {"w": "a.safetensors"}}).encode()
    path = written(tmp_path, ARCHIVERS[kind]({"m/model.safetensors.index.json": index}))
    said = refused(path)
    assert "the shard a.safetensors is missing; only one file of an archive is read" in said
    assert "unpack it" in said

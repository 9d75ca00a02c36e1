"""Broken and malicious HDF5 files."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embgeo.files.maps import TEXT
from embgeo.io.formats import hdf5 as hdf5_file
from tests.support.binary_files import check_refused, open_as
from tests.support.framework_files import hdf5, needs
from tests.support.sampling import each_value

W = np.arange(12, dtype="<f4").reshape(4, 3)


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_hdf5_reads_no_other_file(tmp_path: Path) -> None:
    h5py = needs("h5py")
    secret = tmp_path / "secret"
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["w"] = W
    secret.write_bytes(W.tobytes())

    def fill(file: Any) -> None:
        file["own"] = W
        file["external link"] = h5py.ExternalLink("secret.h5", "/w")
        file["soft link"] = h5py.SoftLink("/external link")
        file.create_dataset("external", (4, 3), "f4", external=[(str(secret), 0, 48)])
        layout = h5py.VirtualLayout((4, 3), "f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "secret.h5"), "w", (4, 3))
        file.create_virtual_dataset("virtual", layout)

    checkpoint = open_as(hdf5_file, hdf5(tmp_path, fill))
    unread = {found.name: found.problem for found in checkpoint.tensors if found.problem}
    assert [found.name for found in checkpoint.tensors if not found.problem] == ["own"]
    assert "link" in unread["external link"]
    assert "link" in unread["soft link"]
    assert "in another file" in unread["external"]
    assert "virtual" in unread["virtual"]


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_hdf5_names_that_are_paths(tmp_path: Path) -> None:
    """A link called ``a/b`` must not lead through the group ``a``; the library writes none."""
    h5py = needs("h5py")

    def fill(file: Any) -> None:
        file["own"] = W
        file["xxxyzzz"] = W

    path = hdf5(tmp_path, fill)
    content = path.read_bytes()
    assert content.count(b"xxxyzzz\0") == 1
    path.write_bytes(content.replace(b"xxxyzzz\0", b"own/zzz\0"))
    with h5py.File(path) as file:
        assert "own/zzz" in list(file)
    own, other = open_as(hdf5_file, path).tensors
    assert (own.name, own.problem) == ("own", "")
    assert "link" in other.problem


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_hdf5_groups_in_a_circle(tmp_path: Path) -> None:
    def fill(file: Any) -> None:
        file["a/b/w"] = W
        file["a/b/again"] = file["a"]
        file["a/root"] = file["/"]

    names = [t.name for t in open_as(hdf5_file, hdf5(tmp_path, fill)).tensors]
    assert names == ["a/b/w"]


def deep(file: Any) -> None:
    file["/".join("a" * 100)] = W


def huge(file: Any) -> None:
    file.create_dataset("w", (10**9, 10**6), "f4", chunks=(100, 100))


def bomb(file: Any) -> None:
    zeros = np.zeros((5000, 2000), "f4")
    file.create_dataset("w", data=zeros, compression="gzip", compression_opts=9)


@pytest.mark.parametrize(
    "fill",
    [
        lambda _: None,
        deep,
        huge,
        bomb,
    ],
)
@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_hdf5(tmp_path: Path, fill: Callable[[Any], None]) -> None:
    check_refused(hdf5_file, hdf5(tmp_path, fill))


@pytest.mark.usefixtures("workers_here")
@pytest.mark.parametrize(
    ("filters", "packed"),
    [
        ({}, bytes(44)),
        ({"compression": "gzip"}, zlib.compress(bytes(48))[:-6]),
    ],
)
def test_chunks_of_another_size(tmp_path: Path, filters: dict[str, Any], packed: bytes) -> None:
    """HDF5 would take what is missing from memory that nothing was written to."""
    needs("h5py")

    def fill(file: Any) -> None:
        dataset = file.create_dataset("w", (4, 3), "f4", chunks=(4, 3), **filters)
        dataset.id.write_direct_chunk((0, 0), packed)

    check_refused(hdf5_file, hdf5(tmp_path, fill))


@each_value
@pytest.mark.usefixtures("workers_here")
@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("more", [{}, {"shuffle": True}, {"shuffle": True, "fletcher32": True}])
def test_chunks(tmp_path: Path, compression: str | None, more: dict[str, bool]) -> None:
    needs("h5py")
    stored = np.arange(1200, dtype="f4").reshape(300, 4) // 3

    def fill(file: Any) -> None:
        kept = {"chunks": (7, 3), "compression": compression, **more}
        file.create_dataset("w", data=stored, **kept)
        file.create_dataset("empty", (300, 4), "f4", **kept)
        file.create_dataset("words", data=["a", "b"] * 50, dtype="S3", **kept | {"chunks": (7,)})

    checkpoint = open_as(hdf5_file, hdf5(tmp_path, fill))
    empty, w, words = checkpoint.tensors
    assert [tensor.name for tensor in (empty, w, words)] == ["empty", "w", "words"]
    assert (words.shape, words.dtype, words.problem) == ((100,), TEXT, "holds text")
    for tensor, expected in ((empty, np.zeros_like(stored)), (w, stored)):
        np.testing.assert_array_equal(tensor.open(), expected)


@pytest.mark.usefixtures("workers_here")
def test_filters_in_an_unusual_order(tmp_path: Path) -> None:
    h5py = needs("h5py")

    def fill(file: Any) -> None:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4, 3))
        properties.set_fletcher32()
        properties.set_deflate(6)
        space = h5py.h5s.create_simple((4, 3))
        made = h5py.h5d.create(file.id, b"w", h5py.h5t.IEEE_F32LE, space, properties)
        h5py.Dataset(made)[...] = W

    check_refused(hdf5_file, hdf5(tmp_path, fill))


@pytest.mark.usefixtures("workers_here")
def test_filters_that_read_beyond_damaged_data(tmp_path: Path) -> None:
    h5py = needs("h5py")
    filters: dict[str, Any] = {
        "szip": lambda own: own.set_szip(h5py.h5z.SZIP_NN_OPTION_MASK, 4),
        "nbit": lambda own: own.set_filter(h5py.h5z.FILTER_NBIT, 0, ()),
        "scale-offset": lambda own: own.set_scaleoffset(h5py.h5z.SO_INT, 0),
    }

    def fill(file: Any) -> None:
        file["sound"] = W
        file.create_dataset("lzf", data=W, compression="lzf")
        for name, add in filters.items():
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_chunk((4, 3))
            add(properties)
            space = h5py.h5s.create_simple((4, 3))
            made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_I32LE, space, properties)
            h5py.Dataset(made)[...] = np.arange(12).reshape(4, 3)

    checkpoint = open_as(hdf5_file, hdf5(tmp_path, fill))
    unread = {tensor.name: tensor.problem for tensor in checkpoint.tensors if tensor.problem}
    assert unread.keys() == {"lzf", *filters}
    assert set(unread.values()) == {"is compressed by a filter that is not read"}

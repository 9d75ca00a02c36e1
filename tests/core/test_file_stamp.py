"""A file that is written to while it is measured ends the run; one that is replaced does not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.core.file_stamp import FileStamp

W = np.random.default_rng(0).standard_normal((3000, 4)).astype("f4")


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\0\0\0\0")
    os.utime(path, ns=(1, 1))


def truncate(path: Path) -> None:
    os.truncate(path, 1000)


@pytest.mark.parametrize("change", [overwrite, truncate])
def test_a_file_that_is_written_to_is_noticed(tmp_path: Path, change: object) -> None:
    np.save(tmp_path / "a.npy", W)
    matrix = embgeo.load(tmp_path / "a.npy")
    blocks = matrix.blocks()
    next(blocks)
    change(tmp_path / "a.npy")  # type: ignore[operator]
    with pytest.raises(UnreadableFile, match=r"a\.npy: the file was changed while it was meas"):
        next(blocks)
    with pytest.raises(UnreadableFile, match="run again"):
        matrix.take(np.arange(3))


def test_a_file_that_is_replaced_or_removed_is_read_to_its_end(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", W)
    matrix = embgeo.load(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", 2 * W)
    os.replace(tmp_path / "b.npy", tmp_path / "a.npy")
    np.testing.assert_array_equal(matrix.take(np.arange(3000)), W)
    os.remove(tmp_path / "a.npy")
    np.testing.assert_array_equal(matrix.take(np.arange(3000)), W)


def test_a_file_that_changes_while_it_is_hashed_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "a.npy", W)
    of = FileStamp.of

    def then_overwrite(path: Path | str) -> FileStamp:
        stamp = of(path)
        overwrite(tmp_path / "a.npy")
        return stamp

    monkeypatch.setattr(FileStamp, "of", then_overwrite)
    with pytest.raises(UnreadableFile, match="changed while"):
        embgeo.load(tmp_path / "a.npy")

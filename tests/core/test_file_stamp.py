"""A file that is written to or replaced while it is measured ends the run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.comparison import compare
from embgeo.core.errors import UnreadableFile
from embgeo.core.matrix import FileStamp
from embgeo.measure.passes import Passes
from tests.support.refusals import refusal

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
    with refusal(UnreadableFile):
        next(blocks)
    with refusal(UnreadableFile):
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

    def then_overwrite(*file: Any) -> FileStamp:
        stamp = of(*file)
        if len(file) == 1:  # not when the file is opened
            overwrite(tmp_path / "a.npy")
        return stamp

    monkeypatch.setattr(FileStamp, "of", then_overwrite)
    with refusal(UnreadableFile):
        embgeo.load(tmp_path / "a.npy")


@pytest.mark.parametrize("command", ["analyze", "gate", "diff"])
def test_a_file_that_is_replaced_while_it_is_measured_is_noticed_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Else the new file would be taken for the one that was judged."""
    for name in ("a", "b", "c"):
        np.save(tmp_path / f"{name}.npy", W)
    once = Passes.second_pass

    def then_replace(passes: Passes, *more: Any) -> None:
        once(passes, *more)
        if (tmp_path / "b.npy").exists():
            os.replace(tmp_path / "b.npy", tmp_path / "a.npy")

    monkeypatch.setattr(Passes, "second_pass", then_replace)
    path = tmp_path / "a.npy"
    calls = {
        "analyze": lambda: embgeo.analyze(path, sections="cosine"),
        "gate": lambda: embgeo.gate(path, rules="cosine.mean <= 1"),
        "diff": lambda: embgeo.diff(path, tmp_path / "c.npy", sections="cosine"),
    }
    with refusal(UnreadableFile):
        calls[command]()


def test_a_file_that_is_replaced_while_it_is_compared_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        np.save(tmp_path / f"{name}.npy", W)
    compare_pair = compare.compare_pair

    def then_replace(*arguments: Any) -> Any:
        os.replace(tmp_path / "b.npy", tmp_path / "a.npy")
        return compare_pair(*arguments)

    monkeypatch.setattr(compare, "compare_pair", then_replace)
    with refusal(UnreadableFile):
        embgeo.diff(tmp_path / "a.npy", tmp_path / "c.npy", sections="cosine", queries=0)

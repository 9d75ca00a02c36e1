"""Folders of results: what cannot be written to is refused before anything is computed."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import BadOption
from embgeo.files import records
from embgeo.files.records import ARRAYS_NAME
from embgeo.files.saved import write_file
from embgeo.measure import analyze as measuring
from embgeo.result.saved import JSON_NAME
from embgeo.workflows import folders
from embgeo.workflows.cluster import find_files
from embgeo.workflows.folders import (
    ANALYSIS_FILES,
    OUTPUT_FOLDER,
    refuse_other,
    write_set,
    write_whole,
)
from tests.support.command import call
from tests.support.moments import drop_temporary, moments
from tests.support.refusals import refusal
from tests.support.sampling import each_value


@pytest.mark.parametrize("command", ["analyze", "diff"])
@pytest.mark.parametrize("existing", [False, True])
def test_nothing_is_measured_for_a_folder_that_cannot_be_written(
    command: str, existing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    if existing:
        out.mkdir()

    def refuse(*_: Any, **__: Any) -> str:
        raise OSError(30, "Read-only file system")

    def measure(*_: Any, **__: Any) -> None:
        raise AssertionError("it was measured")

    monkeypatch.setattr(folders, "temporary_folder", refuse)
    monkeypatch.setattr(measuring, "open_rows", measure)
    files = ["fixtures/baseline.pt", "fixtures/cosreg.safetensors"][: 1 + (command == "diff")]
    result = call(command, *files, "-o", str(out))
    assert result.exit_code == 2
    assert "cannot be written: Read-only file system; choose another folder" in result.output
    assert out.exists() is existing


@each_value
@pytest.mark.parametrize("json_", [False, True])
@pytest.mark.parametrize("command", ["analyze", "diff"])
@pytest.mark.slow
def test_a_full_disk_loses_no_numbers(
    command: str, json_: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records, "write_file", refuse)
    files = ["fixtures/baseline.pt", "fixtures/cosreg.safetensors"][: 1 + (command == "diff")]
    options = [*(["--sections", "cosine"] * (command == "analyze")), *(["--json"] * json_)]
    options += ["-o", str(tmp_path / "out")]
    result = call(command, *files, *options)
    assert result.exit_code == 2
    assert "No space left on device; choose another folder" in result.stderr
    assert ('"cosine.mean"' if json_ else "mean cosine") in result.stdout.lower()
    assert list(tmp_path.iterdir()) == []


def save_result(folder: Path, number: int) -> None:
    """What runs with different results write."""
    write_whole(folder, partial(fill, number=number), ANALYSIS_FILES)


def fill(fresh: Path, number: int) -> None:
    for name in (JSON_NAME, ARRAYS_NAME, *([f"{OUTPUT_FOLDER}/{JSON_NAME}"] * (number % 2))):
        (fresh / name).parent.mkdir(exist_ok=True)
        (fresh / name).write_text(str(number))


def read_result(folder: Path) -> tuple[set[str], set[str]]:
    """Names and distinct contents of the files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(p.relative_to(folder)) for p in files}, {path.read_text() for path in files}


def test_an_interrupted_rename_leaves_the_earlier_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, rename = tmp_path / "out", Path.rename

    def interrupt(path: Path, target: Path) -> Path:
        if target == out and not out.exists() and (path / JSON_NAME).read_text() == "0":
            raise KeyboardInterrupt
        return rename(path, target)

    save_result(out, 1)
    before = read_result(out)
    monkeypatch.setattr(Path, "rename", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_result(out, 0)
    assert read_result(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(os.name != "posix", reason="a folder replaces no other one")
def test_an_empty_folder_is_filled_at_once(tmp_path: Path) -> None:
    (out := tmp_path / "out").mkdir(mode=0o750)
    files = {f"{k}.txt": b"content" for k in range(3)}
    with moments(tmp_path) as states:
        write_set(out, files)
    seen = [
        sum(name.startswith("out/") and content is not None for name, content in left.items())
        for left in map(drop_temporary, states)
    ]
    assert set(seen) == {0, 3}
    assert out.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@each_value
@pytest.mark.skipif(os.name != "posix", reason="a folder replaces no other one")
@pytest.mark.parametrize("kind", ["mount", "working directory", "link", "parent"])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_folder_that_cannot_be_replaced_is_filled(
    kind: str, earlier: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (out := tmp_path / "out").mkdir()
    if earlier:
        save_result(out, 1)
    before, rename, access = out.stat().st_ino, Path.rename, os.access

    def refuse(path: Path, target: Path) -> Path:
        if out in (path, target):
            raise OSError(errno.EBUSY, "Device or resource busy")
        return rename(path, target)

    if kind == "mount":
        monkeypatch.setattr(Path, "rename", refuse)
    elif kind == "working directory":
        monkeypatch.chdir(out)
    elif kind == "link":
        (tmp_path / "link").symlink_to(out)
    else:
        monkeypatch.setattr(
            os, "access", lambda path, mode: path != tmp_path and access(path, mode)
        )
    save_result(tmp_path / "link" if kind == "link" else out, 2)
    assert read_result(out) == ({JSON_NAME, ARRAYS_NAME}, {"2"})
    assert (out.stat().st_ino == before) is (kind != "link")
    assert sorted(path.name for path in tmp_path.iterdir()) in (["out"], ["link", "out"])


def test_a_file_that_cannot_be_replaced_leaves_nothing_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    with pytest.raises((IsADirectoryError, PermissionError)):
        write_file(tmp_path / "folder", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_files_of_one_matrix_replace_their_own_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("rows0.npy", "rows1.npy", "other.npy"):
        Path(name).touch()
    parts = [{"file": name} for name in ("rows0.npy", "rows1.npy")]
    found = embgeo.analyze(np.eye(4), sections=["spectrum"], reference=False)
    provenance = {**found.provenance, "file": "rows0.npy and 1 more", "parts": parts}
    replace(found, provenance=provenance).save("out")
    for name in ("rows*.npy", str(tmp_path / "rows[01].npy"), "rows1.npy"):
        refuse_other(Path("out"), name)
    for name in ("other*.npy", "other.npy", "hf://org/rows0.npy"):
        with refusal(BadOption):
            refuse_other(Path("out"), name)


def test_the_name_of_a_file_is_no_pattern(tmp_path: Path) -> None:
    for name in ("a[1].npy", "a1.npy"):
        (tmp_path / name).touch()
    for name, found in (("a[1].npy", 1), ("a*.npy", 2), ("none.npy", 1)):
        assert len(find_files(tmp_path / name)) == found

"""Folders of results: what cannot be written to is refused before anything is computed."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embgeo
from embgeo.cli.app import app
from embgeo.core.errors import BadOption
from embgeo.io.bounded import records
from embgeo.io.bounded.saved import GRACE, AtomicFile, locked, remove_leftovers, write_text
from embgeo.measure import analyze as measuring
from embgeo.workflows.folders import fresh_folder, refuse_other, write_set
from tests.support.moments import drop_temporary, moments


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

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    monkeypatch.setattr(measuring, "open_rows", measure)
    files = ["fixtures/baseline.pt", "fixtures/cosreg.safetensors"][: 1 + (command == "diff")]
    result = CliRunner().invoke(app, [command, *files, "-o", str(out)])
    assert result.exit_code == 2
    assert "cannot be written: Read-only file system; choose another folder" in result.output
    assert out.exists() is existing


@pytest.mark.parametrize("json_", [False, True])
@pytest.mark.parametrize("command", ["analyze", "diff"])
def test_a_full_disk_loses_no_numbers(
    command: str, json_: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records, "write_text", refuse)
    files = ["fixtures/baseline.pt", "fixtures/cosreg.safetensors"][: 1 + (command == "diff")]
    options = ["--sections", "cosine", "-o", str(tmp_path / "out"), *(["--json"] * json_)]
    result = CliRunner().invoke(app, [command, *files, *options])
    assert result.exit_code == 2
    assert "No space left on device; choose another folder" in result.stderr
    assert ('"cosine.mean"' if json_ else "mean cosine") in result.stdout.lower()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
@pytest.mark.parametrize("age", [0.0, 2 * GRACE])
@pytest.mark.parametrize("held", [False, True])
def test_leftovers_of_a_killed_run_are_removed(age: float, held: bool, tmp_path: Path) -> None:
    file, folder = tmp_path / ".embgeo.abc", tmp_path / ".embgeo.xyz"
    file.write_text("half")
    folder.mkdir()
    (folder / "arrays.npz").write_text("half")
    other = tmp_path / "not-ours"
    other.write_text("whole")
    for path in (file, folder, other):
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
    with ExitStack() as locks:
        if held:
            for path in (file, folder):
                assert locks.enter_context(locked(path))
        write_text(tmp_path / "result", "new")
    stays = [] if age and not held else [file, folder]
    assert sorted(tmp_path.iterdir()) == sorted([*stays, other, tmp_path / "result"])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_a_run_keeps_what_another_is_writing(tmp_path: Path) -> None:
    with fresh_folder(tmp_path, tmp_path) as fresh, AtomicFile(tmp_path / "x") as file:
        for path in (fresh, file):
            os.utime(path, (0, 0))
        remove_leftovers(tmp_path)
        assert fresh.is_dir()
        assert file.is_file()


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


@pytest.mark.skipif(os.name != "posix", reason="a folder replaces no other one")
@pytest.mark.parametrize("kind", ["mount", "unseen mount", "working directory", "link", "parent"])
def test_an_empty_folder_that_cannot_be_replaced_is_filled(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (out := tmp_path / "out").mkdir()
    before, rename, access = out.stat().st_ino, Path.replace, os.access

    def refuse(path: Path, target: Path) -> Path:
        if target == out:
            raise OSError(errno.EBUSY, "Device or resource busy")
        return rename(path, target)

    if kind == "mount":
        monkeypatch.setattr(os.path, "ismount", lambda path: path == out)
    elif kind == "unseen mount":
        monkeypatch.setattr(Path, "replace", refuse)
    elif kind == "working directory":
        monkeypatch.chdir(out)
    elif kind == "link":
        (tmp_path / "link").symlink_to(out)
    else:
        monkeypatch.setattr(
            os, "access", lambda path, mode: path != tmp_path and access(path, mode)
        )
    write_set(tmp_path / "link" if kind == "link" else out, {"a": b"a", "b": b"b"})
    assert sorted(path.name for path in out.iterdir()) == ["a", "b"]
    assert out.stat().st_ino == before
    assert sorted(path.name for path in tmp_path.iterdir()) in (["out"], ["link", "out"])


def test_a_file_that_cannot_be_replaced_leaves_nothing_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    with pytest.raises((IsADirectoryError, PermissionError)):
        write_text(tmp_path / "folder", "new")
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
        with pytest.raises(BadOption, match=r"holds the analysis of rows0\.npy and 1 more"):
            refuse_other(Path("out"), name)

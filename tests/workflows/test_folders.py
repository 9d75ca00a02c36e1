"""Folders of results: what cannot be written to is refused before anything is computed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from embgeo.cli.app import app
from embgeo.measure import analyze as measuring


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

"""Formats of other packages: a distribution on the search path that names one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.io.formats import FORMATS
from embgeo.io.formats.format import Format
from embgeo.io.load import open_checkpoint
from tests.support.refusals import refusal

MODULE = """
import numpy as np
from embgeo.io.model.checkpoint import Checkpoint, Tensor

NAME = "toy"
RECOGNIZED = "begins with TOY!"
READ = "the numbers"
EXTRA = ""

def sniff(head):
    return {sniff}

def open_checkpoint(data, beside):
    numbers = np.frombuffer(data[8:].data, dtype="<f4").reshape(-1, 4)
    tensor = Tensor("vectors", numbers.shape, "float32", lambda: numbers)
    return Checkpoint(NAME, (tensor,))
"""
TOY = MODULE.format(sniff='head.startswith(b"TOY!")')
NUMBERS = np.arange(24, dtype="<f4").reshape(6, 4)

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    def distribution(source: str, name: str) -> None:
        """A distribution ``embgeo-NAME`` whose module is the format."""
        folder = tmp_path / "site" / f"embgeo_{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: embgeo-{name}\n")
        (folder / "entry_points.txt").write_text(f"[embgeo.formats]\n{name} = embgeo_{name}\n")
        (tmp_path / "site" / f"embgeo_{name}.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path / "site")
        monkeypatch.delitem(sys.modules, f"embgeo_{name}", raising=False)

    return distribution


def toy_file(tmp_path: Path) -> Path:
    path = tmp_path / "model.toy"
    path.write_bytes(b"TOY!\0\0\0\0" + NUMBERS.tobytes())
    return path


def test_a_plugin_reads_its_files(tmp_path: Path, install: Install) -> None:
    path = toy_file(tmp_path)
    with refusal():
        open_checkpoint(path)
    install(TOY, "toy")
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, NUMBERS)
    assert matrix.origin.format == "toy"
    # In a folder and in an archive too.
    folder = tmp_path / "folder"
    folder.mkdir()
    path.rename(folder / "model.toy")
    assert embgeo.load(folder).n == 6


@pytest.mark.parametrize(
    "source",
    [
        TOY.replace("def sniff", "def sniffs"),
        TOY.replace("reshape(-1, 4)", "reshape(-1, 5)"),
    ],
)
def test_a_broken_plugin_is_named_in_one_line(
    tmp_path: Path, install: Install, source: str
) -> None:
    install(source, "broken")
    with refusal():
        open_checkpoint(toy_file(tmp_path))


def test_a_plugin_takes_no_file_from_a_format_of_embgeo(tmp_path: Path, install: Install) -> None:
    install(MODULE.format(sniff="1 / 0"), "greedy")
    np.save(tmp_path / "a.npy", NUMBERS)
    assert open_checkpoint(tmp_path / "a.npy").format == "npy"


def test_every_format_fits_the_protocol() -> None:
    for known in FORMATS:
        assert isinstance(known, Format)
        assert known.sniff(b"") is False
    assert len({known.NAME for known in FORMATS}) == len(FORMATS)


@pytest.mark.slow
def test_importing_a_part_of_io_imports_no_format() -> None:
    program = (
        "import sys, embgeo.files.guard, embgeo.io.model.checkpoint\n"
        "print(*(name for name in sys.modules if name.startswith('embgeo.io.formats')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr

"""The pictures of the documentation show what embgeo shows now."""

from __future__ import annotations

import importlib.util
import json
import sys
from types import ModuleType

import pytest

from tests.support.documents import BLOCK, ROOT, commands

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pictures", DOCS / "make_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_picture_is_made_by_the_script(pictures: ModuleType) -> None:
    made = {picture.name for picture in pictures.PICTURES}
    files = [path for form in ("png", "gif") for path in DOCS.rglob(f"*.{form}")]
    kept = {path.relative_to(DOCS).as_posix() for path in files}
    assert {name for name in kept if not name.startswith("_build/")} == made | set(
        pictures.OF_CAMPAIGNS
    )
    assert set(json.loads(pictures.RECORD.read_text("utf-8"))["shown"]) == made


def test_pages_look_as_in_the_pictures(pictures: ModuleType) -> None:
    record = json.loads(pictures.RECORD.read_text("utf-8"))
    assert record["look"] == pictures.hash_look(), "run python docs/make_pictures.py"


@pytest.mark.parametrize("name", ["report.png", "diff.png"])
def test_numbers_are_those_of_the_readme(name: str, pictures: ModuleType) -> None:
    """What README prints is run by another test; the pictures show the same run."""
    shown = json.loads(pictures.RECORD.read_text("utf-8"))["shown"][name]
    made = next(picture for picture in pictures.PICTURES if picture.name == name).commands
    told = next(command for command in made if " -q " not in command)
    command = told.split(" -o ")[0].replace("OUT/", "")
    blocks = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    examples = [one for kind, block in blocks if kind == "console" for one in commands(block)]
    printed = next(one.output for one in examples if one.line == f"embgeo {command}")
    lines = [line for line in printed.splitlines() if line != "…" and "report: " not in line]
    assert len(lines) > 3
    assert [line for line in lines if line not in shown] == []

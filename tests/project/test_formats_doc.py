"""``docs/formats.md`` says what the code says."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from typing import Any

import pytest

from embgeo.io.bounded.compressed import CODECS
from embgeo.io.formats import FORMATS
from embgeo.io.model import folder as model_folder

ROOT = Path(__file__).parents[2]


def make_formats() -> Any:
    spec = importlib.util.spec_from_file_location("make_formats", ROOT / "docs/make_formats.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date() -> None:
    maker = make_formats()
    assert maker.TARGET.read_text("utf-8") == maker.document(), "run: python docs/make_formats.py"


def test_every_format_has_one_row() -> None:
    page = (ROOT / "docs/formats.md").read_text("utf-8")
    for known in (*FORMATS, model_folder):
        assert page.count(f"\n| {known.NAME} | ") == 1, known.NAME
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert {line.count("|") - line.count("\\|") for line in rows} == {5}


@pytest.mark.parametrize("known", [*FORMATS, model_folder], ids=lambda m: m.NAME)
def test_every_format_describes_itself(known: Any) -> None:
    for text in (known.RECOGNIZED, known.READ):
        assert 0 < len(text) < 250
        assert text[-1] not in ".;,"
        assert text.isprintable()


def test_every_extra_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {known.EXTRA for known in FORMATS} | {codec.extra for codec in CODECS}
    assert extras - {""} <= set(project["optional-dependencies"])
    assert {"gguf", "hdf5", "zstd"} <= extras

"""docs/python.md runs: its code prints what its comments say, its tables name what exists."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import shutil
from pathlib import Path

import pytest

import embgeo
from embgeo.callbacks import Monitor
from embgeo.callbacks.monitor import SCALARS
from tests.support.documents import ROOT, agrees, blocks

PAGE = ROOT / "docs" / "python.md"
TEXT = PAGE.read_text("utf-8")
PROGRAMS = blocks(PAGE, "python")
#: Those that begin with a comment need what is not always there, see
#: tests/callbacks/test_integrations.py.
ALONE = [program for program in PROGRAMS if not program.startswith("# with")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("python")
    shutil.copytree(ROOT / "fixtures", made / "fixtures")
    return made


@pytest.mark.parametrize("number", range(len(ALONE)))
@pytest.mark.slow
def test_code_prints_what_its_comments_say(folder: Path, number: int) -> None:
    program = ALONE[number]
    for package in ("torch", "gensim"):
        if f"import {package}" in program or f"from {package}" in program:
            pytest.importorskip(package)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, str(PAGE), "exec"), {})
    shown = re.findall(r"^print\(.*\)  # (.*)$", program, re.MULTILINE)
    assert len(shown) == len(re.findall(r"^print", program, re.MULTILINE)) > 0
    assert agrees("\n".join(shown), printed.getvalue()), printed.getvalue()


def test_arguments_of_the_gauge() -> None:
    start = TEXT.index("| argument of `Monitor` |")
    rows = TEXT[start : TEXT.index("\n\n", start)].splitlines()[2:]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == set(inspect.signature(Monitor).parameters)
    assert all(f"`{name}`" in TEXT for name in SCALARS)


def test_fields_of_the_options() -> None:
    names = re.search(r"embgeo\.Options\(([^)]*)\)", TEXT)
    assert names is not None
    for name in re.findall(r"(\w+)=", names[1]):
        assert name in embgeo.Options.__dataclass_fields__


def test_the_functions_are_those_that_are_exported() -> None:
    named = set(re.findall(r"`embgeo\.(\w+)`", TEXT[: TEXT.index("## From a file")]))
    functions = {name for name in embgeo.__all__ if inspect.isroutine(getattr(embgeo, name))}
    assert named == functions | {"train"}

"""docs/repair.md runs, and names every field of the record and every method."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from embgeo.cli.app import app
from embgeo.row_repair.methods import METHODS
from embgeo.row_repair.record import RepairRecord
from tests.support.chat_model import write_chat_model
from tests.support.documents import ROOT, agrees, blocks, commands

PAGE = ROOT / "docs" / "repair.md"
TEXT = PAGE.read_text("utf-8")


@pytest.mark.slow
def test_the_page_runs(tmp_path: Path) -> None:
    write_chat_model(tmp_path / "model")
    with contextlib.chdir(tmp_path):
        for block in blocks(PAGE, "console"):
            for command in commands(block):
                program, *arguments = shlex.split(command.line)
                assert program == "embgeo"
                seen = CliRunner().invoke(app, arguments).output
                assert agrees(command.output, seen), f"{command.line}\n{seen}"
        for program in blocks(PAGE, "python"):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(program, str(PAGE), "exec"), {})
            shown = re.findall(r"^print\(.*\)  # (.*)$", program, re.MULTILINE)
            assert printed.getvalue().splitlines() == shown


def test_every_field_of_the_record_is_named() -> None:
    said = TEXT[TEXT.index("`embgeo-repair.json` in the copy records") :].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", said))
    assert named == {"format", "format_version", *(one.name for one in fields(RepairRecord))}


def test_every_method_is_named() -> None:
    table = TEXT[TEXT.index("| `--method` |") : TEXT.index("Every new row has")]
    assert re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)[1:] == list(METHODS)

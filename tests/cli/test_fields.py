"""Options of commands come from the fields of `Source` and `Options`: one line an option."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from embgeo.cli.app import app
from embgeo.cli.fields import EachField, Given, expand
from embgeo.core.errors import BadOption, option_of
from embgeo.core.fields import option_fields, read_table
from embgeo.core.options import Options
from embgeo.core.source import Source


@dataclass(frozen=True)
class Sample:
    """Every kind of field."""

    path: Path = Path()
    name: str | None = field(default=None, metadata={"help": "A name."})
    flag: bool = field(default=False, metadata={"help": "A flag."})
    switch: bool | None = field(default=None, metadata={"help": "A switch."})
    number: int = field(default=3, metadata={"help": "A number.", "least": 1})
    share: float | None = field(default=None, metadata={"help": "A share."})
    file: Path | None = field(default=None, metadata={"help": "A file."})
    kind: Literal["a", "b"] = field(
        default="a", metadata={"help": "A kind.", "choices": ("a", "b")}
    )
    rows: str | tuple[int, int] | None = field(
        default=None, metadata={"help": "Rows.", "metavar": "A:B"}
    )
    many: tuple[str, ...] = field(default=(), metadata={"help": "Several."})
    hash_file: bool = field(default=True, metadata={"help": "Whether.", "in_python_only": True})
    silent: int = 7


def command(seen: list[Any]) -> typer.Typer:
    def run(*, given: Annotated[Given, EachField(Sample)], quiet: bool = False) -> None:
        seen.append((given, quiet))

    made = typer.Typer(add_completion=False)
    made.command()(expand(run))
    return made


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ([], {}),
        (["--name", "x", "--flag", "--no-switch"], {"name": "x", "flag": True, "switch": False}),
        (["--number", "3"], {"number": 3}),  # typed, although it is the default
        (["--share", "0.5", "--file", "f"], {"share": 0.5, "file": Path("f")}),
        (["--kind", "b", "--rows", "1:2"], {"kind": "b", "rows": "1:2"}),
        (["--many", "a", "--many", "b"], {"many": ["a", "b"]}),
    ],
)
def test_a_command_gets_what_was_typed(arguments: list[str], given: dict[str, Any]) -> None:
    seen: list[Any] = []
    result = CliRunner().invoke(command(seen), arguments)
    assert result.exit_code == 0, result.output
    assert seen == [(given, False)]


@pytest.mark.parametrize("arguments", [["--number", "0"], ["--kind", "c"], ["--silent", "1"]])
def test_values_that_are_not_allowed_are_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(command([]), arguments).exit_code == 2


def test_a_field_is_enough_for_an_option() -> None:
    """Every field of loading and measuring is an option of analyze and of gate."""
    runner = CliRunner()
    for name, without in (("analyze", set()), ("gate", {"asked"})):
        shown = runner.invoke(app, [name, "--help"]).output
        known = {*option_fields(Source), *option_fields(Options)} - without
        assert len(known) > 15
        assert not [field for field in known if option_of(field) not in shown]


def test_a_table_of_settings_is_read_by_the_same_fields() -> None:
    table = {"number": 5, "file": "f", "rows": 500, "share": 1, "switch": False, "many": ["a"]}
    assert read_table(table, option_fields(Sample), Path("here/embgeo.toml")) == {
        "number": 5,
        "file": Path("here/f"),
        "rows": "500",
        "share": 1,
        "switch": False,
        "many": ["a"],
    }


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"nmae": "x"}, "analyze has no setting 'nmae'; it has name, flag"),
        ({"number": "x"}, "number of analyze is 'x', which does not fit"),
        ({"number": True}, "number of analyze is True"),
        ({"flag": 1}, "flag of analyze is 1"),
        ({"name": 1}, "name of analyze is 1"),
        ({"many": "a"}, "many of analyze is 'a'"),
        ({"hash_file": True}, "no setting 'hash_file'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(table: dict[str, Any], error: str) -> None:
    with pytest.raises(BadOption, match=error):
        read_table(table, option_fields(Sample), Path("embgeo.toml"))

"""Every help is one screen without words of Python, and every option is listed somewhere."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from embgeo.cli.app import COMMANDS, app, load_command
from embgeo.cli.help import GROUPS, RARE
from embgeo.core.errors import option_of
from embgeo.core.options import LOADING, MEASURING, OF_ANALYZE

#: A screen; a wider terminal has no longer lines.
ROWS, COLUMNS = 50, 80
#: A type of Python or of typer in place of the name of a value.
RAW_TYPE = re.compile(r"<\w|list\[|\bPath\b|\bstr\b|\bint\b|\bfloat\b|range\b.*>|[{}]")


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    return result.output


def listed(text: str) -> set[str]:
    """The options that a help lists."""
    heads = (line for line in text.splitlines() if line.startswith("  -"))
    return {word for head in heads for word in re.findall(r"--?[a-z][\w-]*", head.split("  ")[1])}


def test_a_help_is_one_screen() -> None:
    for command in ("", *COMMANDS):
        lines = shown(*command.split(), "--help").splitlines()
        assert len(lines) <= ROWS
        assert max(map(len, lines)) <= COLUMNS
        assert not [line for line in lines if line.endswith("-")], "an option is broken"


def test_help_has_colors_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = CliRunner().invoke(app, ["gate", "--help"], color=True).output
    monkeypatch.setattr("embgeo.cli.help.is_colorful", lambda _stream: True)
    colored = CliRunner().invoke(app, ["gate", "--help"], color=True).output
    assert "\x1b[36m--rule\x1b[0m" in colored
    assert re.sub(r"\x1b\[\d+m", "", colored) == plain


def test_a_help_names_values_in_words() -> None:
    for command in COMMANDS:
        text = shown(command, "--help")
        places = [line for line in text.splitlines() if line.startswith(("Usage", "  -"))]
        named = (line[2:].split("  ")[0] if line.startswith("  -") else line for line in places)
        assert not [line for line in named if RAW_TYPE.search(line)]


def test_every_option_has_a_place() -> None:
    for command in COMMANDS:
        params = [p for p in load_command(command).params if p.param_type_name == "option"]
        rare = RARE.get(command, set())
        first = listed(shown(command, "--help"))
        for param in params:
            assert param.name not in rare or not {*param.opts} & first
            assert param.name in rare or {*param.opts} <= first
        if command in RARE:
            everything = listed(shown(command, "--help-all"))
            assert {opt for param in params for opt in param.opts} <= everything
            assert "--help-all" in first


def test_analyze_takes_every_option_of_loading_and_measuring() -> None:
    known = {param.name for param in load_command("analyze").params}
    assert {*LOADING, *MEASURING, *OF_ANALYZE} <= known
    everything = listed(shown("analyze", "--help-all"))
    assert {option_of(name) for name in (*LOADING, *MEASURING, *OF_ANALYZE)} <= everything
    assert not {"--engine", "--scheduler"} & listed(shown("analyze", "--help"))


@pytest.mark.parametrize("command", ["diff", "gate"])
def test_how_to_measure_is_said_to_analyze_alone(command: str) -> None:
    names = {param.name for param in load_command(command).params}
    assert not names & {*LOADING, *MEASURING, *OF_ANALYZE}
    assert len(names) <= 20


def test_groups_name_options_that_exist() -> None:
    known = {param.name for command in COMMANDS for param in load_command(command).params}
    assert {name for names in GROUPS.values() for name in names} <= {*known, "help"}

"""docs/gate.md runs: its transcript of a CI log, its settings, its table of fields."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from embgeo.cli.app import app
from embgeo.rules.check import Outcome
from embgeo.rules.decide import STATES
from embgeo.rules.rule import Rule
from tests.support.documents import BLOCK, FIRST_CELL, ROOT, agrees, blocks, commands, list_fields

PAGE = ROOT / "docs" / "gate.md"
TEXT = PAGE.read_text("utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("gate")
    shutil.copytree(ROOT / "fixtures", made / "fixtures")
    return made


@pytest.mark.slow
def test_the_page_from_top_to_bottom(folder: Path) -> None:
    """Settings are put where the page puts them, commands print what it shows."""
    code, seen = 0, []
    with contextlib.chdir(folder):
        for language, body in BLOCK.findall(TEXT):
            if language == "toml":
                name = body.splitlines()[0].removeprefix("# ")
                Path(name).write_text(body, encoding="utf-8")
            for command in commands(body) if language == "console" else ():
                if command.line == "echo $?":
                    assert command.output.strip() == str(code)
                    continue
                program, *arguments = shlex.split(command.line)
                assert program == "embgeo"
                result = CliRunner().invoke(app, arguments)
                code = result.exit_code
                seen.append(code)
                assert agrees(command.output, result.output), result.output
    assert set(seen) == {0, 1, 2}


def rules_of_the_table() -> list[str]:
    table = TEXT[TEXT.index("| rule | holds if |") :]
    return FIRST_CELL.findall(table[: table.index("\n\n")])


def test_rules_of_the_table_are_rules() -> None:
    rules = [Rule.parse(text) for text in rules_of_the_table()]
    assert {rule.sense for rule in rules} == {"value", "drop", "rise", "change"}
    assert any(rule.warn for rule in rules)
    assert any(rule.allow_undefined for rule in rules)
    assert any(rule.tensor for rule in rules)


def test_every_option_of_the_gate_is_told_about() -> None:
    shown = CliRunner().invoke(app, ["gate", "--help"]).output
    options = {option.removeprefix("--") for option in re.findall(r"--[a-z][a-z-]+", shown)}
    for name in options - {"help", "debug"}:
        assert f"--{name}" in TEXT or f"`{name.removeprefix('no-')}`" in TEXT, name


def fields(value: Any, path: str = "") -> Iterator[str]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            name = "*" if path == "counts" else key
            yield from fields(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            for key, inner in item.items():
                yield from fields(inner, f"{path}[].{key}")


@pytest.mark.slow
def test_every_field_of_the_json_is_documented(folder: Path) -> None:
    arguments = ["gate", "fixtures/baseline.pt", "--json", "--no-config"]
    arguments += ["-b", "fixtures/cosreg.safetensors", "-r", "cosine.mean change <= 5%"]
    with contextlib.chdir(folder):
        found = json.loads(CliRunner().invoke(app, arguments).stdout)
    documented = list_fields(TEXT[TEXT.index("## The JSON document") :])
    written = {f for f in fields(found) if not f.startswith("checks[].baseline.")}
    assert sorted(documented) == sorted(written)
    assert set(found["checks"][0]["baseline"]) == set(found["checks"][0]["measured"])
    assert list(found["counts"]) == list(STATES)


def test_snippets_for_other_programs_are_yaml_and_name_what_exists() -> None:
    found = {
        body.splitlines()[0].removeprefix("# "): yaml.safe_load(body)
        for body in blocks(PAGE, "yaml")
    }
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    step = found[".github/workflows/embeddings.yml"]["jobs"]["gate"]["steps"][-1]
    assert set(step["with"]) <= set(action["inputs"])
    for rule in step["with"]["rules"].splitlines():
        Rule.parse(rule)
    (repository,) = found[".pre-commit-config.yaml"]["repos"]
    assert [hook["id"] for hook in repository["hooks"]] == [hook["id"] for hook in hooks]
    report = found[".gitlab-ci.yml"]["gate"]["artifacts"]["reports"]
    (script,) = found[".gitlab-ci.yml"]["gate"]["script"]
    assert report["junit"] in script
    shown = CliRunner().invoke(app, ["gate", "--help"]).output
    assert all(option in shown for option in re.findall(r"--[a-z-]+", script))


def test_states_are_those_that_the_page_names() -> None:
    assert Outcome.__doc__
    assert all(f"`{state}`" in TEXT for state in STATES)

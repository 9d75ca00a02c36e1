"""What a terminal shows: colors, links, stages, groups of options, completion."""

from __future__ import annotations

import io
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from typer.testing import CliRunner

import embgeo
from embgeo.cli import shared
from embgeo.cli.app import COMMANDS, app, run
from embgeo.cli.help import GROUPS
from embgeo.cli.shared import print_lines, print_report
from embgeo.core.progress import Progress
from embgeo.core.text import ColoredLine, Tone
from embgeo.report.text import markdown
from tests.support.command import call

Screen: TypeAlias = Callable[[], str]
W = np.random.default_rng(0).standard_normal((60, 8))


class Stream(io.StringIO):
    """A stream whose methods can be replaced."""


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Screen:
    """What was printed since the last call, to a terminal with colors."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr(shared, "is_colorful", lambda _stream: True)
    return lambda: capsys.readouterr().out


@pytest.mark.parametrize(
    ("tone", "code"), [("good", "\x1b[32m"), ("warning", "\x1b[33m"), ("bad", "\x1b[31m")]
)
def test_colors(screen: Screen, tone: Tone, code: str) -> None:
    print_lines(ColoredLine.of("verdict\x1b[0m", tone), "number")
    assert screen() == f"{code}verdict\\x1b[0m\x1b[0m\nnumber\n"


def test_an_error_begins_in_red(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for colorful, begin in ((True, "\x1b[31m\x1b[1membgeo:\x1b[0m"), (False, "embgeo:")):
        monkeypatch.setattr(shared, "is_colorful", lambda _stream, is_it=colorful: is_it)
        shared.print_error("x.pt: is damaged")
        assert capsys.readouterr().err == f"{begin} x.pt: is damaged\n"


@pytest.mark.parametrize(
    ("settings", "terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_where_colors_are_shown(
    settings: dict[str, str], terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    stream = Stream()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    assert shared.is_colorful(stream) is expected


def test_a_file_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(ColoredLine.of("verdict", "bad"))
    print_report(Path("x.html"), quiet=False, opens=False)
    assert capsys.readouterr().out == "verdict\nreport: x.html\n"
    with pytest.raises(ValueError, match="JSON"):
        shared.print_json(np.nan)


def test_the_verdict_and_a_gate_have_colors(screen: Screen, tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", W)
    path = str(tmp_path / "w.npy")
    assert run(["gate", path, "-r", "cosine.mean >= 0.9", "--no-config"]) == 1
    shown = screen()
    assert "\x1b[31m  FAILED" in shown
    assert "\x1b[31mgate failed" in shown
    assert run(["gate", path, "-r", "cosine.mean <= 0.9", "--no-config"]) == 0
    assert "\x1b[32mgate passed" in screen()
    np.save(tmp_path / "w.npy", np.abs(W) + 3)
    assert run(["analyze", path, "--sections", "cosine", "-o", str(tmp_path / "out")]) == 0
    shown = screen()
    assert "\x1b[31m" in shown
    assert f"\x1b]8;;{(tmp_path / 'out' / 'report.html').as_uri()}\x1b\\" in shown


@pytest.mark.parametrize("found", [True, False])
def test_a_report_is_opened(found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: seen.append(url) or found)
    np.save(tmp_path / "w.npy", W)
    options = ["--sections", "cosine", "-o", str(tmp_path / "out"), "--open"]
    result = call("analyze", str(tmp_path / "w.npy"), *options)
    assert result.exit_code == 0
    assert seen == [(tmp_path / "out" / "report.html").as_uri()]
    assert ("no browser was found" in result.stderr) is not found


def test_a_smaller_result_replaces_no_fuller_one(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", W)

    def analyze(*options: str) -> tuple[int, str]:
        command = ["analyze", str(tmp_path / "w.npy"), "-o", str(tmp_path / "out"), *options]
        result = call(*command)
        return result.exit_code, result.output

    assert analyze("--sections", "cosine,spectrum")[0] == 0
    for less, cause in (
        (["--sections", "cosine"], "also has spectrum"),
        (["--sections", "cosine,spectrum", "--rows", "0:50"], "an analysis of all rows"),
    ):
        code, shown = analyze(*less)
        assert code == 2
        assert cause in shown
        assert "--force" in shown
        assert len(shown.splitlines()) == 1
    assert analyze("--sections", "cosine,spectrum")[0] == 0
    assert analyze("--sections", "cosine", "--force")[0] == 0
    assert analyze("--sections", "cosine,spectrum")[0] == 0


def test_a_result_of_another_file_is_replaced_only_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "model.npy", W)

    def analyze(*given: str) -> tuple[int, str]:
        result = call("analyze", *given, "--sections", "cosine")
        return result.exit_code, result.output

    assert analyze("one/model.npy")[0] == 0
    assert analyze(str(tmp_path / "one" / "model.npy"))[0] == 0
    code, shown = analyze("two/model.npy")
    assert (code, len(shown.splitlines())) == (2, 1)
    assert "model.embgeo: holds the analysis of " in shown
    assert "one/model.npy; choose another folder with -o, or add --force" in shown.replace(
        "\\", "/"
    )
    assert analyze("two/model.npy", "-o", "model.embgeo")[0] == 0
    assert analyze("one/model.npy", "--force")[0] == 0


def test_stages_are_counted() -> None:
    stages: list[str] = []
    progress = Progress(lambda what, _rows: stages.append(what))
    embgeo.analyze(W, sections=["cosine", "tokens"], progress=progress)
    counts = [tuple(map(int, stage.split()[0].split("/"))) for stage in stages]
    assert {total for _, total in counts} == {5}
    assert sorted({number for number, _ in counts}) == [1, 2, 3, 4, 5]
    assert counts == sorted(counts)
    assert "3/5 cosine" in stages


def test_a_bar_is_shown_on_stderr_unless_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    for quiet in (False, True):
        with shared.progress_bar(quiet) as progress:
            assert (progress is None) is quiet
            if progress is not None:
                progress.start("reading", 60)
        printed = capsys.readouterr()
        assert printed.out == ""
        assert ("reading" in printed.err) is not quiet


def test_help_lists_each_option_once_in_a_group() -> None:
    for command in COMMANDS:
        shown = call(command, "--help").output
        heads = [line[:-1] for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
        known = ["Arguments", *GROUPS]
        groups = [head for head in heads if head in known]
        assert groups == sorted(set(groups), key=known.index)
        assert groups[-1] == "Output"
        named = [line.split()[0] for line in shown.splitlines() if line.startswith("  -")]
        assert len(named) == len(set(named))


def test_completion() -> None:
    for words, expected in (
        ("embgeo an", "analyze"),
        ("embgeo analyze --mem", "--memory"),
        ("embgeo tr", "train"),
        ("embgeo gate --format mark", "markdown"),
    ):
        wanted = {
            "_EMBGEO_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        result = CliRunner().invoke(app, [], env=wanted, prog_name="embgeo")
        assert result.output.split() == [expected]


def invoke(*arguments: object) -> str:
    result = call(*arguments)
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def test_markdown_for_comments(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", W)
    np.save(tmp_path / "two.npy", W + 3)
    one, two, out = tmp_path / "one.npy", tmp_path / "two.npy", tmp_path / "out"
    few = ("--sections", "cosine", "--format", "markdown", "-o", out)
    lines = invoke("analyze", two, *few).splitlines()
    assert lines[0].startswith("### Narrow cone")
    assert lines[lines.index("|  | measured | reference |") + 2].startswith("| Mean cosine | 0.9")
    assert "report" not in "".join(lines)
    config = tmp_path / "cosine.toml"
    config.write_text('[analyze]\nsections = "cosine"\n')
    given = ("--config", config, *few[2:-1], tmp_path / "diff")
    lines = invoke("diff", one, two, *given).splitlines()
    assert lines[1].startswith("- `two`: Narrow cone")
    assert [line.count("|") for line in lines if line.startswith("|")] == [5, 5, 5]
    lines = invoke("gate", out, "-r", "cosine.mean <= 0.1", *few[2:4], "--no-config").splitlines()
    assert lines[0] == "### embgeo gate failed: 1 of 1 check"
    assert lines[4].startswith("| **failed** | `cosine.mean <= 0.1`")


def test_tokens_are_only_text_in_markdown() -> None:
    tokens = [f"|@x`*{row}\n# <b>" for row in range(60)]
    analysis = embgeo.analyze(np.abs(W) + 1, tokens=tokens, reference=False)
    text = "\n".join(markdown.render_analysis(analysis))
    assert not any(sign in text for sign in ("@", "*", "<b>"))
    assert all(line.count("`") % 2 == 0 for line in text.splitlines())
    assert all(line[:1] in ("", "#", "|", "-", "<", "`") for line in text.splitlines())

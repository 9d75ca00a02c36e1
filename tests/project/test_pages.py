"""The documentation runs: commands, code, examples of ``--help``, links, generated pages."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import shutil
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from embgeo.cli.app import COMMANDS, app
from tests.support.chat_model import write_chat_model
from tests.support.documents import BLOCK, LINK, ROOT, agrees, anchors, commands, documents
from tests.support.outlined import outline_figures
from tests.support.sampling import sample_cases

DOCS = ROOT / "docs"
#: What pages show of training holds no number that depends on the size of the model.
SMALL = ("--set", "data.size=400", "--set", "model.d=16", "--set", "model.hidden=16")
#: Pages that are run from top to bottom, and the least number of their commands and programs.
PAGES = {
    "README.md": 5,
    "docs/figures.md": 3,
    "docs/gate.md": 4,
    "docs/python.md": 8,
    "docs/repair.md": 2,
    **{f"docs/tutorials/{page.name}": 2 for page in sorted((DOCS / "tutorials").glob("*.md"))},
}
OF_TRAINING = {"docs/regularizers.md": 3, "docs/training.md": 4}


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """A folder with a copy of the fixtures."""
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    return tmp_path


def run(line: str, *more: str) -> tuple[int, str]:
    """Exit code and what is written to the terminal."""
    program, *arguments = shlex.split(line)
    assert program == "embgeo", f"only embgeo is run here: {line}"
    if arguments[0] == "train" and "--data" in arguments:
        arguments += SMALL
    result = CliRunner().invoke(app, [*arguments, *more])
    return result.exit_code, result.output


def run_page(page: Path) -> int:
    """Put settings where a page puts them, run its commands and programs, and count them."""
    code, ran = 0, 0
    for language, body in BLOCK.findall(page.read_text("utf-8")):
        if language == "toml" and body.startswith("# embgeo.toml"):
            Path("embgeo.toml").write_text(body, encoding="utf-8")
        for command in commands(body) if language == "console" else ():
            if command.line == "echo $?":
                assert command.output.strip() == str(code)
                continue
            code, output = run(command.line)
            assert agrees(command.output, output), f"{command.line}\n{output}"
            ran += 1
        # A program that begins with a comment needs what is not always there.
        if language == "python" and not body.startswith("# with"):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(body, str(page), "exec"), {"__name__": "page"})
            shown = re.findall(r"^print\(.*\)  # (.*)$", body, re.MULTILINE)
            assert len(shown) == len(re.findall(r"^print", body, re.MULTILINE))
            assert agrees("\n".join(shown), printed.getvalue()), printed.getvalue()
            ran += 1
    return ran


@pytest.mark.parametrize("page", sample_cases(PAGES, lambda page: page == "README.md"))
@pytest.mark.slow
def test_a_page_runs_from_top_to_bottom(page: str, shell: Path) -> None:
    if page == "docs/python.md":
        pytest.importorskip("gensim")
    if page == "docs/repair.md":
        write_chat_model(shell / "model")
    # What is printed does not depend on the figures in reports.
    with contextlib.chdir(shell), outline_figures():
        assert run_page(ROOT / page) >= PAGES[page]


@pytest.mark.parametrize("page", OF_TRAINING)
@pytest.mark.nightly
def test_a_page_about_training_runs(
    page: str, shell: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("embgeo.report.page.CHARTS", ())  # drawing takes most of the time
    monkeypatch.setattr(f"{__name__}.SMALL", ())
    with contextlib.chdir(shell):
        assert run_page(ROOT / page) >= OF_TRAINING[page]


@pytest.mark.nightly
def test_every_example_of_help_works(shell: Path) -> None:
    with contextlib.chdir(shell), outline_figures():
        run("embgeo analyze fixtures/baseline.pt --counts fixtures/vocab_counts.tsv -q")
        for command in COMMANDS:
            function = getattr(import_module(f"embgeo.cli.{command}"), command)
            examples = re.findall(r"Example: (embgeo .*)", function.__doc__ or "")
            assert examples, f"{command} has no example in its help"
            for line in examples:
                assert line.split()[1] == command
                if "hf://" in line:  # tests/workflows/test_fetch.py has a Hub to run it with
                    continue
                # tests/cli/test_figures.py draws all of them.
                code, output = run(line, *(["--figure", "spectrum"] * (command == "figures")))
                assert code == 0, f"{line}\n{output}"


def test_links_resolve() -> None:
    broken = []
    for page in documents():
        for link in LINK.findall(page.read_text("utf-8")):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            known = target.exists() and (not anchor or anchor in anchors(target))
            if not (known and target.is_relative_to(ROOT)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert not broken


@pytest.mark.parametrize("name", ["claims", "formats", "metrics", "options", "settings"])
def test_a_generated_page_is_up_to_date(name: str) -> None:
    if name == "settings":
        pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location(f"make_{name}", DOCS / f"make_{name}.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert maker.TARGET.read_text("utf-8") == maker.document(), f"run: python docs/make_{name}.py"


# Sphinx warns of its own extensions; what it says of the pages ends with an error by ``-W``.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="furo is not installed")
    pytest.importorskip("myst_parser", reason="myst-parser is not installed")
    build = pytest.importorskip("sphinx.cmd.build", reason="Sphinx is not installed")
    arguments = ["-q", "-W", "--keep-going", "-D", "html_extra_path=", str(DOCS), str(tmp_path)]
    assert build.main(arguments) == 0
    assert (tmp_path / "tutorials" / "figure.html").is_file()

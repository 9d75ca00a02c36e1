"""docs/training.md runs: its commands print what it shows, its tables are complete."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("tomli_w")

from embgeo.cli.app import app
from embgeo.training.complete import complete_settings
from embgeo.training.methods import METHODS
from embgeo.training.settings import list_presets, parse_settings
from embgeo.training.study.record import STUDY
from tests.support.documents import FIRST_CELL, ROOT, agrees, blocks, commands
from tests.support.sample_runs import sample_training

PAGE = ROOT / "docs" / "training.md"
TEXT = PAGE.read_text("utf-8")


@pytest.fixture
def few_figures() -> Iterator[None]:
    """Drawing takes most of the time, and is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("embgeo.report.page.CHARTS", ())
        yield


@pytest.mark.usefixtures("few_figures")
@pytest.mark.nightly
def test_the_story_from_top_to_bottom(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    story = [command for block in blocks(PAGE, "console") for command in commands(block)]
    assert len(story) == 4
    with contextlib.chdir(tmp_path):
        for command in story:
            program, *arguments = shlex.split(command.line)
            assert program == "embgeo"
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, result.output
            assert agrees(command.output, result.output), f"{command.line}\n{result.output}"
        written = {
            path.relative_to("pydocs.runs").as_posix()
            for path in Path("pydocs.runs").rglob("*")
            if "comparison/" not in path.as_posix()
        }
    for name in FIRST_CELL.findall(section("What is in the folder")):
        assert name.replace("METHOD", "cosreg").replace("-S", "-0") in written, name


def section(title: str) -> str:
    """The text under a heading."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_table_names_every_method() -> None:
    part = section("What can be trained")
    named = FIRST_CELL.findall(part)
    assert named == [*METHODS]
    for name, method in METHODS.items():
        (row,) = [line for line in part.splitlines() if line.startswith(f"| `{name}` |")]
        *_, model, against = (cell.strip() for cell in row[1:-1].split("|"))
        assert ("untied" in model.split(",")[0]) == (method.tied is False), name
        assert against == (f"`{method.reference}`" if method.reference else ""), name


def test_every_field_of_the_json_is_documented() -> None:
    cells = re.findall(r"^\|(.*?)\|", section("training.json"), re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`([a-z_]+)`", cell)]
    assert named == list(STUDY.to_json(sample_training()))


def test_the_page_of_settings_is_current_and_complete() -> None:
    maker = load_maker("make_settings")
    page = maker.TARGET.read_text("utf-8")
    assert page == maker.document(), "run: python docs/make_settings.py"
    for name, method in METHODS.items():
        part = page.partition("## Methods")[2]
        for key in method.complete({}, sgd=False):
            assert f"`{key}`" in part, f"{name}: {key}"
    shown = dict(
        re.findall(r"^\| `([\w-]+)` \| (.*) \|$", page.partition("## Presets")[2], re.MULTILINE)
    )
    assert [*shown] == [*list_presets()]
    assert all(shown.values())


def test_the_settings_that_are_shown_are_settings() -> None:
    own, defined = blocks(PAGE, "toml")
    names = set(complete_settings(parse_settings(defined, "docs/training.md")).method)
    assert names == {"cosreg", "cosreg-10", "both"}
    config = parse_settings(own, "docs/training.md")
    assert config.compare == ("mle", "untied", "cosreg", "real")
    assert config.seeds == (0, 1, 2)
    for key in re.findall(r"`((?:data|training|geometry|model)\.(?!json)[a-z_]+)[=`]", TEXT):
        table, name = key.split(".")
        assert name in {**config.tables()[table], **dict.fromkeys(OPEN)}, key


#: Settings without a value of their own.
OPEN = (
    "min_count",
    "tokenizer",
    "bpe",
    "tokens",
    "skip",
    "every",
    "size",
    "steps",
    "compile",
    "threads",
)


VERDICT_CELL = r"\| (?:reproduced|not reproduced|nominal|undecided)\b"


def load_maker(name: str) -> Any:
    """Import a program of docs/ that writes a page."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_science_shows_what_the_campaigns_found() -> None:
    """Each claim of each campaign stands there, with its verdict."""
    maker = load_maker("make_claims")
    page = maker.TARGET.read_text("utf-8")
    assert page == maker.document(), "run: python docs/make_claims.py"
    run = {path.stem.removeprefix("campaign-") for path in maker.RESULTS.glob("campaign-*.md")}
    # That of `grids` is about settings of methods.
    assert run == {*maker.CAMPAIGNS, "grids"}
    found = [maker.read_claims(name) for name in maker.CAMPAIGNS]
    papers = maker.PLACE.findall(page)
    assert {paper for claims in found for paper in claims} == set(papers)
    cells = re.findall(VERDICT_CELL, "".join(map(maker.render_table, papers)))
    assert len(cells) == sum(len(rows) for claims in found for rows in claims.values()) > 100


def test_claims_of_a_campaign_are_read_with_verdict_and_difference() -> None:
    maker = load_maker("make_claims")
    claim = "The adversarial softmax improves perplexity (adversarial against mle)"
    cells = maker.read_claims("overfit")["Wang D. et al. 2019"][claim]
    assert maker.shorten(cells) == "nominal −0.953%"
    table = maker.render_table("Wang D. et al. 2019").splitlines()
    columns = ("cone", "cone-untied", "overfit", "overfit-tuned", "ptb")
    assert (
        table[0] == " | ".join(("| claim", "published", *(f"`{name}`" for name in columns))) + " |"
    )
    assert table[2].startswith(f"| {claim} | 54.44 → 52.97 | undecided −4.72% | undecided −1.31% |")

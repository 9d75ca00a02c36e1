"""The documentation as a site: every page is in it, links lead on, tutorials run."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import embgeo
from embgeo.cli.app import app
from embgeo.core.quantities import QUANTITIES
from embgeo.core.values import Quantity
from tests.support.documents import BLOCK, ROOT, agrees, commands
from tests.support.outlined import outline_figures

DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
#: What the pages show of training holds no number that depends on the size of the model.
SMALL = ("--set", "data.size=400", "--set", "model.d=16", "--set", "model.hidden=16")


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conf", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_the_table_of_contents() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", index, re.MULTILINE | re.DOTALL)
    lines = "\n".join(trees)
    listed = re.findall(r"^(?:[^:\n]* <)?([\w/-]+)>?$", lines, re.MULTILINE)
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    pages = {page for page in pages if not page.startswith("_build/")}
    assert sorted(listed) == sorted(pages - {"index"})


def test_reports_of_the_gallery_have_names_that_no_page_has() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    kinds = re.search(r"for kind in (.*);", (ROOT / "scripts/site").read_text("utf-8"))
    assert kinds is not None
    reports = set(re.findall(r'href="([\w-]+)\.html"><img', index))
    assert reports == set(kinds[1].split())
    assert not [name for name in reports if (DOCS / f"{name}.md").exists()]


@pytest.mark.parametrize(
    ("text", "adapted"),
    [
        ("[a](docs/gate.md#rules)", "[a](gate.md#rules)"),
        ("![a](docs/report.png)", "![a](report.png)"),
        ("[changes](CHANGELOG.md)", "[changes](changelog.md)"),
        ("[`ci`](.ci/run)", "{download}`ci <../.ci/run>`"),
        ("[folder](tests)", "folder"),
        ("[web](https://example.org/docs)", "[web](https://example.org/docs)"),
        ("[gone](docs/nowhere.md)", "[gone](docs/nowhere.md)"),
    ],
)
def test_links_of_included_pages_lead_on(conf: ModuleType, text: str, adapted: str) -> None:
    assert conf.adapt_links(text, ROOT, DOCS) == adapted


def test_links_from_a_tutorial_to_the_repository(conf: ModuleType) -> None:
    folder = DOCS / "tutorials"
    assert conf.adapt_links("[a](../gate.md)", folder, folder) == "[a](../gate.md)"
    assert conf.adapt_links("[a](../../README.md)", folder, folder) == "[a](../start.md)"


def test_the_page_of_the_api_begins_with_analyze_and_lists_every_name() -> None:
    page = (DOCS / "api.md").read_text("utf-8")
    listed = re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)$", page, re.MULTILINE)
    assert listed[0] == "analyze"
    assert sorted(listed) == sorted(set(embgeo.__all__) - {"__version__"})


@pytest.mark.parametrize("quantity", [q for q in QUANTITIES.values() if q.formula])
def test_every_formula_is_well_formed_mathml_with_all_of_its_signs(
    conf: ModuleType, quantity: Quantity
) -> None:
    written = ET.fromstring(f"<p>{conf.write_mathml(quantity.formula)}</p>")
    scripts = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀʳ₀₁₂₃₄₅₆₇₈₉", "0123456789−Tr0123456789", "_^√() ")
    shown = "".join(written.itertext()).translate(scripts)
    assert sorted(shown) == sorted(quantity.formula.translate(scripts))


def test_formulas_of_the_page_of_metrics_are_mathml(conf: ModuleType) -> None:
    source = [(DOCS / "metrics.md").read_text("utf-8")]
    rows = len(re.findall(r"^\| `\w+\.\w+`<br>.*<br>`[^`]+` \|", source[0], re.MULTILINE))
    conf.adapt_source(None, "metrics", source)
    assert "<msubsup>" in source[0]
    shown = re.findall(r"^\| `\w+\.\w+`<br>.*<math>", source[0], re.MULTILINE)
    assert len(shown) > 0.8 * rows > 80


def test_a_page_that_includes_another_holds_its_text(conf: ModuleType) -> None:
    source = [(DOCS / "security.md").read_text("utf-8")]
    conf.adapt_source(None, "security", source)
    assert source[0].startswith("# Security")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
@pytest.mark.slow
def test_a_tutorial_runs(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    blocks = BLOCK.findall(page.read_text("utf-8"))
    ran = 0
    for language, body in blocks:
        with contextlib.chdir(tmp_path), outline_figures():
            if language == "python":
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(compile(body, str(page), "exec"), {})
                shown = re.findall(r"^print\(.*\)  # (.*)$", body, re.MULTILINE)
                assert printed.getvalue().splitlines() == shown
            for command in commands(body) if language == "console" else ():
                program, *arguments = shlex.split(command.line)
                assert program == "embgeo"
                arguments += SMALL if arguments[0] == "train" else ()
                seen = CliRunner().invoke(app, arguments).output
                assert agrees(command.output, seen), f"{command.line}\n{seen}"
                ran += 1
    assert ran >= 2


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

"""The documentation runs: commands, code, examples of ``--help``, links, tables of fields."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from typer.testing import CliRunner

import embgeo
from embgeo.cli.app import COMMANDS, app
from embgeo.core.matrix import Frequency, Matrix, Origin
from embgeo.core.options import Options
from embgeo.core.special import SpecialToken
from embgeo.core.suspects import Reason
from embgeo.core.values import Caveat, NoteCode
from embgeo.diagnosis.finding import State
from embgeo.diagnosis.findings import FINDINGS
from embgeo.metrics import SECTIONS
from embgeo.result.analysis import Analysis
from embgeo.workflows.analyze import name_output
from tests.support.documents import (
    FIRST_CELL,
    LINK,
    ROOT,
    agrees,
    anchors,
    blocks,
    commands,
    documents,
    list_fields,
)
from tests.support.in_parts import in_parts
from tests.support.outlined import outline_figures

README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "guide.md"
#: What the page shows of training holds no number that depends on the size of the model.
SMALL = ("--set", "data.size=400", "--set", "model.d=16", "--set", "model.hidden=16")


class Shell:
    """Runs embgeo in a folder with a copy of the fixtures; an equal command runs once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[str, tuple[int, str]] = {}

    def run(self, line: str) -> tuple[int, str]:
        """Exit code and what is written to the terminal."""
        if line not in self.seen:
            program, *arguments = shlex.split(line)
            assert program == "embgeo", f"only embgeo is run here: {line}"
            if arguments[0] == "train" and "--data" in arguments:
                arguments += SMALL
            # What is printed does not depend on the figures in reports.
            with contextlib.chdir(self.folder), outline_figures():
                result = CliRunner().invoke(app, arguments)
            self.seen[line] = result.exit_code, result.output
        return self.seen[line]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("shell")
    shutil.copytree(ROOT / "fixtures", folder / "fixtures")
    return Shell(folder)


@pytest.mark.slow
def test_commands_of_the_readme_print_what_it_shows(shell: Shell) -> None:
    shown = [*blocks(README, "console"), *blocks(GUIDE, "console")]
    story = [command for block in shown for command in commands(block)]
    assert len(story) >= 8
    code, unexpected = 0, ""
    for command in story:
        if command.line == "echo $?":
            assert command.output.strip() == str(code)
            unexpected = ""
            continue
        assert not unexpected
        code, output = shell.run(command.line)
        assert agrees(command.output, output), f"{command.line}\n{output}"
        unexpected = f"{command.line} ended with exit code {code}" if code else ""
    assert not unexpected


@pytest.mark.slow
def test_the_main_command_of_the_readme_works(shell: Shell) -> None:
    lines = [line for block in blocks(README, "sh") for line in block.splitlines()]
    parts = [part.strip() for line in lines for part in line.split("&&")]
    ours = [part for part in parts if part.startswith("embgeo ")]
    assert ours
    for line in ours:
        code, output = shell.run(line)
        assert code == 0, output


@pytest.mark.slow
def test_code_of_the_readme_prints_what_its_comments_say(shell: Shell) -> None:
    programs = blocks(README, "python")
    assert programs
    for program in programs:
        with contextlib.chdir(shell.folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(program, str(README), "exec"), {})
        shown = re.findall(r"^print\(.*\)  # (.*)$", program, re.MULTILINE)
        assert shown
        assert agrees("\n".join(shown), printed.getvalue()), printed.getvalue()


@pytest.mark.slow
def test_every_example_of_help_works(shell: Shell) -> None:
    for command in COMMANDS:
        function = getattr(import_module(f"embgeo.cli.{command}"), command)
        examples = re.findall(r"Example: (embgeo .*)", function.__doc__ or "")
        assert examples, f"{command} has no example in its help"
        for line in examples:
            assert line.split()[1] == command
            if "hf://" in line:  # tests/workflows/test_fetch.py has a Hub to run it with
                continue
            # tests/cli/test_figures.py draws all of them.
            code, output = shell.run(f"{line} --figure spectrum" if command == "figures" else line)
            assert code == 0, f"{line}\n{output}"


@pytest.mark.parametrize(
    ("shown", "seen", "same"),
    [
        ("mean 0.4673 of 5,000", "mean   0.4675 of 5,000", True),
        ("mean 0.4673", "mean 0.4676", False),
        ("mean 0.47", "mean 0.467", False),
        ("mean 0.467", "mean 0.4671", True),
        ("rows 5,000", "rows 5,001", False),
        ("rows 5", "rows 5.0", False),
        ("mean −0.12", "mean 0.12", False),
        ("1.5e-06 left", "1.6e-06 left", True),
        ("1.5e-06 left", "1.5e-05 left", False),
        ("report: …/a.html", "report: /some/where/a.html", True),
        ("report: …/a.html", "report: /some/where/b.html", False),
        ("first\n…\nlast 1", "first\nand\nso on\nlast 1", True),
        ("first\nlast", "first\nand\nlast", False),
        ("note: x", "note: y", False),
        ("a line", "a line\nanother", False),
    ],
)
def test_what_counts_as_the_same_output(shown: str, seen: str, same: bool) -> None:
    assert agrees(shown, seen) is same


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    broken = []
    for link in LINK.findall(page.read_text("utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        known = target.exists() and (not anchor or anchor in anchors(target))
        if not (known and target.is_relative_to(ROOT)):
            broken.append(link)
    assert not broken


# --- docs/analysis-json.md -------------------------------------------------------------------

#: Objects whose keys are labels and not fields: ``*`` in the document.
FREE_KEYS = (
    "absent",
    "provenance.conventions",
    "provenance.masked",
    "scalars",
    "series[].y",
    "timing",
)
#: What has the fields that the document lists once, behind ``…``.
VALUES = (
    "scalars.*",
    "series[]",
    "histograms[]",
    "points[]",
    "columns[]",
    "tables[]",
    "influences[]",
)


def fields(value: Any, path: str = "") -> Iterator[str]:
    """Dotted names of all fields; ``[]`` for entries of lists of objects."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            name = "*" if path in FREE_KEYS else key
            yield from fields(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                for key, inner in item.items():
                    yield from fields(inner, f"{path}[].{key}")


@pytest.fixture(scope="module")
def full_analysis() -> embgeo.Analysis:
    """Every section, with every option that adds values; two rows are left out."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 6))
    rows[7] = 0.0
    rows[9] = rows[8]
    tokens = tuple(f"token {row}" for row in range(60))
    counts = Frequency("counts", np.arange(60, 0, -1.0), "made up")
    output = Matrix(rng.standard_normal((60, 5)), origin=Origin(tensor="out"))
    masked = {"padding beyond the vocabulary": np.array([59])}
    matrix = Matrix(
        rows,
        tokens=tokens,
        frequency=counts,
        masked=masked,
        output=output,
        special=(SpecialToken("token 1", 1, ("bos",)), SpecialToken("token 7", 7, ("eos",))),
        vocabulary_size=59,
        tied_as_configured=True,
        hidden=Matrix(rng.standard_normal((40, 6)) + 2.0, origin=Origin(path="states.npy")),
    )
    options = Options(
        isotropy_rows=20, isotropy_runs=2, show_neighbors=(("token 1", ("token 2",)),)
    )
    return embgeo.analyze(matrix, options=options)


@pytest.fixture(scope="module")
def bare_analysis() -> embgeo.Analysis:
    """Nothing known but the rows."""
    matrix = Matrix(np.random.default_rng(1).standard_normal((30, 4)))
    return embgeo.analyze(matrix, reference=False)


@pytest.fixture(scope="module")
def clumped_analysis() -> embgeo.Analysis:
    """With rows that form a clump."""
    rows = np.random.default_rng(3).standard_normal((400, 8))
    rows[:60] = 0.02 * rows[:60] + 0.1
    tokens = tuple(f"[unused{row}]" if row < 30 else f"token {row}" for row in range(400))
    counts = Frequency("counts", np.arange(1.0, 401.0), "made counts")
    matrix = Matrix(rows, tokens=tokens, frequency=counts, unreachable=(3,))
    return embgeo.analyze(matrix, sections=["tokens"], reference=False)


@pytest.fixture(scope="module")
def diluted_analysis() -> embgeo.Analysis:
    """A cone with scattered rows."""
    rows = np.random.default_rng(3).standard_normal((800, 32))
    rows[:, 0] += 8.0
    rows[:150] = 0.01 * np.random.default_rng(4).standard_normal((150, 32))
    return embgeo.analyze(Matrix(rows), sections=["tokens"], reference=False)


@pytest.fixture(scope="module")
def gathered_analysis() -> embgeo.Analysis:
    """With rows that form a clump away from the mean direction."""
    rows = np.random.default_rng(3).standard_normal((400, 8)) - 0.5
    rows[:40] = 0.15 * rows[:40] + 2.0
    return embgeo.analyze(Matrix(rows), sections=["tokens"], reference=False)


@pytest.fixture(scope="module")
def merged_analysis() -> Analysis:
    """Made of a part that happens to be the whole."""
    matrix = Matrix(np.random.default_rng(2).standard_normal((30, 4)))
    return in_parts(matrix, [(0, 30)], sections=("spectrum",))


def test_every_field_of_the_json_is_documented_and_the_other_way_round(
    full_analysis: embgeo.Analysis, bare_analysis: embgeo.Analysis, merged_analysis: Analysis
) -> None:
    listed = list_fields((ROOT / "docs/analysis-json.md").read_text("utf-8"))
    common = [field.removeprefix("…") for field in listed if field.startswith("…")]
    documented = [field for field in listed if not field.startswith("…")]
    documented += [f"{value}{field}" for value in VALUES for field in common]
    assert len(common) == 7
    assert len(documented) == len(set(documented))
    # Of what was saved, of more rows than a test has, and of matrices that are decoded.
    others = {"arrays_sha256", "provenance.listed"}
    others |= {"provenance.decoded", "provenance.output.decoded"}
    json_part = set(documented) - ARRAYS - others
    judged = name_output(full_analysis, bare_analysis)
    analyses = (judged, bare_analysis, merged_analysis)
    written = {field for analysis in analyses for field in fields(analysis.to_dict())}
    assert json_part == written


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("verdict.findings[].key", [finding.QUESTION.key for finding in FINDINGS]),
        ("verdict.state", get_args(State)),
        ("notes[].code", get_args(NoteCode)),
        ("suspects[].reason", get_args(Reason)),
        ("scalars.*.caveats", get_args(Caveat)),
    ],
)
def test_every_word_of_a_field_is_documented(field: str, words: Iterable[str]) -> None:
    text = (ROOT / "docs/analysis-json.md").read_text("utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith(f"| `{field}` |"))
    assert set(re.findall("`([^`]+)`", line)) - {field} == set(words)


ARRAYS = {"rows", "tokens_utf8", "tokens_end", "counts", "popular"}
ARRAYS |= {"points/*", "columns/*", "influences/*", "nearest/*", "suspects/*", "treated/*"}


def test_every_array_is_documented_and_the_other_way_round(
    full_analysis: embgeo.Analysis, tmp_path: Path
) -> None:
    documented = set(list_fields((ROOT / "docs/analysis-json.md").read_text("utf-8")))
    full_analysis.save(tmp_path)
    with np.load(tmp_path / "arrays.npz", allow_pickle=False) as stored:
        written = {re.sub("/.*", "/*", name) for name in stored.files}
    assert written == ARRAYS
    assert written <= documented


# --- docs/metrics.md -------------------------------------------------------------------------


def make_metrics() -> Any:
    spec = importlib.util.spec_from_file_location("make_metrics", ROOT / "docs/make_metrics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_metrics_is_up_to_date() -> None:
    maker = make_metrics()
    assert maker.TARGET.read_text("utf-8") == maker.document(), "run: python docs/make_metrics.py"


def test_the_table_of_metrics_names_what_analyses_hold(
    full_analysis: embgeo.Analysis,
    bare_analysis: embgeo.Analysis,
    clumped_analysis: embgeo.Analysis,
    diluted_analysis: embgeo.Analysis,
    gathered_analysis: embgeo.Analysis,
) -> None:
    listed = FIRST_CELL.findall((ROOT / "docs/metrics.md").read_text("utf-8"))
    assert len(listed) == len(set(listed))
    analyses = (
        full_analysis, bare_analysis, clumped_analysis, diluted_analysis, gathered_analysis,
    )  # fmt: skip
    held = {value.name for a in analyses for value in a.values()}
    # A vocabulary known by rank alone has ranks in place of counts; t-SNE is an option (`plane`).
    assert set(listed) - held == {"frequency.rank", "projection.tsne"}
    assert held <= set(listed)
    assert {name.partition(".")[0] for name in listed} == set(SECTIONS)

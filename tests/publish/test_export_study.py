"""The tables of a study as CSV, LaTeX and Markdown, and what a user can get wrong."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.charts.render.paper import VENUES
from embgeo.core.errors import BadOption
from embgeo.publish.export.study import FORMS, latex_cell, make_csv, make_markdown
from embgeo.publish.latex.latex_table import BETWEEN, measure
from embgeo.training.study.record import STUDY, STUDY_NAME
from tests.support import command
from tests.support.record import check_record
from tests.support.refusals import refusal
from tests.support.sample_analysis import HOSTILE, sample
from tests.support.sample_runs import sample_training

run = partial(command.call, "export")

ALL = ("mle", "cosreg", "sc-exp", "untied", "al")


ICLR = VENUES["iclr"]


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study and an analysis."""
    monkeypatch.chdir(tmp_path)
    Path("all.runs").mkdir()
    STUDY.save(sample_training(methods=ALL), Path("all.runs"))
    sample().save(tmp_path / "W.embgeo")
    return tmp_path


def test_csv_holds_means_errors_differences_and_holm() -> None:
    study = sample_training(methods=ALL)
    found = rows(make_csv(study, ICLR))
    (one,) = (
        row for row in found if (row["method"], row["number"]) == ("cosreg", "test.perplexity")
    )
    values = list(study.values("cosreg", "test.perplexity").values())
    before = list(study.values("mle", "test.perplexity").values())
    steps = np.log(values) - np.log(before)
    assert (one["control"], one["matrix"], one["seeds"]) == ("mle", "", "3")
    assert float(one["mean"]) == pytest.approx(np.mean(values))
    assert float(one["deviation"]) == pytest.approx(np.std(values, ddof=1))
    assert float(one["difference"]) == pytest.approx(steps.mean())
    assert float(one["standard_error"]) == pytest.approx(steps.std(ddof=1) / np.sqrt(3))
    assert (one["relative"], one["claim"]) == ("log", "cosreg-perplexity")
    (outcome,) = (o for o in study.outcomes if o.key == "cosreg-perplexity")
    assert (float(one["p"]), float(one["p_holm"])) == (outcome.p_value, outcome.p_adjusted)
    assert float(one["low"]) < float(one["difference"]) < float(one["high"])


def test_csv_holds_every_number_of_every_matrix_and_every_claim() -> None:
    study = sample_training(methods=ALL)
    found = rows(make_csv(study, ICLR))
    for method in study.methods:
        own = [row for row in found if row["method"] == method.name]
        numbers = study.runs_of(method.name)[0].numbers
        assert {row["number"] for row in own if row["matrix"] != "output"} == set(numbers)
        others = study.runs_of(method.name)[0].others.get("output", {})
        assert {row["number"] for row in own if row["matrix"] == "output"} == set(others)
    keys = [row["claim"] for row in found if row["claim"]]
    assert sorted(keys) == sorted(
        o.key for o in study.outcomes if study.values(o.method, o.number, o.role)
    )
    # The control stays beside the claims that have another reference.
    controls = {
        row["control"]
        for row in found
        if (row["method"], row["number"]) == ("sc-exp", "test.perplexity")
    }
    assert controls == {"mle", "factored", "cosreg"}


def test_one_seed_has_no_error() -> None:
    (first, *_) = rows(make_csv(sample_training(methods=("mle",), seeds=1), ICLR))
    assert (first["seeds"], first["deviation"], first["difference"]) == ("1", "", "")
    assert b"One seed." in make_markdown(sample_training(methods=("mle",), seeds=1), ICLR)


def measure_rows(table: str) -> float:
    """Estimate the width of a table in points."""
    ends = [line.strip() for line in table.split("\n") if line.endswith(r"\\")]
    rows = [line.removesuffix(r"\\").split(" & ") for line in ends]
    return sum(max(map(measure, column)) + BETWEEN for column in zip(*rows, strict=True))


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_tables_of_a_study_are_those_that_were_read(form: str) -> None:
    text = FORMS[form].make(sample_training(methods=ALL), ICLR).decode()
    record = Path(__file__).with_name("tables.txt")
    check_record(record, f"a study as {form}", text.split("\n"), apart=0.01)
    # The differences are wider than the text: a second block has the rest of their columns.
    for table in text.split(r"\begin{tabular}")[1:]:
        assert measure_rows(table) <= 5.5 * 72.27
        lines = [line for line in table.split("\n") if line.endswith(r"\\")]
        assert len({line.count(" & ") for line in lines}) == 1


def test_hostile_names_are_text_in_every_format() -> None:
    study = sample_training(hostile=True)
    for form in FORMS.values():
        assert form.make(study, ICLR)
    for text in HOSTILE:
        cell = latex_cell(text)
        assert "\n" not in cell
        assert cell.count("{") - cell.count(r"\{") == cell.count("}") - cell.count(r"\}")


@pytest.mark.parametrize(
    ("to", "name"),
    [("csv", "all.runs.csv"), ("latex", "all.runs.tex"), ("markdown", "all.runs.md")],
)
def test_every_form_is_written_under_the_name_of_the_study(here: Path, to: str, name: str) -> None:
    before = {path.name for path in here.iterdir()}
    for source in ("all.runs", f"all.runs/{STUDY_NAME}"):  # the second over the first
        result = run(source, "--to", to)
        assert result.exit_code == 0, result.output
    assert {path.name for path in here.iterdir()} - before == {name, f"{name}.provenance.json"}
    record = json.loads((here / f"{name}.provenance.json").read_text())
    assert (record["target"], record["study"]["command"][:12]) == (to, "embgeo train")
    assert record["numbers"]["test.perplexity"]["meaning"]
    written = embgeo.export(sample_training(methods=ALL), to, here / "again")
    assert written.paths[0].read_bytes() == (here / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("all.runs", "--to", "projector"), "--to projector: is not a format of a study; choose"),
        (("all.runs", "--to", "csv", "--bytes"), "--bytes: is about --to projector; leave it"),
        (("all.runs", "--to", "csv", "-o", "own"), "own: exists and was not made by this"),
        (("W.embgeo", "--to", "markdown"), "--to markdown: is not a format of an analysis; choose"),
        (("W.embgeo", "--to", "csv", "--venue", "acl"), "--venue: is about --to latex"),
        (("nowhere", "--to", "markdown"), "nowhere: no such folder; make one with: embgeo analyze"),
        (("broken", "--to", "csv"), "broken/training.json: "),
    ],
)
def test_what_a_user_can_get_wrong(here: Path, arguments: tuple[str, ...], said: str) -> None:
    (here / "own").write_text("mine")
    (here / "broken").mkdir()
    (here / "broken" / STUDY_NAME).write_text("{}")
    before = {path.name for path in here.iterdir()}
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.removeprefix("embgeo: ").startswith(said)
    assert {path.name for path in here.iterdir()} == before
    assert (here / "own").read_text() == "mine"


def test_python_names_the_argument() -> None:
    with refusal(BadOption):
        embgeo.export(sample_training(), "parquet")

"""The public API: what `embgeo` exports, and that each function does what its command does."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.charts import CHARTS
from embgeo.cli.app import run
from embgeo.core.errors import BadOption, option_of
from embgeo.workflows.analyze import Analysis
from embgeo.workflows.folders import write_whole
from tests.support.documents import ROOT
from tests.support.package_source import modules, nodes
from tests.support.refusals import refusal
from tests.support.sample_analysis import sample, without

BASELINE = ROOT / "fixtures" / "baseline.pt"
COSREG = ROOT / "fixtures" / "cosreg.safetensors"
TERMINAL = ("typer.", "rich.", "embgeo.cli.")
QUICK: dict[str, Any] = {"sections": "tokens", "reference": False}


@pytest.fixture(scope="module")
def baseline() -> embgeo.Analysis:
    return embgeo.analyze(BASELINE, **QUICK)


def test_everything_is_exported_and_listed() -> None:
    for name in embgeo.__all__:
        assert getattr(embgeo, name) is not None
    assert set(embgeo.__all__) <= set(dir(embgeo))
    assert {"load", "analyze", "diff", "gate", "render", "export", "train"} <= {*dir(embgeo)}
    with refusal(AttributeError):
        embgeo.analyse  # noqa: B018


@pytest.mark.slow
def test_importing_embgeo_is_light() -> None:
    code = "import embgeo, sys; dir(embgeo); assert not {'numpy', 'typer'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_every_function_is_documented() -> None:
    for name in embgeo.__all__:
        made = getattr(embgeo, name)
        if inspect.isfunction(made):
            text = inspect.getdoc(made) or ""
            for heading in ("Parameters", "Returns", "Raises", "Examples"):
                assert f"\n{heading}\n---" in text, f"{name}: {heading}"
            for parameter in inspect.signature(made).parameters:
                assert parameter in text, f"{name}: {parameter}"


def test_workflows_know_no_terminal() -> None:
    """They neither print nor import what parses a command line."""
    for module in (name for name in modules() if name.startswith("embgeo.workflows.")):
        for node in nodes(module):
            if isinstance(node, ast.Call):
                assert getattr(node.func, "id", "") != "print", module
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", ""), *(alias.name for alias in node.names)]
                assert not any(
                    f"{n}.".startswith(("typer.", "rich.", "embgeo.cli.")) for n in names
                )


#: Command, arguments and options that its function and the command line refuse alike; SAVED and
#: NEW are a saved analysis and a folder that does not exist.
REFUSED: tuple[tuple[str, tuple[object, ...], dict[str, Any]], ...] = (
    ("analyze", (BASELINE,), {"seed": -1}),
    ("analyze", (BASELINE,), {"sections": "cosin"}),
    ("analyze", (BASELINE,), {"sections": "tokens", "pairs": "x"}),
    ("analyze", (BASELINE,), {"rows": "5"}),
    ("analyze", (BASELINE,), {"hidden_tensor": "x"}),
    ("diff", (BASELINE,), {}),
    ("diff", (BASELINE, COSREG), {"every": 2}),
    ("diff", (BASELINE, COSREG), {"track": True, "every": 0}),
    ("diff", (BASELINE, COSREG), {"queries": "x"}),
    ("export", ("SAVED",), {"to": "csv", "at_most": 3}),
    ("export", ("SAVED",), {"to": "projector", "at_most": 0}),
    ("export", ("SAVED",), {"to": "csv", "bytes": True}),
    ("export", ("SAVED",), {"to": "markdown"}),
    ("fetch", ("org/name",), {}),
    ("fetch", ("hf://org/name",), {"max_download": "5"}),
    ("figures", ("SAVED",), {"width": 30.0}),
    ("figures", ("SAVED",), {"width": 3.0, "venue": "acl"}),
    ("figures", ("SAVED",), {"figure": "scater"}),
    ("figures", ("SAVED",), {"figure": "spectrum", "color": "none"}),
    ("figures", ("SAVED",), {"figure": "scatter", "annotate": "zzqx"}),
    ("gate", ("SAVED",), {}),
    ("gate", ("SAVED",), {"rule": "cosine.men <= 1"}),
    ("gate", ("SAVED",), {"rule": "effective_rank >= 1"}),
    ("gate", ("SAVED",), {"rule": "cosine.mean <= 1", "level": 2.0}),
    ("gate", ("SAVED",), {"rule": "cosine.mean <= 1", "baseline": "SAVED"}),
    ("gate", ("SAVED",), {"preset": "x"}),
    ("inspect", (COSREG,), {"tensor": "zzqx"}),
    ("inspect", ("NEW",), {}),
    ("repair", (COSREG,), {}),
    ("repair", (COSREG,), {"dry_run": True, "seed": -1}),
    ("repair", (COSREG,), {"dry_run": True, "only": "x"}),
    ("repair", (COSREG,), {"dry_run": True, "method": "copy"}),
    ("repair", (COSREG,), {"dry_run": True, "min_norm": -1.0}),
    ("report", ("NEW",), {}),
    ("report", ("SAVED",), {"out": COSREG}),
    ("train", (), {"jobs": 0}),
    ("train", (), {"seeds": 0}),
    ("train", (), {"tune": "lr"}),
)


@pytest.mark.slow
def test_a_command_refuses_what_its_function_refuses(
    baseline: embgeo.Analysis, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")  # of train
    named = {"SAVED": tmp_path / "saved", "NEW": tmp_path / "new"}
    baseline.save(named["SAVED"])
    for command, places, options in REFUSED:
        paths = [str(named.get(str(place), place)) for place in places]
        words = [command, *paths]
        given = {}
        for name, stated in options.items():
            value = named.get(str(stated), stated)
            words += [option_of(name), *([] if value is True else [str(value)])]
            given["rules" if name == "rule" else name] = value
        function = embgeo.render if command == "report" else getattr(embgeo, command)
        with refusal() as refused:
            function(*paths, **given)
        assert isinstance(refused.value, embgeo.EmbgeoError)
        words += ["--no-config"] * (command in ("analyze", "diff", "gate"))
        assert run(words) == 2
        assert capsys.readouterr().err == f"embgeo: {refused.value.command_line_text}\n"


def test_a_choice_that_only_python_can_miss_is_refused(baseline: embgeo.Analysis) -> None:
    for call in (
        lambda: embgeo.figures(baseline, figure="scatter", color="red"),
        lambda: embgeo.figures(baseline, table="isotropy", signs="all"),
        lambda: embgeo.figures(baseline, width=0),
        lambda: embgeo.render(baseline, card=True),
        lambda: embgeo.inspect(BASELINE, transpose="no"),  # type: ignore[arg-type]
    ):
        with refusal():
            call()


@pytest.mark.slow
def test_a_path_is_analyzed_as_the_command_does(tmp_path: Path) -> None:
    out = tmp_path / "made"
    options = ["--sections", "tokens,spectrum", "--no-reference", "--rows", "0:500", "--seed", "3"]
    assert run(["analyze", str(BASELINE), "-o", str(out), "--quiet", *options]) == 0
    made = embgeo.analyze(
        str(BASELINE), sections=("tokens", "spectrum"), reference=False, rows="0:500", seed=3
    )
    theirs = json.loads((out / "analysis.json").read_text("utf-8"))
    mine = json.loads(json.dumps(made.to_dict()))
    for document in (mine, theirs):
        del document["timing"], document["provenance"]["command"]
    del theirs["arrays_sha256"]  # of what was saved
    assert mine == theirs


@pytest.mark.slow
def test_labels_beside_a_path_may_be_files_or_objects() -> None:
    counts = ROOT / "fixtures" / "vocab_counts.tsv"
    named = embgeo.analyze(BASELINE, counts=counts, sections="frequency", reference=False)
    assert named.counts is not None
    given = embgeo.analyze(
        BASELINE, counts=np.asarray(named.counts), sections="frequency", reference=False
    )
    assert given["frequency.probe_auc"].value == named["frequency.probe_auc"].value  # type: ignore[union-attr]


def test_a_matrix_in_memory_takes_no_options_of_files() -> None:
    with refusal():
        embgeo.analyze(np.eye(5), tensor="x")
    with refusal():
        embgeo.diff(np.eye(5), np.eye(5), tensor="x")


def test_the_record_of_a_comparison_says_all_queries_in_a_word() -> None:
    W = np.random.default_rng(0).standard_normal((60, 8))
    asked = {"sections": "cosine", "reference": False}
    comparison = embgeo.diff(W, W + 1, queries="all", **asked)
    assert comparison.provenance["options"]["queries"] == "all"
    comparison = embgeo.diff(W, W + 1, queries=7, **asked)
    assert comparison.provenance["options"]["queries"] == 7


@pytest.mark.slow
def test_whatever_holds_a_matrix_is_compared(baseline: embgeo.Analysis, tmp_path: Path) -> None:
    baseline.save(tmp_path / "saved")
    W = np.random.default_rng(0).standard_normal((60, 8))
    by_path = embgeo.diff(BASELINE, COSREG, queries=0, **QUICK)
    of_analyses = embgeo.diff(baseline, tmp_path / "saved", COSREG, queries=0, **QUICK)
    assert by_path.pairs[0]["compare.cka"] == of_analyses.pairs[1]["compare.cka"]
    assert [m.name for m in by_path.members] == ["baseline", "cosreg"]
    of_arrays = embgeo.diff(W, W + 1, names=["a", "b"], queries="all", **QUICK)
    assert [m.name for m in of_arrays.members] == ["a", "b"]
    assert of_arrays.differences


def test_what_cannot_be_compared_is_refused() -> None:
    for inputs, settings in (
        ((BASELINE,), {}),
        ((np.eye(3),), {}),
        ((), {}),
        ((BASELINE, COSREG), {"names": ["a"]}),
        ((BASELINE, COSREG), {"queries": "x"}),
        ((np.eye(3), np.eye(3)), {"track": True}),
        ((BASELINE, COSREG), {"sections": "x"}),
    ):
        with refusal():
            embgeo.diff(*inputs, **settings)


@pytest.mark.slow
def test_rules_are_checked_like_the_command_does(baseline: embgeo.Analysis) -> None:
    passing = embgeo.gate(COSREG, rules="cosine.mean <= 0.1")
    assert passing.passed
    assert run(["gate", str(COSREG), "-r", "cosine.mean <= 0.1", "--quiet", "--no-config"]) == 0
    failing = embgeo.gate(BASELINE, rules=["cosine.mean <= 0.1"])
    assert not failing.passed
    assert "cosine.mean is 0.4673" in failing.checks[0].sentence
    of_memory = embgeo.gate(np.eye(30, dtype=np.float32), rules="cosine.mean <= 0.5")
    assert of_memory.passed
    relative = embgeo.gate(baseline, rules="tokens.long_rows change <= 1", baseline=baseline)
    assert relative.passed


@pytest.mark.usefixtures("outlines")
@pytest.mark.slow
def test_results_are_rendered(baseline: embgeo.Analysis, tmp_path: Path) -> None:
    page = embgeo.render(baseline, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == page
    baseline.save(tmp_path / "saved")
    assert embgeo.render(tmp_path / "saved") == page
    compared = embgeo.diff(BASELINE, COSREG, queries=0, **QUICK)
    assert "cosreg" in embgeo.render(compared)
    (tmp_path / "notes.txt").write_text("mine")
    with refusal():
        embgeo.render(baseline, tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_results_are_exported(baseline: embgeo.Analysis, tmp_path: Path) -> None:
    written = embgeo.export(baseline, "csv", tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv") in written.paths
    vectors = embgeo.export(baseline, "projector", tmp_path / "vectors", at_most=20)
    assert vectors.points == 20
    with refusal():
        embgeo.export(baseline, "xlsx")
    with refusal():
        embgeo.export(baseline, "csv", at_most=3)


def test_a_checkpoint_is_inspected() -> None:
    found = embgeo.inspect(BASELINE)
    assert found.tensors
    assert found.reason


def test_a_file_that_cannot_be_written_is_reported_of_its_folder(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        try:
            raise OSError(28, "No space left on device")
        except OSError as error:
            cause = f"cannot be written: {error.strerror}"
            raise embgeo.EmbgeoError(cause, where=folder / "arrays.npz") from error

    out = tmp_path / "out"
    with refusal():
        write_whole(out, fill, lambda _fresh, _folder: None)
    assert not any(tmp_path.iterdir())


# --- Charts of an analysis: ``analysis.plot`` -----------------------------------------------------


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return Analysis.of(sample())


def test_every_chart_of_one_analysis_is_a_method(analysis: Analysis) -> None:
    listed = dir(analysis.plot)
    assert {name.replace("_", "-") for name in listed} == {
        chart.name for chart in CHARTS if "analysis" in chart.pages and chart.least == 1
    }
    with refusal(AttributeError):
        _ = analysis.plot.spectra


@pytest.mark.slow
def test_a_plot_is_a_picture_and_its_numbers(analysis: Analysis, tmp_path: Path) -> None:
    plot = analysis.plot.spectrum()
    assert plot._repr_svg_().startswith("<svg")
    assert repr(plot).startswith("<Plot spectrum: Singular values")
    assert plot.save(tmp_path / "new" / "s.svg").read_text("utf-8") == plot.svg
    assert plot.save(tmp_path / "s.csv").read_text("utf-8") == plot.csv
    assert len(plot.csv.splitlines()) > 10
    with refusal(BadOption):
        plot.save(tmp_path / "s.pdf")


def test_a_chart_without_its_values_says_why(analysis: Analysis) -> None:
    bare = Analysis.of(without(analysis, "spectrum"))
    with refusal():
        bare.plot.spectrum()

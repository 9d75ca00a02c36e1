"""Pages name every field, number, option and method that there is, and nothing else."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import embgeo
from embgeo.callbacks import Monitor
from embgeo.cli.app import app
from embgeo.comparison.suspects import SuspectChange
from embgeo.comparison.track import Places
from embgeo.core.matrix import Frequency, Matrix, Origin
from embgeo.core.options import Options
from embgeo.core.quantities import compare, quantities_of
from embgeo.core.special import SpecialToken
from embgeo.core.suspects import Reason
from embgeo.core.values import Caveat, NoteCode
from embgeo.diagnosis.finding import State
from embgeo.diagnosis.findings import FINDINGS
from embgeo.metrics import SECTIONS
from embgeo.row_repair.methods import METHODS
from embgeo.row_repair.record import RepairRecord
from embgeo.rules.decide import STATES
from embgeo.rules.rule import Rule
from embgeo.workflows.analyze import name_output
from tests.support.compared import comparison, enter_pair
from tests.support.documents import FIRST_CELL, ROOT, blocks, list_fields
from tests.support.in_parts import in_parts
from tests.support.matrices import gaussian


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def list_written(value: Any, free: tuple[str, ...], path: str = "") -> Iterator[str]:
    """Dotted names of all fields; ``[]`` for entries of lists, ``*`` for keys that are labels."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            name = "*" if path in free else key
            yield from list_written(inner, free, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            for key, inner in item.items() if isinstance(item, dict) else ():
                yield from list_written(inner, free, f"{path}[].{key}")


# --- docs/analysis-json.md and docs/metrics.md ----------------------------------------------------

FREE = ("absent", "provenance.conventions", "provenance.masked", "scalars", "series[].y", "timing")
#: What has the fields that the document lists once, behind ``…``.
VALUES = ("scalars.*", *(f"{kind}[]" for kind in (
    "series", "histograms", "points", "columns", "tables", "halves")))  # fmt: skip
ARRAYS = {"rows", "tokens_utf8", "tokens_end", "counts", "popular"}
ARRAYS |= {
    "points/*",
    "columns/*",
    "halves/*",
    "nearest/*",
    "suspects/*",
    "treated/*",
    "treated_places/*",
}


@pytest.fixture(scope="module")
def full() -> embgeo.Analysis:
    """Every section, with every option that adds values; two rows are left out."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 6))
    rows[7] = 0.0
    rows[9] = rows[8]
    matrix = Matrix(
        rows,
        tokens=tuple(f"token {row}" for row in range(60)),
        frequency=Frequency("counts", np.arange(60, 0, -1.0), "made up"),
        masked={"padding beyond the vocabulary": np.array([59])},
        output=Matrix(rng.standard_normal((60, 5)), origin=Origin(tensor="out")),
        special=(SpecialToken("token 1", 1, ("bos",)), SpecialToken("token 7", 7, ("eos",))),
        vocabulary_size=59,
        tied_as_configured=True,
        hidden=Matrix(rng.standard_normal((40, 6)) + 2.0, origin=Origin(path="states.npy")),
    )
    listed = (("token 1", ("token 2",)),)
    options = Options(isotropy_rows=20, isotropy_runs=2, show_neighbors=listed)
    return embgeo.analyze(matrix, options=options)


@pytest.fixture(scope="module")
def bare() -> embgeo.Analysis:
    """Nothing known but the rows."""
    matrix = Matrix(np.random.default_rng(1).standard_normal((30, 4)))
    return embgeo.analyze(matrix, reference=False)


def test_every_field_of_an_analysis_is_documented_and_the_other_way_round(
    full: embgeo.Analysis, bare: embgeo.Analysis, tmp_path: Path
) -> None:
    listed = list_fields(page("analysis-json.md"))
    common = [field.removeprefix("…") for field in listed if field.startswith("…")]
    documented = [field for field in listed if not field.startswith("…")]
    documented += [f"{value}{field}" for value in VALUES for field in common]
    assert len(documented) == len(set(documented))
    # Enough rows for errors over tokens.
    whole = Matrix(np.random.default_rng(2).standard_normal((300, 4)))
    merged = in_parts(whole, [(0, 300)], sections=("spectrum",))
    analyses = (name_output(full, bare), bare, merged)
    written = {field for one in analyses for field in list_written(one.to_dict(), FREE)}
    # Of what was saved, of more rows than a test has, and of matrices that are decoded.
    others = {"arrays_sha256", "provenance.listed"}
    others |= {"provenance.decoded", "provenance.output.decoded"}
    assert set(documented) - ARRAYS - others == written
    stored: set[str] = set()
    for name, one in (("full", full), ("merged", merged)):
        one.save(tmp_path / name)
        with np.load(tmp_path / name / "arrays.npz", allow_pickle=False) as arrays:
            stored |= {re.sub("/.*", "/*", array) for array in arrays.files}
    assert stored == ARRAYS <= set(documented)


def test_every_word_of_a_field_is_documented() -> None:
    for field, words in (
        ("verdict.findings[].key", [finding.QUESTION.key for finding in FINDINGS]),
        ("verdict.state", get_args(State)),
        ("notes[].code", get_args(NoteCode)),
        ("suspects[].reason", get_args(Reason)),
        ("scalars.*.caveats", get_args(Caveat)),
    ):
        lines = page("analysis-json.md").splitlines()
        (line,) = (line for line in lines if line.startswith(f"| `{field}` |"))
        assert set(re.findall("`([^`]+)`", line)) - {field} == set(words)


def test_the_table_of_metrics_names_what_analyses_hold(
    full: embgeo.Analysis, bare: embgeo.Analysis
) -> None:
    rows = np.random.default_rng(3).standard_normal((800, 32))
    clump, cone, away = rows[:400, :8].copy(), rows.copy(), rows[:400, :8] - 0.5
    clump[:60] = 0.02 * clump[:60] + 0.1
    cone[:, 0] += 8.0
    cone[:150] = 0.01 * np.random.default_rng(4).standard_normal((150, 32))
    away[:40] = 0.15 * away[:40] + 2.0
    tokens = tuple(f"[unused{row}]" if row < 30 else f"token {row}" for row in range(400))
    counts = Frequency("counts", np.arange(1.0, 401.0), "made counts")
    clumped = Matrix(clump, tokens=tokens, frequency=counts, unreachable=(3,))
    analyses = [full, bare]
    for matrix in (clumped, Matrix(cone), Matrix(away)):
        analyses.append(embgeo.analyze(matrix, sections=["tokens"], reference=False))
    listed = FIRST_CELL.findall(page("metrics.md"))
    assert len(listed) == len(set(listed))
    held = {value.name for one in analyses for value in one.values()}
    # A vocabulary known by rank alone has ranks in place of counts; t-SNE is an option (`plane`).
    assert set(listed) - held == {"frequency.rank", "projection.tsne"}
    assert held <= set(listed)
    assert {name.partition(".")[0] for name in listed} == set(SECTIONS)


# --- docs/diff.md ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_field_and_number_of_a_comparison_is_documented(tmp_path: Path) -> None:
    """A track whose curves bend, of matrices that share some tokens."""
    runs = []
    cosines = np.maximum(0.0, 0.08 * (np.arange(20.0) - 9.0))
    for i, depth in enumerate(np.sqrt(cosines / (1.0 - cosines))):
        tokens = tuple(f"t{row + i % 2}" for row in range(40))
        W = gaussian(60, n=40) + depth + 1e-4 * gaussian(61 + i, n=40)
        sections = ("cosine", "tokens")
        runs.append(enter_pair(W, f"c-{i}", tokens=tokens, sections=sections, step=float(i)))
    found = comparison(*runs, track="made")
    places = (Places(0, np.zeros((40, 2), np.float32)),)
    change = SuspectChange(1, "zero", "input", True, ((0, "t0"),), (), ())
    tracked = replace(found, track=replace(found.track, places=places), suspects=(change,))
    text = page("diff.md")
    documented = [name for name in list_fields(text) if not name.startswith("compare.")]
    assert len(documented) == len(set(documented))
    # Values of a pair are described in docs/analysis-json.md.
    values = tuple(f"pairs[].{key}" for key in ("scalars", *(v[:-2] for v in VALUES[1:])))
    written = set(list_written(tracked.to_dict(), ("provenance.versions", "timing")))
    written = {name for name in written if not name.startswith(tuple(f"{v}[" for v in values))}
    written = {name for name in written if not name.startswith("pairs[].scalars.")}
    assert set(documented) - {"arrays_sha256"} == written
    known = {*quantities_of(compare)}
    assert set(re.findall(r"`(compare\.\w+)`", text)) == known
    assert {value.name for pair in tracked.pairs for value in pair.values()} == known
    tracked.save(tmp_path)
    with np.load(tmp_path / "arrays.npz") as stored:
        names = {re.sub(r"\d+-\d+", "A-B", name) for name in stored.files}
    pair = ("matching/first", "matching/second")
    assert names == {*(f"pairs/A-B/{name}" for name in pair), "track/places/0"}


# --- docs/gate.md ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_field_of_a_gate_is_documented() -> None:
    arguments = ["gate", "fixtures/baseline.pt", "--json", "--no-config"]
    arguments += ["-b", "fixtures/cosreg.safetensors", "-r", "cosine.mean change <= 5%"]
    with contextlib.chdir(ROOT):
        found = json.loads(CliRunner().invoke(app, arguments).stdout)
    text = page("gate.md")
    written = set(list_written(found, ("counts",)))
    documented = list_fields(text[text.index("## The JSON document") :])
    assert set(documented) == {f for f in written if not f.startswith("checks[].baseline.")}
    assert set(found["checks"][0]["baseline"]) == set(found["checks"][0]["measured"])
    assert list(found["counts"]) == list(STATES)
    assert all(f"`{state}`" in text for state in STATES)


def test_rules_options_and_snippets_of_the_gate_are_what_it_takes() -> None:
    text = page("gate.md")
    table = text[text.index("| rule | holds if |") :].partition("\n\n")[0]
    rules = [Rule.parse(rule) for rule in FIRST_CELL.findall(table)]
    assert {rule.sense for rule in rules} == {"value", "drop", "rise", "change"}
    shown = CliRunner().invoke(app, ["gate", "--help"]).output
    for name in {*re.findall(r"--([a-z][a-z-]+)", shown)} - {"help", "debug"}:
        assert f"--{name}" in text or f"`{name.removeprefix('no-')}`" in text, name
    found = {body.splitlines()[0].removeprefix("# "): yaml.safe_load(body)
             for body in blocks(ROOT / "docs/gate.md", "yaml")}  # fmt: skip
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    step = found[".github/workflows/embeddings.yml"]["jobs"]["gate"]["steps"][-1]
    assert set(step["with"]) <= set(action["inputs"])
    for rule in step["with"]["rules"].splitlines():
        Rule.parse(rule)
    (repository,) = found[".pre-commit-config.yaml"]["repos"]
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert [hook["id"] for hook in repository["hooks"]] == [hook["id"] for hook in hooks]
    (script,) = found[".gitlab-ci.yml"]["gate"]["script"]
    assert all(option in shown for option in re.findall(r"--[a-z-]+", script))


# --- docs/repair.md, docs/python.md, docs/formats.md ----------------------------------------------


def test_fields_and_methods_of_a_repair_are_named() -> None:
    text = page("repair.md")
    said = text[text.index("`embgeo-repair.json` in the copy records") :].partition("\n\n")[0]
    named = {"format", "format_version", *(one.name for one in fields(RepairRecord))}
    assert set(re.findall(r"`(\w+)`", said)) == named
    table = text[text.index("| `--method` |") : text.index("Every new row has")]
    assert re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)[1:] == list(METHODS)


def test_functions_and_arguments_of_python_are_named() -> None:
    text = page("python.md")
    rows = text[text.index("| argument of `Monitor` |") :].partition("\n\n")[0].splitlines()[2:]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == set(inspect.signature(Monitor).parameters)
    functions = {name for name in embgeo.__all__ if inspect.isroutine(getattr(embgeo, name))}
    first = text[: text.index("## From a file")]
    assert set(re.findall(r"`embgeo\.(\w+)`", first)) == functions | {"train"}


# --- docs/training.md, docs/regularizers.md -------------------------------------------------------


def test_methods_and_fields_of_trainings_are_named() -> None:
    pytest.importorskip("torch")
    from embgeo.training.methods import METHODS as TRAINED
    from embgeo.training.methods import REGULARIZERS
    from embgeo.training.settings import parse_settings
    from embgeo.training.study.record import STUDY
    from tests.support.sample_runs import sample_training

    text = page("training.md")
    methods = text[text.index("## What can be trained") :].partition("\n## ")[0]
    assert FIRST_CELL.findall(methods) == [*TRAINED]
    record = text[text.index("## training.json") :].partition("\n## ")[0]
    cells = re.findall(r"^\|(.*?)\|", record, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`([a-z_]+)`", cell)]
    assert named == list(STUDY.to_json(sample_training()))
    for settings in blocks(ROOT / "docs/training.md", "toml"):
        parse_settings(settings, "docs/training.md")
    names = [method.__name__ for method in REGULARIZERS]
    assert FIRST_CELL.findall(page("regularizers.md")) == names

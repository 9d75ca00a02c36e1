"""``embgeo export``: from folders and checkpoints to files, and what a user can get wrong."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.matrix import Frequency, Matrix, Origin
from tests.support import command
from tests.support.sample_analysis import sample

run, refused = partial(command.call, "export"), partial(command.refused, "export")


ROWS = np.random.default_rng(0).standard_normal((60, 6)).astype(np.float32)
ROWS[7] = 0.0
ROWS[9, 2] = np.nan
TOKENS = tuple(f"word{i}" for i in range(60))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a checkpoint, its labels and counts, and its analysis without two rows."""
    monkeypatch.chdir(tmp_path)
    np.save("W.npy", ROWS)
    Path("tokens.txt").write_text("\n".join(TOKENS) + "\n")
    Path("counts.tsv").write_text("".join(f"{t}\t{60 - i}\n" for i, t in enumerate(TOKENS)))
    matrix = embgeo.load("W.npy", tokens="tokens.txt", counts="counts.tsv")
    embgeo.analyze(matrix, reference=False).save(tmp_path / "W.embgeo")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "files"),
    [
        ("csv", {"W.csv", "W.csv.provenance.json", "W.csv.suspects.csv"}),
        ("latex", {"W.tex", "W.tex.provenance.json"}),
        ("parquet", {"W.parquet"}),
        ("projector", {"W.projector"}),
    ],
)
def test_every_target_writes_here_under_the_name_of_the_analysis(
    here: Path, target: str, files: set[str]
) -> None:
    before = {path.name for path in here.iterdir()}
    for source in ("W.embgeo", "W.embgeo/analysis.json"):  # and over what it wrote itself
        assert run(source, "--to", target).exit_code == 0
    assert {path.name for path in here.iterdir()} - before == files
    assert run("W.embgeo/analysis.json", "--to", target, "-o", "new/out", "-q").stdout == ""
    assert (here / "new/out").exists()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.usefixtures("here")
def test_tables_of_an_analysis_and_a_comparison_fit_the_page_of_the_venue() -> None:
    np.save("V.npy", ROWS + 0.5)
    embgeo.diff("W.npy", "V.npy").save("both.embgeo")
    for name in ("W", "both"):
        assert run(f"{name}.embgeo", "--to", "latex", "--venue", "acl").exit_code == 0
        assert (
            Path(f"{name}.tex")
            .read_text()
            .splitlines()[0]
            .endswith(f"; {name}.tex.provenance.json says how")
        )
    Path("paper.tex").write_text(
        "\\documentclass[11pt,twocolumn]{article}\n\\usepackage{booktabs}\n"
        "\\setlength{\\textwidth}{6.3in}\\setlength{\\columnsep}{.24in}\n"
        "\\begin{document}\\input{W}\\input{both}\\end{document}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    ended = subprocess.run(command, capture_output=True, timeout=120, check=False)
    log = Path("paper.log").read_text("latin-1")
    assert ended.returncode == 0, log[-2000:]
    assert "Overfull" not in log


def test_the_projector_gets_the_kept_rows_of_the_analyzed_checkpoint(here: Path) -> None:
    result = run("W.embgeo", "--to", "projector", "-o", "p")
    assert result.exit_code == 0, result.output
    kept = [i for i in range(60) if i not in (7, 9)]
    assert np.array_equal(np.loadtxt("p/tensors.tsv", dtype=np.float32), ROWS[kept])
    with open("p/metadata.tsv", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert [row["token"] for row in rows] == [TOKENS[i] for i in kept]
    assert [int(row["count"]) for row in rows] == [60 - i for i in kept]
    assert [row["class"] for row in rows].count("frequent") == 12
    norms = np.linalg.norm(ROWS[kept].astype(np.float64), axis=1)
    assert [float(row["tokens.norm"]) for row in rows] == pytest.approx(norms, rel=1e-8)
    record = json.loads((here / "p/provenance.json").read_text())
    assert record["analysis"]["file"] == "W.npy"
    assert record["columns"]["tokens.norm"]["meaning"]
    again = embgeo.load("p/tensors.tsv", tokens="p/metadata.tsv")
    assert again.tokens == tuple(TOKENS[i] for i in kept)


def test_fewer_points_are_spread_over_the_frequencies(here: Path) -> None:
    assert run("W.embgeo", "--to", "projector", "--at-most", "10", "-o", "p").exit_code == 0
    lines = (here / "p/metadata.tsv").read_text().splitlines()[1:]
    assert len(lines) == 10
    assert lines[0].startswith("word0\t")
    assert lines[-1].startswith("word59\t")
    assert [line.split("\t")[-1] for line in lines].count("frequent") == 2


def test_a_checkpoint_that_was_moved_or_changed(here: Path) -> None:
    (here / "elsewhere").mkdir()
    (here / "W.npy").rename(here / "elsewhere/W.npy")
    refused("W.embgeo", "--to", "projector")
    moved = ("--checkpoint", "elsewhere/W.npy")
    assert run("W.embgeo", "--to", "projector", *moved).exit_code == 0
    np.save("elsewhere/W.npy", 2 * ROWS)
    refused("W.embgeo", "--to", "projector", *moved)


def test_more_points_than_the_projector_shows(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embgeo.publish.export.projector.SHOWN_POINTS", 50)
    result = run(here / "W.embgeo", "--to", "projector")
    assert "note: the projector shows the first 50 points of 58; --at-most" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowhere", "--to", "csv"),
        ("W.npy", "--to", "csv"),
        ("nowhere", "--to", "projector"),
        ("W.embgeo", "--to", "csv", "--bytes"),
        ("W.embgeo", "--to", "csv", "--at-most", "3"),
        ("W.npy", "--to", "projector"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_a_user_can_get_wrong(arguments: tuple[str, ...]) -> None:
    refused(*arguments)


@pytest.mark.parametrize("target", ["csv", "parquet", "projector"])
def test_what_others_made_is_not_written_over(here: Path, target: str) -> None:
    own = here / "own"
    own.write_text("mine")
    refused("W.embgeo", "--to", target, "-o", own)
    (here / "folder").mkdir()
    (here / "folder/mine.txt").write_text("mine")
    refused("W.embgeo", "--to", target, "-o", here / "folder")
    refused("W.embgeo", "--to", target, "-o", own / "deeper")
    refused("W.embgeo", "--to", target, "-o", here / ("x" * 300))


@pytest.mark.usefixtures("here")
def test_nothing_is_left_behind_where_writing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("embgeo.publish.export.csv_file.csv_lines", full)
    refused("W.embgeo", "--to", "csv")


def test_an_array_in_memory_has_no_checkpoint(here: Path) -> None:
    matrix = Matrix(
        ROWS[10:], origin=Origin(), frequency=Frequency("rank", np.arange(50, 0, -1.0), "")
    )
    embgeo.analyze(matrix, reference=False).save(here / "memory")
    refused("memory", "--to", "projector")
    assert run("memory", "--to", "csv").exit_code == 0
    assert (here / "memory.csv").read_text().startswith("row,rank,popular,")


def test_hostile_tokens_through_every_target(here: Path) -> None:
    sample(hostile=True).save(here / "hostile")
    for target in ("csv", "parquet"):
        result = run("hostile", "--to", target)
        assert result.exit_code == 0, result.output

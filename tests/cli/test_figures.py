"""``embgeo figures``: from folders to files, and everything a user can get wrong."""

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
from embgeo.charts import CHARTS
from embgeo.charts.items import ChartItem
from embgeo.core.errors import BadOption
from embgeo.publish.latex.latex_table import latex_text
from embgeo.result.analysis import load_analysis
from embgeo.workflows.figures import load_items
from tests.support import command, sampling
from tests.support.paper_samples import add_neighbors, save_analyses, write_log
from tests.support.refusals import refusal
from tests.support.sample_analysis import HOSTILE, sample, with_scalar
from tests.support.sample_comparison import sample_comparison
from tests.support.sampling import sample_cases

run, refused = partial(command.call, "figures"), partial(command.refused, "figures")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two analyses, one that knows no frequencies, and two runs."""
    folder = tmp_path_factory.mktemp("results")
    save_analyses(
        folder,
        baseline=add_neighbors(sample(n=120), ("tok1", ("tok2",))),
        regularized=add_neighbors(sample("isotropic", n=120), ("tok1", ("tok2",))),
        bare=sample(n=120, counts=False, untied=False),
    )
    for name, rate in (("slow", 1.0), ("fast", 2.0)):
        write_log(folder / name, [{"step": i, "cosine.mean": rate * i} for i in range(10)])
    return folder


@pytest.fixture
def in_home(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(home)
    return tmp_path / "out"


#: What ordinary runs draw of all figures; the page of the command draws every one of them.
SOME = ("scatter", "spectrum", "cosines", "subspaces", "norms-by-frequency")


@pytest.mark.slow
def test_everything_that_can_be_drawn_is_drawn(
    in_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    charts = [chart for chart in CHARTS if sampling.AT_NIGHT or chart.name in SOME]
    monkeypatch.setattr("embgeo.workflows.figures.CHARTS", tuple(charts))
    result = run("baseline", "regularized", "bare", "--venue", "acl", "-o", in_home)
    assert result.exit_code == 0, result.output
    names = {path.stem for path in in_home.glob("*.pdf")}
    items = [ChartItem(label, load_analysis(Path(label))) for label in ("baseline", "bare")]
    assert names == {chart.name for chart in charts if chart.specify(items) is not None}
    assert {"scatter", "spectrum", "cosines", "subspaces"} <= names
    assert {path.stem for path in in_home.glob("*.tex")} == {"numbers", "isotropy", "neighbors"}
    assert "note: left out bare: no token frequencies were given" in result.stdout
    assert "training" not in result.stdout
    for path in in_home.glob("*.json"):
        record = json.loads(path.read_text("utf-8"))
        assert record["format"] == "embgeo.figure"
        assert record["name"] == path.stem
        assert record["sources"][0]["label"] == "baseline"
        assert record["sources"][0]["sha256"] == "0" * 64
        assert "embgeo" in record["versions"]
        assert all((in_home / name).is_file() for name in record["files"])
        if "width" in record:
            in_a_row = next(c for c in charts if c.name == path.stem).one_row
            assert record["width"] == (6.30 if in_a_row else 3.03)
            assert record["caption"]
    assert not list(in_home.glob(".*"))


@pytest.mark.slow
def test_tracks_make_a_film_and_labels_name_the_runs(tmp_path: Path) -> None:
    track = sample_comparison(members=3, track=True)
    paths = [tmp_path / "a.embgeo", tmp_path / "b.embgeo"]
    for path in paths:
        track.save(path)
    labels = ("--label", "MLE", "--label", "CosReg")
    out = tmp_path / "out"
    result = run(*paths, "--figure", "film", *labels, "--format", "svg", "-o", out)
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == {
        "film.svg", "film.gif", "film.csv", "film.json",
    }  # fmt: skip
    assert (out / "film.gif").read_bytes().startswith(b"GIF89a")
    record = json.loads((out / "film.json").read_text("utf-8"))
    assert "film.gif" in record["files"]
    with (out / "film.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(dict.fromkeys(row["run"] for row in rows)) == ["MLE", "CosReg"]
    assert list(dict.fromkeys(row["step"] for row in rows)) == ["500.0", "1000.0", "1500.0"]
    refused(*paths, "--figure", "film", "--label", "MLE", "-o", tmp_path / "other")
    (out / "film.json").unlink()
    refused(paths[0], "--figure", "film", "-o", out)


@pytest.mark.slow
def test_two_runs_give_the_same_bytes(in_home: Path) -> None:
    wanted = ("--figure", "spectrum", "--table", "isotropy")
    formats = ("--format", "pdf", "--format", "png")
    contents = []
    for _ in range(2):
        assert run("baseline", "regularized", *wanted, *formats, "-o", in_home).exit_code == 0
        contents.append({path.name: path.read_bytes() for path in in_home.iterdir()})
    assert contents[0] == contents[1]
    assert len(contents[0]) == (2 + 2) + 3


@pytest.mark.parametrize(
    ("options", "width"),
    sample_cases(
        [
            ((), 5.5),
            (("--venue", "neurips"), 5.5),
            (("--venue", "icml"), 3.25),
            (("--venue", "icml", "--text"), 6.75),
            (("--venue", "acl", "--column"), 3.03),
            (("--venue", "acl", "--text"), 6.3),
            (("--width", "2.5"), 2.5),
        ],
        2,
    ),
)
@pytest.mark.slow
def test_widths(in_home: Path, options: tuple[str, ...], width: float) -> None:
    result = run("baseline", "--figure", "spectrum", *options, "-o", in_home, "--json")
    assert json.loads(result.stdout)[0]["width"] == width
    content = (in_home / "spectrum.pdf").read_bytes()
    box = content.split(b"/MediaBox [", 1)[1].split(b"]", 1)[0].split()
    assert float(box[2]) == pytest.approx(72 * width, abs=0.01)


@pytest.mark.slow
def test_python_draws_the_same_bytes(in_home: Path) -> None:
    assert run("baseline", "--figure", "cone", "--venue", "acl", "-o", in_home).exit_code == 0
    drawn = embgeo.figures(
        load_analysis(Path("baseline")), figure="cone", venue="acl", label=["baseline"]
    )
    assert drawn.files["cone.pdf"] == (in_home / "cone.pdf").read_bytes()
    assert drawn.files["cone.csv"] == (in_home / "cone.csv").read_bytes()
    with refusal(BadOption):
        embgeo.figures("baseline", figure="cone", color="none")


@pytest.mark.slow
def test_a_sweep_by_names_and_by_values(home: Path, in_home: Path) -> None:
    base = sample(n=60)
    paths = []
    for beta, distance in ((0.0, 0.98), (0.5, 0.3), (1.0, 0.1)):
        changed = with_scalar(base, "subspace.distance", value=distance)
        paths += save_analyses(home, **{f"beta={beta}": changed})
    assert run(*paths, "--parameter", "beta", "--figure", "sweep", "-o", in_home).exit_code == 0
    with (in_home / "sweep.csv").open(newline="") as stream:
        found = [(row["beta"], row["value"]) for row in csv.DictReader(stream)]
    assert found == [("0.0", "0.98"), ("0.5", "0.3"), ("1.0", "0.1")]


@pytest.mark.slow
def test_training_curves_of_runs(in_home: Path) -> None:
    result = run("slow", "fast/metrics.jsonl", "-o", in_home)
    assert result.exit_code == 0, result.output
    assert "left out" not in result.stdout
    with (in_home / "training.csv").open(newline="") as stream:
        last = {row["run"]: row["value"] for row in csv.DictReader(stream)}
    assert last == {"slow": "9.0", "fast": "18.0"}


@pytest.mark.slow
def test_labels_are_what_the_user_calls_them(in_home: Path) -> None:
    assert run("baseline", "bare", "--label", "$x$", "--label", "日本", "-o", in_home,
               "--figure", "spectrum", "--table", "isotropy").exit_code == 0  # fmt: skip
    record = json.loads((in_home / "spectrum.json").read_text("utf-8"))
    assert [source["label"] for source in record["sources"]] == ["$x$", "日本"]
    assert r"\textdollar{}x\textdollar{} &" in (in_home / "isotropy.tex").read_text("utf-8")


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("first", "second"):
        sample(n=60).save(tmp_path / name / "model.embgeo")
    found = load_items([tmp_path / "first/model.embgeo", tmp_path / "second/model.embgeo"])
    assert [s.label for s in found] == ["first/model", "second/model"]
    (tmp_path / "second").rename(tmp_path / "beta=2")
    found = load_items(
        [tmp_path / f"{name}/model.embgeo" for name in ("first", "beta=2")], (), "beta"
    )
    assert [s.x for s in found] == [None, 2.0]


def test_what_a_user_can_get_wrong(in_home: Path) -> None:
    for arguments in (
        ("nowhere",),
        (".",),
        ("baseline", "--figure", "x"),
        ("baseline", "--table", "x"),
        ("bare", "--figure", "norms-by-frequency"),
        ("baseline", "--figure", "sweep"),
        ("slow", "--figure", "scatter"),
        ("bare", "--table", "neighbors"),
        ("baseline", "--parameter", "beta"),
        ("baseline", "--label", "a", "--label", "b"),
        ("baseline", "--width", "3", "--venue", "acl"),
        ("baseline", "--width", "3", "--text"),
        ("slow", "--scalar", "no.such"),
        ("baseline", "--figure", "cosines", "--color", "none"),
        ("baseline", "--figure", "cosines", "--free-axes"),
        ("baseline", "--annotate", "tok"),
        ("baseline", "--figure", "cosines", "--signs", "one"),
        ("baseline", "--table", "isotropy", "--format", "svg"),
        ("baseline", "--table", "isotropy", "--text"),
    ):
        refused(*arguments, "-o", in_home)
        assert not in_home.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("bare", "--color", "frequency"),
        ("baseline", "slow", "--scalar", "no.such"),
    ],
)
@pytest.mark.slow
def test_what_changes_none_of_the_figures_that_can_be_made(
    in_home: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known once all others are drawn, and these are few here."""
    few = tuple(chart for chart in CHARTS if chart.name in ("scatter", "spectrum", "sweep"))
    monkeypatch.setattr("embgeo.workflows.figures.CHARTS", few)
    refused(*arguments, "-o", in_home)
    assert not in_home.exists()


def test_a_damaged_analysis_is_named(in_home: Path, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "analysis.json").write_text("{")
    refused(tmp_path / "bad", "-o", in_home)
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "metrics.jsonl").write_text("x\n")
    refused(tmp_path / "log", "-o", in_home)


@pytest.mark.slow
def test_what_others_made_is_not_written_over(in_home: Path) -> None:
    in_home.mkdir()
    own = in_home / "spectrum.pdf"
    own.write_text("drawn by hand")
    (in_home / "paper.tex").write_text("mine")
    refused("baseline", "--figure", "spectrum", "-o", in_home)
    assert own.read_text() == "drawn by hand"
    assert run("baseline", "--figure", "cosines", "-o", in_home).exit_code == 0
    assert run("baseline", "--figure", "cosines", "-o", in_home).exit_code == 0
    (in_home / "cosines.json").write_text('{"format": "something else"}')
    refused("baseline", "--figure", "cosines", "-o", in_home)
    assert (in_home / "paper.tex").read_text() == "mine"


@pytest.mark.slow
def test_a_file_in_the_place_of_the_folder(in_home: Path) -> None:
    in_home.write_text("x")
    refused("baseline", "--figure", "spectrum", "-o", in_home)
    refused("baseline", "--figure", "spectrum", "-o", in_home / "deeper")
    refused("baseline", "--figure", "spectrum", "-o", in_home.parent / ("x" * 300))


def test_a_date_of_the_environment_that_is_none(
    in_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for epoch in ("today", "9" * 20):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        refused("baseline", "--figure", "spectrum", "-o", in_home)


#: What ordinary runs draw with hostile names; tests/charts draws every chart with them.
HOSTILE_FEW = ("--figure", "scatter", "--figure", "spectrum", "--table", "neighbors")


@pytest.mark.parametrize(
    ("form", "few"), sample_cases([("pdf", HOSTILE_FEW), ("pdf", ()), ("svg", ())], 3)
)
@pytest.mark.slow
def test_hostile_names_and_tokens_in_everything(
    in_home: Path, tmp_path: Path, form: str, few: tuple[str, ...]
) -> None:
    names = ["$a_b$", "50% & more", "日本", "_x", "‮evil"]
    words = [(token, (HOSTILE[1],)) for token in HOSTILE[:3]]
    for i, name in enumerate(names):
        add_neighbors(sample(n=60, hostile=True, seed=i), *words).save(tmp_path / "in" / name)
    paths = [tmp_path / "in" / name for name in names]
    result = run(*paths, "--format", form, *few, "-o", in_home, "--venue", "acl")
    assert result.exit_code == 0, result.output
    assert result.stdout.replace("\n", "").isprintable()


def compared(folder: Path, track: bool) -> Path:
    """A comparison of two matrices, saved."""
    from embgeo.comparison.comparison import Comparison, Member
    from embgeo.comparison.track import Curve, Track

    people = tuple(
        Member(f"ckpt-{step}", f"runs/ckpt-{step}.pt", sample(n=60, seed=step), step=step)
        for step in (1, 2)
    )
    mean = sample().find_scalar("cosine.mean")
    assert mean is not None
    curves = (
        Curve(mean.quantity, "", (0.1, 0.4), (None, None)),
        Curve(mean.quantity, "previous", (None, 0.2), (None, None)),
        Curve(mean.quantity, "first", (None, None), (None, None)),
    )
    whole = Track((1.0, 2.0), "names", curves) if track else None
    Comparison({}, people, track=whole).save(folder)
    return folder


@pytest.mark.slow
def test_a_comparison_stands_for_its_members(in_home: Path, tmp_path: Path) -> None:
    folder = compared(tmp_path / "two", track=False)
    found = load_items([folder])
    assert [(s.label, s.x) for s in found] == [("ckpt-1", 1.0), ("ckpt-2", 2.0)]
    assert all(s.analysis is not None for s in found)
    assert run(folder, "--figure", "spectrum", "-o", in_home).exit_code == 0


@pytest.mark.slow
def test_a_track_is_a_run_too(in_home: Path, tmp_path: Path) -> None:
    folder = compared(tmp_path / "run", track=True)
    step_curves = load_items([folder])[-1].step_curves
    assert {name: (c.steps.tolist(), c.values.tolist()) for name, c in step_curves.items()} == {
        "cosine.mean": ([1, 2], [0.1, 0.4]),
        "cosine.mean.previous": ([2], [0.2]),
    }
    result = run(folder, "--figure", "training", "--figure", "scatter", "-o", in_home)
    assert result.exit_code == 0, result.output
    assert "left out" not in result.stdout


@pytest.mark.slow
def test_checkpoints_of_two_runs_carry_the_labels_of_their_runs(tmp_path: Path) -> None:
    folders = [compared(tmp_path / name, track=True) for name in ("a", "b")]
    found = load_items(folders, ["MLE", "CosReg"])
    assert [item.label for item in found if item.analysis] == [
        f"{run}, step {step}" for run in ("MLE", "CosReg") for step in (1, 2)
    ]
    assert [item.label for item in found if item.track] == ["MLE", "CosReg"]
    single = next(folders[1].glob("0-*"))
    assert [item.label for item in load_items([folders[0], single], ["MLE", "alone"])][-2:] == [
        "MLE",
        "alone",
    ]
    # Of one run the checkpoints keep their names.
    assert [item.run for item in load_items(folders[:1])] == ["", "", ""]


def has_pgf() -> bool:
    if shutil.which("pdflatex") is None or shutil.which("kpsewhich") is None:
        return False
    return (
        subprocess.run(["kpsewhich", "pgf.sty"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not has_pgf(), reason="pdflatex with pgf is not installed")
@pytest.mark.slow
def test_pgf_compiles_whatever_the_labels(in_home: Path) -> None:
    names = ("--label", r"\input{x} $\n", "--label", "50% _日")
    result = run("baseline", "regularized", *names, "--figure", "spectrum", "--figure", "scatter",
                 "--figure", "partition", "--format", "pgf", "-o", in_home)  # fmt: skip
    assert result.exit_code == 0, result.output
    (in_home / "paper.tex").write_text(
        "\\documentclass{article}\n\\usepackage{pgf}\n"
        "\\begin{document}\n"
        "\\input{spectrum.pgf}\n\\input{scatter.pgf}\n\\input{partition.pgf}\n\\end{document}\n"
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=in_home, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout.decode("latin-1")[-1500:]
    for name in ("spectrum", "scatter", "partition"):
        assert latex_text("") not in (in_home / f"{name}.pgf").read_text()


def test_numbers_of_the_analysis_reach_the_table(in_home: Path) -> None:
    assert run("regularized", "--table", "isotropy", "-o", in_home).exit_code == 0
    with (in_home / "isotropy.csv").open(newline="") as stream:
        found = {row["name"]: float(row["value"]) for row in csv.DictReader(stream)}
    i1 = sample("isotropic", n=120).find_scalar("isotropy.i1")
    assert i1 is not None
    assert found["isotropy.i1"] == pytest.approx(np.float64(i1.value))

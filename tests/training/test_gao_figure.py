"""``embgeo train --experiment gao-figure-1``: Figure 1 of Gao et al. 2019."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tomli_w")

from safetensors.numpy import save_file

import embgeo
from embgeo.cli.app import run
from embgeo.training.study.gao_figure import MatrixNumbers, decide_limits, tabulate_panels
from embgeo.workflows.gao_figure import prepare_gao_figure
from tests.training.test_images import settings, write_idx

MEAN, POSITIVE = "cosine.mean", "cosine.positive_share"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cone of words as a checkpoint, rows around the origin as an analysis, and three classes."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    words = generator.standard_normal((60, 4))
    save_file({"embedding.weight": (words + 4.0).astype(np.float32)}, "mt.safetensors")
    sections = ("cosine", "spectrum", "projection")
    embgeo.analyze(words, sections=sections, reference=False).save(Path("w2v"))
    np.save("classes.npy", np.array([[2.0, 0.0, 1.0, 0.0], [-1.0, 2.0, 0, 0], [-1.0, -2.0, 0, 0]]))
    return tmp_path


GIVEN = [
    "train",
    "--experiment",
    "gao-figure-1",
    "-o",
    "out",
    "--set",
    "translation=mt.safetensors",
]
GIVEN += ["--set", "words=w2v"]


@pytest.mark.slow
def test_one_command_measures_and_draws(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [*GIVEN, "--set", "classes=classes.npy"]
    assert run(given) == 0
    shown = capsys.readouterr().out
    assert "not decidable: Rows of word2vec are spread" in shown
    record = json.loads((place / "out" / "experiment.json").read_text("utf-8"))
    translation, words, classes = record["matrices"]
    assert translation["numbers"][POSITIVE] == 1.0
    W = np.random.default_rng(0).standard_normal((60, 4))
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(60, 1)]
    assert words["numbers"][MEAN] == pytest.approx(cosines.mean(), abs=1e-12)
    assert words["numbers"][POSITIVE] == pytest.approx((cosines > 0).mean(), abs=1e-12)
    s = np.linalg.svd(W, compute_uv=False)
    share = words["numbers"]["spectrum.top_share"]
    assert share == pytest.approx(s[0] ** 2 / np.sum(s**2), rel=1e-9)
    assert (classes["rows"], classes["columns"]) == (3, 4)
    assert classes["numbers"][POSITIVE] == 0.0
    page = (place / "out" / "report.html").read_text("utf-8")
    assert "−0.5" in page  # −1/(C − 1)
    assert "positive “for almost all cases”" in page
    made = {path.name for path in (place / "out" / "figures").iterdir()}
    assert made == {f"gao-figure-1.{end}" for end in ("csv", "json", "pdf", "svg")}
    assert run(given) == 2
    assert "holds runs; resume them with --resume" in capsys.readouterr().err
    np.save("classes.npy", np.eye(4) + 1.0)
    assert run([*given, "--resume", "-q"]) == 0
    record = json.loads((place / "out" / "experiment.json").read_text("utf-8"))
    assert record["matrices"][2]["rows"] == 4
    assert record["matrices"][2]["numbers"][POSITIVE] == 1.0
    assert run([*GIVEN, "--set", "classes=w2v", "--resume", "-q"]) == 2
    assert "other settings" in capsys.readouterr().err


@pytest.mark.slow
def test_finished_runs_are_taken_with_their_seeds(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embgeo.report.page.CHARTS", ())
    tables = settings(write_idx(place)).tables()
    tables = {name: tables[name] for name in ("data", "task", "model", "optimizer", "training")}
    tables["training"]["epochs"] = 1
    embgeo.train(preset="digits-cpu", out=place / "runs", settings=tables, seeds=2)
    sources = {"words": "w2v", "classes": "runs"}
    for resume in (False, True):
        task = prepare_gao_figure(settings=sources, out="out")
        record, subjects = task.measure(resume=resume)
        assert [(one.panel, one.seed) for one in record.matrices] == [
            ("words", 0), ("classes", 0), ("classes", 1),
        ]  # fmt: skip
        assert len(subjects) == 2


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--set", "classes=nothing"], "classes names nothing, which is not there"),
        (["--set", "class=w2v"], "did you mean classes?"),
        (["--data", "w2v"], "has data of three tasks"),
        (["--set", "words=", "--set", "translation="], "nothing to compare the classes with"),
        (["--set", "words=", "--set", "words_data=w2v"], "give --set wordsim=FOLDER, too"),
    ],
)
def test_mistakes(extra: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GIVEN, *extra]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
    assert not Path("out").exists()


def numbers(panel: str, values: list[float], share: float) -> list[MatrixNumbers]:
    return [
        MatrixNumbers(panel, seed, "x", 10, 8, {MEAN: value, POSITIVE: share + seed * 1e-3})
        for seed, value in enumerate(values)
    ]


def test_claims_are_decided_over_seeds() -> None:
    matrices = [
        *numbers("translation", [0.30, 0.31, 0.33], 0.80),
        *numbers("words", [0.1, 0.9, 0.2], 0.5),
        *numbers("classes", [-0.1, -0.09, -0.11], 0.3),
    ]
    found = decide_limits(matrices)
    assert [one.verdict for one in found] == [
        "reproduced", "not reproduced", "not decidable", "reproduced", "reproduced",
    ]  # fmt: skip
    assert [one.seeds for one in found] == [3] * 5
    assert "(95 %: " in found[0].reason
    assert found[2].limit == pytest.approx(np.mean([0.30, 0.31, 0.33]))
    few = decide_limits(numbers("classes", [-0.1, -0.1], 0.3))
    assert {one.verdict for one in few} == {"not decidable"}
    assert few[0].reason == "a panel is missing"
    assert few[3].reason == "−0.1 against 0, 2 of at least 3 seeds"
    head, *rows = tabulate_panels(matrices)
    assert [row[0] for row in rows] == ["translation", "word2vec", "classes of a CNN"]
    assert rows[2][head.index("mean cosine")] == "−0.100 ± 0.010"
    assert rows[2][-1] == "−0.111"

"""Both matrices of an untied model are judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from tests.support.command import call

ISOTROPIC = np.random.default_rng(0).standard_normal((300, 8)).astype("f4")
CONE = (np.random.default_rng(1).standard_normal((300, 8)) + 3).astype("f4")
FEW = ["--sections", "cosine,subspace"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file({"embed_tokens.weight": ISOTROPIC, "lm_head.weight": CONE}, path)
    return path


def run(*arguments: object) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("target", ["model.safetensors", "."])
@pytest.mark.usefixtures("model")
def test_a_result_has_the_name_of_the_link_that_was_given(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to(tmp_path / target)
    run("analyze", "link", *FEW, "-q")
    assert Path("link.embgeo").is_dir()
    Path("saved").symlink_to("link.embgeo")
    run("diff", "saved", "link", "-q")
    assert Path("saved-vs-link.embgeo").is_dir()


def test_the_output_matrix_has_its_own_analysis_and_is_named_in_the_first(
    model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    text = run("analyze", model, "-o", out, *FEW)
    own = embgeo.load_analysis(out / "output")
    alone = embgeo.analyze(model, tensor="lm_head.weight", sections="cosine")
    assert own["cosine.mean"] == float(alone["cosine.mean"]) > 0.8
    assert f"Output matrix lm_head.weight – {own.verdict.headline}" in text
    assert own.verdict.state == "degenerate"
    first = embgeo.load_analysis(out)
    assert first.verdict.state != "degenerate"
    stated = json.loads((out / "analysis.json").read_text())["provenance"]["output"]["verdict"]
    assert stated == {"state": "degenerate", "headline": own.verdict.headline}
    assert not [note for note in first.notes if note.code == "output"]
    page = (out / "report.html").read_text("utf-8")
    assert own.verdict.headline in page
    assert 'href="output/report.html"' in page
    assert (out / "output" / "report.html").is_file()


def test_an_earlier_output_does_not_stay(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("analyze", model, "-o", out, *FEW)
    (out / "output" / "mine.txt").write_text("kept")
    run("analyze", model, "-o", out, "--output", "none", *FEW)
    assert [path.name for path in (out / "output").iterdir()] == ["mine.txt"]
    assert embgeo.load_analysis(out).provenance["output"] is None


def test_what_is_about_both_is_measured_once(model: Path, tmp_path: Path) -> None:
    run("analyze", model, "-o", tmp_path / "out", "--sections", "subspace")
    assert not (tmp_path / "out" / "output").exists()

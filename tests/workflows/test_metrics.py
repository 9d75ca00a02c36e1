"""Numbers of the user's own in an analysis, and in all that reads one."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import BadOption, EmbgeoError, UnreadableFile
from tests.support.command import call, refused
from tests.support.refusals import refusal

MEDIAN_NORM = embgeo.Quantity("mine.median_norm", "Median norm", "Half of the rows are shorter.")


def median_norm(W: embgeo.Matrix) -> embgeo.Scalar:
    norms = [np.linalg.norm(rows, axis=1) for _, rows in W.blocks(step=7)]
    return MEDIAN_NORM.measured(float(np.median(np.concatenate(norms))))


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((40, 6))


def test_a_number_of_ones_own_is_a_number_like_any_other(X: np.ndarray, tmp_path: Path) -> None:
    expected = float(np.median(np.linalg.norm(X, axis=1)))
    analysis = embgeo.analyze(X, sections="cosine", reference=False, metrics=[median_norm])
    assert analysis.scalar("mine.median_norm").value == pytest.approx(expected, rel=1e-12)
    analysis.save(tmp_path)
    saved = embgeo.load_analysis(tmp_path)
    assert saved["mine.median_norm"] == analysis["mine.median_norm"]
    assert embgeo.gate(saved, rules=f"mine.median_norm <= {expected + 1e-9}").passed
    assert not embgeo.gate(saved, rules=f"mine.median_norm < {expected - 1e-9}").passed
    other = embgeo.analyze(2 * X, sections="cosine", reference=False, metrics=median_norm)
    difference = embgeo.diff(saved, other)["mine.median_norm"].difference
    assert difference == pytest.approx(expected, rel=1e-12)
    assert "Half of the rows are shorter." in embgeo.render(saved)


def test_a_scalar_is_a_number_or_refused(X: np.ndarray) -> None:
    analysis = embgeo.analyze(X, sections="cosine", reference=False)
    assert float(analysis.scalar("cosine.mean")) == analysis.scalar("cosine.mean").value
    for name in ("cosine.histogram", "cosine.nothing", "spectrum.effective_rank"):
        with refusal(EmbgeoError):
            analysis.scalar(name)


def test_metrics_that_are_none(X: np.ndarray) -> None:
    taken = embgeo.Quantity("cosine.mine", "Mine", "")
    shapeless = embgeo.Quantity("mine", "Mine", "")
    for metric in (
        lambda _: 1.0,
        lambda _: taken.measured(1.0),
        lambda _: shapeless.measured(1.0),
        "nothing",
        3,
    ):
        with refusal(BadOption):
            embgeo.analyze(X, sections="cosine", metrics=[metric])
    with refusal(BadOption):
        embgeo.analyze(X, sections="cosine", metrics=[median_norm, median_norm])
    with refusal(EmbgeoError):
        embgeo.analyze(X, sections="cosine", metrics=lambda W: W.nothing)


def test_a_saved_name_of_a_family_of_embgeo_is_not_ones_own(X: np.ndarray, tmp_path: Path) -> None:
    embgeo.analyze(X, sections="cosine", metrics=median_norm, reference=False).save(tmp_path)
    text = (tmp_path / "analysis.json").read_text()
    (tmp_path / "analysis.json").write_text(text.replace("mine.median_norm", "cosine.median_norm"))
    with refusal(UnreadableFile):
        embgeo.load_analysis(tmp_path)


def test_an_installed_metric_is_named_by_its_entry_point(
    X: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [
        EntryPoint("median-norm", f"{__name__}:median_norm", "embgeo.metrics"),
        EntryPoint("broken", "embgeo_no_such_package:metric", "embgeo.metrics"),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: entries)
    monkeypatch.chdir(tmp_path)
    np.save("W.npy", X)
    sections = ("--sections", "cosine", "--no-reference")
    assert call("analyze", "W.npy", *sections, "--metric", "median-norm").exit_code == 0
    assert "mine.median_norm" in embgeo.load_analysis("W.embgeo")
    refused("analyze", "W.npy", "--metric", "median_norm")
    refused("analyze", "W.npy", "--metric", "broken")
    refused("analyze", "W.npy", "--metric", "median-norm", "--engine", "dask")

"""``benchmarks/gpu.py`` at a tiny size, where there is no GPU."""

from __future__ import annotations

import json

import pytest

from benchmarks import gpu
from benchmarks.harness.matrices import Shape
from embgeo.stats.backend import torch as backend
from tests.support.devices import WIDE


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(gpu, "SMALL", Shape(150, 12, "bfloat16"))
    monkeypatch.setattr("embgeo.metrics.pairs.KEPT_PAIRS", 0)


def arguments(tmp_path, device=WIDE):
    size = ["--rows", "200", "--columns", "16"]
    return ["--device", device, *size, "--scratch", str(tmp_path), "--out", str(tmp_path / "out")]


@pytest.mark.slow
def test_a_page_and_a_file_are_written_once_the_answers_agree(tmp_path, capsys):
    assert gpu.main(arguments(tmp_path)) == 0
    shown = capsys.readouterr().out
    page, numbers = sorted((tmp_path / "out").iterdir(), key=lambda path: path.suffix, reverse=True)
    assert shown == f"{page.read_text('utf-8')}\n{page}\n"
    found = json.loads(numbers.read_text("utf-8"))
    assert found["rates"].keys() == {"float64", "float32", "bfloat16"}
    first, both = (found["runs"][name]["stages"] for name in found["runs"])
    assert [stage["what"] for stage in first][:3] == [gpu.FIRST, gpu.SECOND, gpu.PAIRS]
    assert {gpu.NEIGHBORS, gpu.NEAREST} <= {stage["what"] for stage in both}
    assert all(stage["seconds"] >= 0 for stage in (*first, *both))
    assert first[2]["float32"] == 200 * 199 * 16
    assert "| all pairs |" in shown


@pytest.mark.slow
def test_a_wrong_answer_ends_with_1(tmp_path, monkeypatch, capsys):
    right = gpu.analyze_file

    def wrong(path, device, neighbors_of):
        found, clock, seconds = right(path, device, neighbors_of)
        if device == WIDE:
            rank = found["spectrum.effective_rank"]
            object.__setattr__(rank, "value", rank.value * (1 + 1e-8))
        return found, clock, seconds

    monkeypatch.setattr(gpu, "analyze_file", wrong)
    assert gpu.main(arguments(tmp_path)) == 1
    said = capsys.readouterr().out
    assert said == (
        "wrong answer: spectrum.effective_rank on torch-cpu is off by 1e-08, "
        "at most 1e-09 is right\n"
    )


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_without_a_gpu_one_line_says_so(tmp_path, monkeypatch, capsys, device):
    monkeypatch.setattr(backend, "is_present", lambda _name: False)
    assert gpu.main(arguments(tmp_path, device)) == 0
    said = capsys.readouterr().out
    assert said.startswith("nothing measured: ")
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()

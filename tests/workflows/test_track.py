"""Tracks of files and of revisions: patterns, duplicates, what is fetched, kept and used again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors

import embgeo
from embgeo.core.matrix import Matrix
from embgeo.io.places import ranges
from embgeo.workflows import track
from embgeo.workflows.track import list_checkpoints
from tests.support.refusals import refusal
from tests.support.toy_hub import ToyHub, serve

N, D, STEPS = 40, 8, 12
QUICK = {"sections": "tokens", "queries": 0}


def write_run(count: int = STEPS) -> list[bytes]:
    """Weights that drift; steps 3 and 7 hold those of step 1, and step 9 is of another run."""
    g = np.random.default_rng(5)
    start, drift, other = g.standard_normal((3, N, D)).astype(np.float32)
    runs = [start + np.float32(0.1 * i) * drift + np.float32(0.2 * i) for i in range(count)]
    runs[3] = runs[7] = runs[1]
    runs[9] = 7 * other
    return [save_tensors({"model.embed_tokens.weight": W}) for W in runs]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EMBGEO_CACHE", str(tmp_path / "own"))
    Path("run").mkdir()
    for i, data in enumerate(write_run()):
        Path(f"run/ckpt-{100 * i}.safetensors").write_bytes(data)
    return tmp_path


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyHub]:
    pytest.importorskip("huggingface_hub")
    from huggingface_hub.utils import close_session

    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("EMBGEO_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(ranges, "WAIT", 0.0)
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps({"vocab_size": N}))
    with serve(tmp_path / "model") as served:
        for i, data in enumerate(write_run()):
            config = {"config.json": json.dumps({"vocab_size": N, "step": i}).encode()}
            name = f"stage1-step{1000 * i}-tokens{4 * i}B"
            served.branches[name] = (f"{i + 16:040x}", {"model.safetensors": data, **config})
        monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
        yield served
        close_session()


@pytest.mark.parametrize("name", ["run/ckpt-*.safetensors", "run"])
@pytest.mark.usefixtures("files")
def test_patterns_and_a_folder_stand_for_files_in_the_order_of_steps(name: str) -> None:
    Path("run/config-1.json").touch()
    run = list_checkpoints([Path(name)])
    assert run.steps.values == tuple(100.0 * i for i in range(STEPS))
    assert run.paths[2] == Path("run/ckpt-200.safetensors")


@pytest.mark.parametrize(
    ("every", "steps"), [(1, range(12)), (4, (0, 4, 8, 11)), (11, (0, 11)), (99, (0, 11))]
)
@pytest.mark.usefixtures("files")
def test_every_takes_the_first_each_nth_and_the_last(every, steps) -> None:
    run = list_checkpoints([Path("run/*")], every)
    assert run.steps.values == tuple(100.0 * i for i in steps)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["run/none-*"], {"track": True}),
        (["run/*"], {"track": True, "every": 0}),
        (["run/ckpt-0.safetensors"] * 2, {"every": 2}),
        (["run/*"], {"track": True, "names": ["a"]}),
        (["s3://bucket/*"], {"track": True}),
    ],
)
@pytest.mark.usefixtures("files")
def test_what_makes_no_track_is_refused(names, options) -> None:
    with refusal():
        embgeo.diff(*names, **options)


@pytest.mark.slow
def test_steps_are_kept_and_measured_once(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    analysis = embgeo.analyze("run/ckpt-0.safetensors", sections="tokens", reference=False)

    def measure(matrix: Matrix, *_: object, **__: object) -> embgeo.Analysis:
        measured.append(matrix.origin.path)
        provenance = {**analysis.provenance, "sha256": matrix.origin.sha256}
        return replace(analysis, provenance=provenance)

    monkeypatch.setattr(track, "measure", measure)
    keep = files / "own" / "steps"

    def run(every: int | None, **settings: object) -> None:
        how = {"sections": "tokens", "reference": False, "queries": 0, **settings}
        checkpoints = list_checkpoints([Path("run/*")], every)
        embgeo.diff(checkpoints, **how)  # type: ignore[arg-type]

    run(6)
    assert len(measured) == 3
    run(3)
    assert len(measured) == 5
    run(3, seed=1)
    assert len(measured) == 10
    (next(keep.iterdir()) / "analysis.json").write_text("{")
    run(3)
    run(3, seed=1)
    assert len(measured) == 11


def test_the_name_of_a_kept_analysis_depends_on_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = Matrix(np.eye(3))
    before = track.identify(matrix, ())
    assert before == track.identify(matrix, ())
    monkeypatch.setattr(track, "digest_code", lambda: "another")
    assert before != track.identify(matrix, ())


@pytest.mark.slow
@pytest.mark.loopback
def test_revisions_are_fetched_once_for_each_matrix(
    hub: ToyHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = embgeo.diff("hf://org/toy@stage1-step*", track=True, **QUICK)
    assert comparison.track is not None
    assert comparison.track.steps == tuple(1000.0 * i for i in range(STEPS))
    assert "'step'" in comparison.track.source
    assert comparison.members[3].name == "toy@stage1-step3000-tokens12B"
    assert comparison.members[3].given == "hf://org/toy@stage1-step3000-tokens12B"
    assert comparison.sentences[0] == "Steps 1,000, 3,000 and 7,000 hold the same matrix."
    assert "Step 9,000 does not fit its neighbors." in comparison.sentences
    assert len(hub.asked("GET .*/refs")) == 1
    asked = {path.split("/")[4] for _, path, _ in hub.asked("model.safetensors")}
    assert asked == {f"{i + 16:040x}" for i in range(STEPS) if i not in (3, 7)}

    hub.requests.clear()
    hub.sent = 0
    again = embgeo.diff("hf://org/toy@stage1-step*", track=True, **QUICK)
    assert again.track == comparison.track
    assert [path for _, path, _ in hub.requests] == ["/api/models/org/toy/refs"]

    # The caches know what was fetched, and stand for the list of branches.
    hub.requests.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    kept = embgeo.diff("hf://org/toy@stage1-step*", track=True, **QUICK).track
    assert kept is not None
    assert (kept.steps, kept.curves) == (again.track.steps, again.track.curves)
    assert kept.source.endswith("of the revisions that are in a cache")
    assert embgeo.load("hf://org/toy@stage1-step3000-tokens12B").n == N
    with refusal():
        embgeo.diff("hf://org/toy@other*", track=True)
    assert not hub.requests


@pytest.mark.loopback
@pytest.mark.usefixtures("hub")
def test_a_pattern_of_revisions_that_matches_nothing() -> None:
    with refusal():
        embgeo.diff("hf://org/toy@none*", track=True)

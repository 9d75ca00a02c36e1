"""Runs side by side in worker processes: the same numbers, and what happens when one ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import embgeo
from embgeo.core.errors import BadOption, RunFailed, UnreadableFile
from embgeo.core.progress import RunMonitor
from embgeo.training.complete import complete_settings
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.workflows.train_runs import RunsBeside, Worker, deal_gpus
from tests.support.refusals import refusal
from tests.support.training_runs import numbers, settings

ROOT = Path(__file__).parents[2]
WORDS = " ".join(f"w{i % 37} w{i * i % 41}" for i in range(900))
TINY = {
    "data": {"size": 60},
    "model": {"d": 8, "hidden": 8},
    "training": {"batch": 4, "bptt": 8, "steps": 6, "log_every": 2, "threads": 1},
    "evaluation": {"every": 3},
}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text(WORDS + "\n", encoding="utf-8")
    return path


def without_times(path: Path, home: Path) -> Any:
    """The content of a file but for times and the folder."""
    if path.name == "metrics.jsonl":
        return numbers(path.parent)
    if path.name in ("report.html", "training.json"):
        return None
    if path.suffix != ".json":
        return path.read_bytes()
    found = json.loads(path.read_text(encoding="utf-8").replace(str(home), ""))
    found.pop("seconds", None)
    found.pop("timing", None)
    found.pop("peak_memory", None)
    return found


@pytest.mark.slow
def test_runs_side_by_side_have_the_bytes_of_one_after_the_other(
    text: Path, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"compare": "mle,cosreg,coupled-adam", "seeds": 2, "settings": TINY}
    homes = [tmp_path / "alone", tmp_path / "beside"]
    said: list[str] = []
    for jobs, home in enumerate(homes, 1):
        monitor = RunMonitor(say=said.append)
        embgeo.train(text, **given, out=home, jobs=jobs, monitor=monitor)
    files = [
        {path.relative_to(home): path for path in home.rglob("*") if path.is_file()}
        for home in homes
    ]
    assert files[0].keys() == files[1].keys()
    assert sum(path.name == "model.safetensors" for path in files[0]) == 6
    for name in files[0]:
        alone, beside = (without_times(home / name, home) for home in homes)
        assert alone == beside, name
    assert len(said) == 12
    assert {line.partition("  ")[0] for line in said[6:]} == {f"{i}/6" for i in range(1, 7)}


@pytest.mark.slow
def test_a_killed_process_fails_its_run_alone(text: Path, tmp_path: Path) -> None:
    """As where the operating system ends the process that takes the most memory."""
    config = complete_settings(settings(data={"path": str(text)}, training={"epochs": 500}))
    worker = Worker((config, (), ""), None)
    home = tmp_path / "mle"
    worker.process = worker.begin()
    killer = threading.Timer(0.0, lambda: os.kill(worker.process.pid, signal.SIGKILL))  # type: ignore[union-attr]
    killer.start()
    found = worker.send((config, home, False))
    killer.join()
    assert isinstance(found, RunFailed)
    assert found.cause == "its process was ended by signal 9"
    short = config.one("mle", 0, {"training.epochs": 1})
    result = worker.send((short, home, False))
    worker.stop()
    assert result.method == "mle"


PARENT = """
import os, sys, threading
from pathlib import Path
from embgeo.core.progress import RunMonitor
from embgeo.training.complete import complete_settings
from embgeo.workflows.train_runs import Worker
from tests.support.training_runs import settings

text, home = sys.argv[1:]
config = complete_settings(settings(data={"path": text}, training={"epochs": 10**6}))
worker = Worker((config, (), ""), None)
worker.process = worker.begin()
print(worker.process.pid, flush=True)
threading.Thread(target=worker.send, args=((config, Path(home), False),), daemon=True).start()
sys.stdin.read(1)
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the end of a process is not heard")
def test_a_worker_whose_study_was_killed_saves_and_ends(text: Path, tmp_path: Path) -> None:
    home = tmp_path / "mle"
    command = [sys.executable, "-c", PARENT, str(text), str(home)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=ROOT
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        worker = os.pidfd_open(int(parent.stdout.readline()))
        parent.communicate(b"k")
    ended, _, _ = select.select([worker], [], [], 120.0)
    os.close(worker)
    assert ended
    assert not (home / "result.json").exists()


@pytest.mark.slow
def test_an_error_about_more_than_a_run_is_raised(tmp_path: Path) -> None:
    config = complete_settings(settings(data={"path": str(tmp_path / "gone.txt")}))
    runs = RunsBeside(config, (), "", RunMonitor(), ProcessGroup(), 2)
    with refusal(UnreadableFile):
        list(runs.train([(config, tmp_path / "mle")], analyzed=False))


def test_a_number_of_jobs_below_one_is_refused(text: Path) -> None:
    with refusal(BadOption):
        embgeo.train(text, jobs=0)


def test_gpus_are_dealt_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    config = settings(training={"device": "auto"})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert deal_gpus(config, 2) == [None, None]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    assert deal_gpus(config, 3) == ["4", "6", "4"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert deal_gpus(config, 3) == ["0", "1", "0"]
    assert deal_gpus(settings(training={"device": "cuda:1"}), 2) == [None, None]

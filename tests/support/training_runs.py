"""A text, settings and listeners for tests of training runs: steps that take a millisecond."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from embgeo.core.errors import RunFailed
from embgeo.core.progress import Progress, RunMonitor
from embgeo.training.complete import complete_settings
from embgeo.training.data import Corpus, Vocabulary, load_corpus
from embgeo.training.loop.checkpoint import run_folder
from embgeo.training.loop.distributed import ProcessGroup, join_processes
from embgeo.training.loop.loop import Trainer, train_run
from embgeo.training.sections import DataSettings
from embgeo.training.settings import StudySettings, from_tables
from embgeo.training.study.run_result import RunResult
from embgeo.training.tasks import make_task
from embgeo.workflows.train_runs import RunsHere
from tests.support.processes import in_two_processes

N = 50
CPU = torch.device("cpu")

LSTM: dict[str, Any] = {
    "name": "awd-lstm",
    "d": 8,
    "hidden": 8,
    "layers": 1,
    "embedding_dropout": 0.1,
    "input_dropout": 0.2,
    "output_dropout": 0.2,
    "weight_dropout": 0.2,
    "alpha": 0.1,
    "beta": 0.1,
}

#: Few highway steps; dropout as published.
RHN: dict[str, Any] = {"name": "vd-rhn", "d": 8, "depth": 2}

#: A present model as it is trained at present.
LLAMA: dict[str, Any] = {
    "task": {"name": "lm", "z_loss": 1e-2},
    "model": {"name": "llama", "d": 8, "layers": 1, "heads": 2, "kv_heads": 1},
    "optimizer": {"schedule": "cosine", "warm_up_steps": 3},
    "training": {"windows": "random"},
    "evaluation": {"bptt": 10, "stride": 5},
}

#: Windows of ten tokens, with the six before.
XL: dict[str, Any] = {
    "model": {
        "name": "transformer-xl",
        "d": 8,
        "layers": 2,
        "heads": 2,
        "feedforward": 16,
        "memory": 6,
    },
}

#: Without dropout.
PLAIN = {**LSTM} | {name: 0.0 for name in LSTM if "dropout" in name}


def corpus(tokens: int = 340, n: int = N) -> Corpus:
    """Tokens drawn as Zipf has it; the same each time."""
    generator = np.random.default_rng(0)
    chances = 1.0 / np.arange(1, n + 1)
    drawn = generator.choice(n, tokens + 160, p=chances / chances.sum()).astype(np.int64)
    train = drawn[:tokens]
    vocabulary = Vocabulary(
        tuple(f"t{i}" for i in range(n)), np.bincount(train, minlength=n).astype(np.int64)
    )
    return Corpus(
        "drawn",
        vocabulary,
        train,
        drawn[tokens : tokens + 100],
        drawn[tokens + 100 :],
        "stream",
        ("drawn at random",),
        {"drawn.txt": "0" * 64},
    )


def load_text(path: Path, seed: int = 0, **data: Any) -> Corpus:
    """The corpus of a text, with settings of ``[data]``."""
    return load_corpus(DataSettings(path=str(path), **data), seed=seed)


def settings(name: str = "mle", /, **tables: Any) -> StudySettings:
    """Two epochs of nine steps, unless a table says otherwise."""
    usual: dict[str, Any] = {
        "compare": [name],
        "model": dict(LSTM),
        "optimizer": {"kind": "adamw", "lr": 0.01},
        "training": {"epochs": 2, "batch": 4, "bptt": 10, "log_every": 4, "device": "cpu"},
        "evaluation": {"batch": 2, "bptt": 20},
    }
    return from_tables(usual).updated(tables)


def silent() -> Progress:
    return Progress()


def run(config: StudySettings, folder: Path, **more: Any) -> RunResult:
    """A run without geometry or progress, unless these are given."""
    given: dict[str, Any] = {"measure": None, "progress": silent(), "command": "embgeo train"}
    return train_run(config, corpus(), folder, **{**given, **more})


def trainer_of(config: StudySettings, name: str | None = None) -> Trainer:
    """The loop of the first method, or of that one."""
    return Trainer(config.one(name or config.compare[0], 0), corpus(), CPU, ProcessGroup())


def run_all(config: StudySettings, folder: Path, measure: Any = None) -> None:
    """All runs of a study, without the analyses of their embeddings."""
    with join_processes("cpu") as group:
        runs = RunsHere(corpus(), measure, "embgeo train", RunMonitor(), group)
        config = complete_settings(config)
        waiting = [(config.one(*each), run_folder(folder, *each)) for each in config.runs]
        for _, outcome in runs.train(waiting, analyzed=False):
            if isinstance(outcome, RunFailed):
                raise outcome


class Stopped(Exception):
    """What a test raises in the middle of a run."""


def stopping(after: int) -> Progress:
    """Raises once so many steps were taken."""
    steps = [0]

    def advance(done: int) -> None:
        steps[0] += done
        if steps[0] >= after:
            raise Stopped

    return Progress(advance=advance)


def numbers(folder: Path, left_out: Callable[[str], bool] | None = None) -> list[dict[str, Any]]:
    """The lines of a run's log, without what a clock says."""
    clocks = ("train.seconds", "train.tokens_per_second")
    lines = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    return [
        {
            name: value
            for name, value in json.loads(line).items()
            if name not in clocks and not (left_out and left_out(name))
        }
        for line in lines
    ]


def spread(W: Any, output: Any) -> dict[str, float]:
    """A stand-in for the analysis: exact numbers of the matrices."""
    found = {"test.sum": float(W.sum()), "test.rows": float(len(W))}
    if output is not None:
        found["test.output"] = float(output.sum())
    return found


def train_task(config: StudySettings, folder: Path, progress: Progress | None = None) -> RunResult:
    """A run on the data that the settings name."""
    dataset = make_task(config).load(config)
    given: dict[str, Any] = {"measure": None, "progress": progress or silent(), "command": ""}
    return train_run(config, dataset, folder, **given)


def assert_resumes(config: StudySettings, folder: Path, after: int, *files: str) -> RunResult:
    """Compare a run to one that is stopped after so many steps and resumed, byte by byte."""
    found = train_task(config, folder / "one")
    with pytest.raises(Stopped):
        train_task(config, folder / "two", stopping(after))
    train_task(config, folder / "two")
    for name in ("model.safetensors", *files):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()
    return found


#: A run in one of two processes.
TWO = """
import json, sys
from pathlib import Path
from embgeo.training.complete import complete_settings
from embgeo.training.settings import from_tables
from tests.support.training_runs import train_task
train_task(complete_settings(from_tables(json.loads(sys.argv[2]))), Path(sys.argv[1]))
"""


def assert_two_processes_agree(config: StudySettings, folder: Path) -> RunResult:
    """Compare a run of one process to the same of two."""
    found = train_task(config, folder / "one")
    in_two_processes(TWO, str(folder / "two"), json.dumps(config.tables()))
    one, two = (load_file(folder / name / "model.safetensors") for name in ("one", "two"))
    for name, tensor in one.items():
        np.testing.assert_allclose(two[name], tensor, rtol=1e-3, atol=1e-5)
    return found


class RecurrentCalls(TorchFunctionMode):  # type: ignore[misc]
    """Notes the precisions of what recurrent kernels are given, and whether autocast is on."""

    KERNELS = ("rnn_tanh", "rnn_relu", "gru", "lstm")

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, set[torch.dtype | bool]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in self.KERNELS:
            noted = self.seen.setdefault(func.__name__, set())
            noted |= {leaf.dtype for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)}
            noted.add(torch.is_autocast_enabled("cpu"))
        return func(*args, **(kwargs or {}))

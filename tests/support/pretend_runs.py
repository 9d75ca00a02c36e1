"""Training and analyses on the pretend device, as a program: it prints a table as JSON."""

from __future__ import annotations

import json
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from embgeo.core.matrix import Frequency, Matrix, Origin
from embgeo.measure.analyze import analyze
from embgeo.stats.backend import executor
from embgeo.stats.backend.torch import TorchBackend
from embgeo.stats.resources import Resources
from embgeo.training.complete import complete_settings
from embgeo.training.loop.checkpoint import load_state, model_bytes, save_state
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.loop.loop import Trainer
from embgeo.training.methods import make_plain
from embgeo.training.settings import StudySettings
from tests.support.pretend_device import MixedDevices, pretend
from tests.support.training_runs import CPU, LLAMA, RHN, corpus, settings

MODELS: dict[str, dict[str, Any]] = {"awd-lstm": {}, "llama": LLAMA, "vd-rhn": {"model": RHN}}
CASES = [
    ("awd-lstm", "mle", "float32"),
    ("awd-lstm", "cosreg", "bf16"),
    ("awd-lstm", "sc-exp", "float32"),
    ("awd-lstm", "frage", "bf16"),
    ("awd-lstm", "coupled-adam", "bf16"),
    ("llama", "mle", "bf16"),
    ("llama", "al", "float32"),
    ("vd-rhn", "real", "float32"),
]


def run_case(model: str, method: str, precision: str) -> dict[str, Any]:
    """Two steps, with the state saved and loaded between them, and an evaluation."""
    tables = {**MODELS[model]}
    tables["training"] = {**tables.get("training", {}), "precision": precision}
    config = complete_settings(settings(method, **tables)).one(method, 0)
    expected = float(Trainer(config, corpus(200), CPU, ProcessGroup()).step().loss)
    with pretend() as device, tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(config, device)
        first = float(trainer.step().loss)
        save_state(trainer.state_dict(), Path(folder))
        resumed = make_trainer(config, device)
        resumed.load_state_dict(load_state(Path(folder)) or {})
        losses = []
        for one in (trainer, resumed):
            torch.manual_seed(1)
            losses.append(float(one.step().loss))
        parts = (trainer.model, trainer.regularizer)
        held = [t for one in parts for t in (*one.parameters(), *one.buffers())]
        evaluator = trainer.task.EVALUATOR(trainer.task, config, corpus(200), device)
        with trainer.evaluated() as trained:
            evaluator.valid(trained)
            trainer.matrices()
            make_plain(trained)
            evaluator.final(trained)
            saved = len(model_bytes(trained))
    return {
        "loss": first,
        "expected": expected,
        "resumed": losses[0] == losses[1],
        "devices": sorted({one.device.type for one in held}),
        "saved": saved > 0,
    }


def make_trainer(config: StudySettings, device: torch.device) -> Trainer:
    return Trainer(config, corpus(200), device, ProcessGroup())


class PretendBackend(TorchBackend):
    """The backend of ``--device cuda`` on the pretend device."""

    def __init__(self, name: str, memory: int) -> None:
        super().__init__(name, "pretend:0", has_float64=True, memory=memory)

    def upload(self, rows: Any, working: Any) -> Any:
        with pretend():  # in a thread of its own
            return super().upload(rows, working)


def compare_analyses(stored: str) -> float:
    """The largest relative difference between the scalars of the device and those of numpy."""
    rows = np.random.default_rng(0).standard_normal((500, 8)).astype(stored)
    counts = Frequency("counts", np.arange(500, 0, -1), "made up")
    matrix = Matrix(rows, origin=Origin(), frequency=counts)
    expected = analyze(matrix, reference=False, resources=Resources(device="cpu"))
    with pretend(), patch.object(executor, "open_device", PretendBackend):
        found = analyze(matrix, reference=False, resources=Resources(device="cuda"))
    values = {scalar.name: scalar.value for scalar in found.scalars}
    assert values.keys() == {scalar.name for scalar in expected.scalars}
    return max(
        abs(values[one.name] - one.value) / (abs(one.value) + 1e-9)
        for one in expected.scalars
        if one.value is not None
    )


def list_mixtures() -> dict[str, Callable[[torch.device], Any]]:
    """What a GPU refuses."""
    here = torch.ones(3)
    return {
        "sum": lambda there: torch.ones(3, device=there) + here,
        "product": lambda there: torch.ones(2, 3, device=there) @ here,
        "in place": lambda there: torch.ones(3).add_(torch.ones(3, device=there)),
        "index": lambda there: here[torch.zeros(2, dtype=torch.int64, device=there)],
        "lookup": lambda there: torch.nn.Embedding(3, 2)(
            torch.zeros(2, dtype=torch.int64, device=there)
        ),
        "lstm": lambda there: torch.nn.LSTM(3, 3)(torch.ones(2, 1, 3, device=there)),
        "generator": lambda there: torch.rand(3, device=there, generator=torch.Generator()),
    }


def list_allowed() -> dict[str, Callable[[torch.device], Any]]:
    """What a GPU allows."""
    here = torch.ones(3)
    return {
        "number": lambda there: torch.ones(3, device=there) * torch.tensor(2.0),
        "copy": lambda there: torch.ones(3, device=there).copy_(here).cpu() + here,
        "index": lambda there: torch.ones(3, device=there)[torch.tensor([0, 2])],
        "numbers": lambda there: torch.tensor([1.0, 2.0], device=there).tolist(),
    }


def describe(work: Callable[[], Any]) -> Any:
    """What a function gives, or what it raises and where."""
    try:
        return work()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        places = [f"{Path(one.filename).name}:{one.lineno}" for one in frames]
        return f"{type(error).__name__}: {error} ({', '.join(places[-4:])})"


def is_refused(work: Callable[[torch.device], Any]) -> bool:
    with pretend() as device:
        try:
            work(device)
        except MixedDevices:
            return True
    return False


def main() -> None:
    torch.set_num_threads(1)
    table = {
        "runs": {" ".join(case): describe(lambda case=case: run_case(*case)) for case in CASES},
        "analyses": {
            stored: describe(lambda stored=stored: compare_analyses(stored))
            for stored in ("float16", "float64")
        },
        "refused": {name: is_refused(work) for name, work in list_mixtures().items()},
        "allowed": {name: not is_refused(work) for name, work in list_allowed().items()},
    }
    print(json.dumps(table))


if __name__ == "__main__":
    main()

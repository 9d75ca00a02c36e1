"""Callbacks, with trainers and loggers that only look like the real ones."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo import callbacks
from embgeo.callbacks import LightningGeometry, Monitor, TrainerGeometry, attach
from embgeo.callbacks import monitor as monitors
from embgeo.callbacks.loggers import sender
from embgeo.core.errors import BadOption
from embgeo.stats.resources import Resources
from tests.support.refusals import refusal

ROWS = np.random.default_rng(0).standard_normal((40, 5))
NAMES = ("cosine.mean", "spectrum.effective_rank")
Logged = list[tuple[dict[str, float], int]]


@dataclass
class Device:
    """As torch has it."""

    name: str

    @property
    def type(self) -> str:
        return self.name.partition(":")[0]

    def __str__(self) -> str:
        return self.name


def quick(**more: Any) -> Monitor:
    return Monitor(NAMES, every=10, **more)


# --- The monitor --------------------------------------------------------------------------------


def test_a_monitor_measures_what_an_analysis_says() -> None:
    analysis = embgeo.analyze(ROWS, sections=["cosine", "spectrum"], reference=False)
    values = quick(prefix="x/").measure(ROWS, 10)
    assert list(values) == ["x/cosine.mean", "x/spectrum.effective_rank", "x/seconds"]
    for name in NAMES:
        assert values[f"x/{name}"] == analysis[name].value
    assert values["x/seconds"] > 0


def test_when_a_monitor_is_due() -> None:
    monitor = quick()
    assert [step for step in range(25) if monitor.due(step)] == [0, 10, 20]
    assert monitor.due(24, last=True)
    monitor.measure(ROWS, 20)
    assert not monitor.due(20)
    assert not monitor.due(20, last=True)


def test_a_budget_skips_steps_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monitor = quick(budget=0.1, prefix="x/")

    def measure(*_: object) -> dict[str, float]:
        clock[0] += 1.0
        return {"x": 1.0}

    monkeypatch.setattr(monitor, "_values", measure)
    seen: dict[int, float] = {}
    for step in range(0, 250, 10):
        clock[0] += 1.0
        values = monitor.observe(ROWS, step)
        if values:
            seen[step] = values["x/skipped_steps"]
    # Each takes a second: the next one is due when ten seconds passed for each so far.
    assert seen == {0: 0.0, 90: 8.0, 180: 8.0}
    assert monitor.observe(ROWS, 245, last=True)["x/skipped_steps"] == 6.0


def test_a_budget_is_a_share() -> None:
    for budget in (0.0, -1.0, 1.5):
        with refusal(BadOption):
            Monitor(budget=budget)


def test_the_device_of_the_weight_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(chosen: object, resources: Resources | None = None) -> Resources | None:
        used: list[Resources | None] = []
        given = quick(resources=resources)
        monkeypatch.setattr(monitors, "as_matrix", lambda *_, **__: ROWS)
        monkeypatch.setattr(given, "_values", lambda *how: used.append(how[1]) or {})
        given.measure(chosen, 0)
        return used[0]

    parameter = SimpleNamespace(device=Device("cuda:1"))
    assert seen(parameter) == Resources(device="cuda:1")
    assert seen(SimpleNamespace(parameters=lambda: iter([parameter]))) == Resources(device="cuda:1")
    assert seen(SimpleNamespace(device=Device("cpu"))) is None
    assert seen(ROWS) is None
    assert seen(parameter, Resources(threads=1)) == Resources(threads=1)


def test_what_of_a_model_is_measured() -> None:
    model = SimpleNamespace(inner=SimpleNamespace(table=ROWS))
    assert quick(of=lambda m: m.inner.table).measure(model, 0) != {}


def test_frequency_with_counts() -> None:
    monitor = Monitor(["frequency.norm_ratio"], counts=np.arange(40))
    assert "embgeo/frequency.norm_ratio" in monitor.measure(ROWS, 0)


def test_monitors_that_make_no_sense() -> None:
    for options in (
        {"scalars": ["cosine.meen"]},
        {"scalars": []},
        {"scalars": "cosine.mean"},
        {"every": 0},
    ):
        with refusal(BadOption):
            Monitor(**options)


def test_rows_that_are_not_finite_are_said_once() -> None:
    rows = ROWS.copy()
    rows[3] = np.nan
    monitor = quick()
    with pytest.warns(UserWarning, match="leave out rows with non-finite numbers at step 7: 1"):
        assert monitor.measure(rows, 7) != {}
    assert monitor.measure(rows, 8) != {}


def test_what_is_not_defined_is_said_once() -> None:
    for name, says in (
        ("frequency.norm_ratio", r"not logged: no token frequencies; give Monitor\(counts=…\)$"),
        ("cosine.histogram", "not a single number"),
        ("isotropy.isoscore", "d = 1"),
    ):
        rows = ROWS[:, :1]
        monitor = Monitor(["suspects.zero", name])
        with pytest.warns(UserWarning, match=says):
            values = monitor.measure(rows, 0)
        assert list(values) == ["embgeo/suspects.zero", "embgeo/seconds"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            monitor.measure(rows, 10)


def test_a_training_is_not_stopped_by_its_monitor() -> None:
    monitor = quick()
    with pytest.warns(UserWarning, match="measured nothing at step 10: .*non-finite"):
        assert monitor.measure(np.full((4, 2), np.nan), 10) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert monitor.measure(np.full((4, 2), np.nan), 20) == {}
    assert monitor.measure(ROWS, 30) != {}
    with pytest.warns(UserWarning, match="measured nothing at step 40: AttributeError: .*layer"):
        assert quick(of=lambda model: model.layer).measure(ROWS, 40) == {}


def test_a_training_is_not_stopped_by_a_logger() -> None:
    def unreachable(_values: Any, _step: int) -> None:
        raise ConnectionError("no tracker\nthere")

    trainer, seen = FakeTrainer(), AFunction()
    trainer.add_callback(TrainerGeometry(unreachable, quick()))
    trainer.add_callback(TrainerGeometry(seen, quick()))
    with pytest.warns(
        UserWarning, match="logged nothing at step 0: ConnectionError: no tr"
    ) as said:
        trainer.train()
    assert len(said) == 1
    assert [step for _, step in seen.seen] == [0, 10, 20, 25]


def test_pairs_are_sampled_only_if_they_are_asked_for() -> None:
    assert Monitor(["cosine.mean"]).options.pairs == 0
    assert Monitor(["cosine.positive_share"]).options.pairs == embgeo.Options().pairs
    assert "embgeo/cosine.positive_share" in Monitor(["cosine.positive_share"]).measure(ROWS, 0)


def test_other_processes_compute_nothing() -> None:
    taken: list[Any] = []
    monitor = quick(of=lambda model: taken.append(model) or ROWS)
    assert monitor.measure("model", 0, report=False) == {}
    assert taken == ["model"]  # but take part in gathering


def test_what_one_process_finds_all_know(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    for other in (True, False):

        def gather(answers: list[bool], own: bool, other: bool = other) -> None:
            answers[:] = [other, own][: len(answers)]

        monkeypatch.setattr(torch.distributed, "all_gather_object", gather)
        assert [monitors.is_any_true(own) for own in (True, False)] == [True, other]


# --- Loggers ----------------------------------------------------------------------------------


class Recorder:
    """What was logged, in the manner of one kind of logger."""

    def __init__(self) -> None:
        self.seen: Logged = []


class WithMetrics(Recorder):
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        assert step is not None
        self.seen.append((metrics, step))


class WithScalars(Recorder):
    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.seen.append(({name: value}, step))


class WithLog(Recorder):
    def log(self, data: dict[str, float], step: int | None = None) -> None:
        assert step is not None
        self.seen.append((data, step))


class AFunction(Recorder):
    def __call__(self, values: dict[str, float], step: int) -> None:
        self.seen.append((values, step))


def test_every_kind_of_logger() -> None:
    for kind in (WithMetrics, WithScalars, WithLog, AFunction):
        logger = kind()
        sender(logger)({"a": 1.0}, 7)
        assert logger.seen == [({"a": 1.0}, 7)]


def test_what_logs_nothing() -> None:
    with refusal(BadOption):
        sender(3)


# --- The Trainer of transformers --------------------------------------------------------------


class FakeTrainer:
    """Calls its callbacks as transformers' Trainer does, and logs by its own step."""

    def __init__(self, max_steps: int = 25, zero: bool = True) -> None:
        self.callback_handler = self
        self.callbacks: list[Any] = []
        self.state = SimpleNamespace(global_step=0, max_steps=max_steps, is_world_process_zero=zero)
        self.control = SimpleNamespace(should_log=False)
        self.seen: Logged = []
        self.own: list[int] = []

    def add_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        assert start_time is None
        self.control.should_log = False
        self.seen.append((logs, self.state.global_step))

    def call(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(None, self.state, self.control, model=ROWS, optimizer=None)

    def train(self) -> None:
        self.call("on_train_begin")
        while self.state.global_step < self.state.max_steps:
            self.state.global_step += 1
            self.control.should_log = self.state.global_step % 5 == 0
            self.call("on_step_end")
            if self.control.should_log:
                self.own.append(self.state.global_step)


def test_the_trainer_logs_at_the_start_when_due_and_at_the_end() -> None:
    trainer = FakeTrainer()
    callback = attach(trainer, quick())
    trainer.train()
    assert trainer.own == [5, 10, 15, 20, 25]  # as without the callback
    assert [step for _, step in trainer.seen] == [0, 10, 20, 25]
    assert set(trainer.seen[0][0]) == {*(f"embgeo/{name}" for name in NAMES), "embgeo/seconds"}
    assert callback.monitor.seconds == trainer.seen[-1][0]["embgeo/seconds"]


def test_a_resumed_training_starts_where_it_was() -> None:
    trainer = FakeTrainer()
    trainer.state.global_step = 13
    attach(trainer, quick())
    trainer.train()
    assert [step for _, step in trainer.seen] == [13, 20, 25]


def test_only_one_process_logs() -> None:
    trainer = FakeTrainer(zero=False)
    attach(trainer, quick())
    trainer.train()
    assert trainer.seen == []


# --- Lightning --------------------------------------------------------------------------------


def lightning_trainer(*loggers: Any, zero: bool = True) -> Any:
    return SimpleNamespace(global_step=0, loggers=list(loggers), is_global_zero=zero)


def fit(trainer: Any, callback: Any, batches: int = 50, accumulated: int = 2) -> None:
    """Calls the callback as Lightning's loop does: a step is taken every few batches."""
    callback.on_train_start(trainer, ROWS)
    for batch in range(batches):
        trainer.global_step = (batch + 1) // accumulated
        callback.on_train_batch_end(trainer, ROWS, None, None, batch)
    callback.on_train_end(trainer, ROWS)


def test_every_logger_of_lightning_gets_every_value_once() -> None:
    one, two = WithMetrics(), WithMetrics()
    fit(lightning_trainer(one, two), LightningGeometry(quick()))
    assert [step for _, step in one.seen] == [0, 10, 20, 25]
    assert one.seen == two.seen


def test_an_end_that_was_due_is_logged_once() -> None:
    logger = WithMetrics()
    fit(lightning_trainer(logger), LightningGeometry(quick()), batches=40)
    assert [step for _, step in logger.seen] == [0, 10, 20]


def test_other_processes_of_lightning_log_nothing() -> None:
    logger = WithMetrics()
    fit(lightning_trainer(logger, zero=False), LightningGeometry(quick()))
    assert logger.seen == []


@pytest.mark.slow
def test_without_a_logger_that_is_said_once() -> None:
    with pytest.warns(UserWarning, match="no logger") as caught:
        fit(lightning_trainer(), LightningGeometry(quick()))
    assert len(caught) == 1


# --- What is imported -------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_imported_that_is_not_asked_for() -> None:
    import subprocess

    code = (
        "import sys, embgeo.callbacks as c\n"
        "c.Monitor\n"
        "print(*{n.partition('.')[0] for n in sys.modules}"
        " & {'torch', 'transformers', 'lightning', 'pytorch_lightning', 'pandas'})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.split() == []


def test_names_of_the_package() -> None:
    assert all(getattr(callbacks, name) is not None for name in callbacks.__all__)
    with refusal(AttributeError):
        _ = callbacks.Nope

"""Runs of a study side by side, each in a worker process: ``embgeo train --jobs N``.

A worker is this module as a program. It reads its task and then one run after another from its
standard input, pickled, and answers on its standard output.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from embgeo.core.errors import EmbgeoError, RunFailed
from embgeo.core.progress import RunMonitor

if TYPE_CHECKING:
    from embgeo.training.loop.distributed import ProcessGroup
    from embgeo.training.settings import StudySettings
    from embgeo.workflows.train_runs import Job, Outcome


@dataclass(frozen=True, slots=True)
class RunsBeside:
    """Trains runs in `jobs` worker processes, each of which reads the text itself.

    GPUs are dealt to the workers in turn. The numbers are those of one run after the other.
    """

    settings: StudySettings
    plugins: tuple[Path, ...]
    command: str
    monitor: RunMonitor
    group: ProcessGroup
    jobs: int
    idle: queue.SimpleQueue[Worker] = field(default_factory=queue.SimpleQueue)

    def train(self, waiting: Sequence[Job], *, analyzed: bool) -> Iterator[tuple[int, Outcome]]:
        """Yield the place and the outcome of each run as they end."""
        workers = [Worker(self.task, gpu) for gpu in deal_gpus(self.settings, self.jobs)]
        for worker in workers:
            self.idle.put(worker)
        pool = ThreadPoolExecutor(self.jobs)
        try:
            with stopping_on_signals():
                futures = {
                    pool.submit(self.train_one, job, analyzed): place
                    for place, job in enumerate(waiting)
                }
                for behind, future in enumerate(as_completed(futures), 1):
                    outcome = future.result()
                    self.monitor.done(behind)
                    yield futures[future], outcome
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.stop()
            while not self.idle.empty():
                self.idle.get()

    @property
    def task(self) -> tuple[Any, ...]:
        return self.settings, self.plugins, self.command

    def train_one(self, job: Job, analyzed: bool) -> Outcome:
        """Let an idle worker train a run; an error that is about more than this run is raised."""
        worker = self.idle.get()
        try:
            outcome = worker.send((*job, analyzed))
        finally:
            self.idle.put(worker)
        if isinstance(outcome, BaseException) and not isinstance(outcome, RunFailed):
            raise outcome
        found: Outcome = outcome
        return found


class Worker:
    """A process that trains one run after another; it begins with the first."""

    def __init__(self, task: tuple[Any, ...], gpu: str | None) -> None:
        self.task, self.gpu = task, gpu
        self.process: subprocess.Popen[bytes] | None = None

    def send(self, message: Any) -> Any:
        """Return the answer to a message; RunFailed if the process ends without one."""
        if self.process is None:
            self.process = self.begin()
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(message, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            code = self.stop()
            if code > 0:
                raise RuntimeError("a run failed; what its process printed says why") from None
            cause = f"its process was ended by signal {-code}"
            way_out = "leave memory for all jobs, or give a lower number of them"
            return RunFailed(cause, where=message[1], way_out=way_out)

    def begin(self) -> subprocess.Popen[bytes]:
        own = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        if self.gpu is not None:
            own["CUDA_VISIBLE_DEVICES"] = self.gpu
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **own},
            start_new_session=True,  # Ctrl-C reaches a worker once, from here
        )
        assert process.stdin is not None
        pickle.dump((*self.task, os.getpid()), process.stdin)
        return process

    def stop(self) -> int:
        """End the process once its run is saved, and return its exit code."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.terminate()
        with suppress(OSError), process:  # which closes the pipes and waits
            pass
        return process.wait()


def deal_gpus(settings: StudySettings, jobs: int) -> list[str | None]:
    """Return the GPU of each worker; None where the settings name the device, or there are none."""
    import torch

    if settings.training.device not in ("auto", "cuda") or not torch.cuda.is_available():
        return [None] * jobs
    number = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    known = [one.strip() for one in named.split(",") if one.strip()][:number]
    known = known if len(known) == number else [str(one) for one in range(number)]
    return [known[worker % number] for worker in range(jobs)]


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt, as SIGINT does, so that the workers are stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def work(messages: BinaryIO, answers: BinaryIO) -> None:
    """Answer messages until there are no more."""
    from embgeo.training.plugins import naming_plugins

    settings, plugins, command, parent = pickle.load(messages)
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    runs: Any = None
    while True:
        try:
            one, home, analyzed = pickle.load(messages)
        except EOFError:
            return
        try:
            if runs is None:
                runs = prepare_runs(settings, plugins, command)
            with naming_plugins(plugins):
                ((_, answer),) = runs.train([(one, home)], analyzed=analyzed)
        except KeyboardInterrupt:
            answer = KeyboardInterrupt()
        except EmbgeoError as error:
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


def end_with(parent: int) -> None:
    """Ask this process to save and end once its parent has been killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGTERM)


def prepare_runs(settings: StudySettings, plugins: Sequence[Path], command: str) -> Any:
    """Read the plug-ins and the text of a study."""
    from embgeo.training.loop.distributed import ProcessGroup
    from embgeo.training.plugins import load_plugins
    from embgeo.training.tasks import make_task
    from embgeo.workflows.train_runs import RunsHere, geometry_measure

    load_plugins(plugins)
    dataset = make_task(settings).load(settings)
    measure = geometry_measure(dataset.vocabulary.counts)
    return RunsHere(dataset, measure, command, RunMonitor(), ProcessGroup())


def main() -> None:
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what a plug-in prints is not an answer
        work(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()

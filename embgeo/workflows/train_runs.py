"""The runs of a study: training, geometry on the way, and analyses afterwards.

Runs are trained one after the other in this process, or side by side (``embgeo train --jobs N``),
each in a worker. A worker is this module as a program. It reads its task and then one run after
another from its standard input, pickled, and answers on its standard output.
"""

from __future__ import annotations

import gc
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import EmbgeoError, OutOfMemory, RunFailed, UnreadableFile, argument
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.progress import RunMonitor
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum, subspace
from embgeo.files.records import ARRAYS_NAME, digest_of
from embgeo.io.load import load, open_checkpoint
from embgeo.result.saved import FORMAT, JSON_NAME
from embgeo.training.study.log import OF_OUTPUT

if TYPE_CHECKING:
    from embgeo.core.progress import Progress
    from embgeo.training.loop.distributed import ProcessGroup
    from embgeo.training.loop.loop import Measure
    from embgeo.training.settings import StudySettings
    from embgeo.training.study.run_result import RunResult
    from embgeo.training.tasks import Dataset

    #: The settings of a run, and its folder.
    Job = tuple[StudySettings, Path]
    Outcome = RunResult | RunFailed

#: Scalars that are measured during training.
MEASURED = (
    isotropy.I1.name,
    isotropy.I1_UNIT.name,
    isotropy.I2.name,
    cosine.MEAN.name,
    spectrum.EFFECTIVE_RANK.name,
    frequency.PROBE_AUC.name,
)
#: Another one of an untied model.
OF_TWO = subspace.DISTANCE.name

Array = npt.NDArray[np.float32]


def geometry_measure(
    counts: npt.NDArray[np.int64],
) -> Callable[[Array, Array | None], dict[str, float]]:
    """Return a function that measures an embedding and, of an untied model, the output matrix.

    :func:`embgeo.training.loop.loop.train_run` calls it; `counts` are token counts of the training
    split.
    """
    from embgeo.core.options import Options
    from embgeo.metrics.pairs import skip_pairs
    from embgeo.workflows.analyze import analyze

    counted = Frequency("counts", np.asarray(counts, dtype=np.float64), "the training split")
    options = skip_pairs(Options(), (*MEASURED, OF_TWO))
    families = tuple(dict.fromkeys(name.partition(".")[0] for name in (*MEASURED, OF_TWO)))

    def of_matrix(matrix: Matrix) -> dict[str, float]:
        analysis = analyze(matrix, sections=families, options=options, reference=False)
        found = {name: analysis.find_scalar(name) for name in (*MEASURED, OF_TWO)}
        return {
            name: scalar.value
            for name, scalar in found.items()
            if scalar is not None and scalar.value is not None
        }

    def measure(W: Array, output: Array | None) -> dict[str, float]:
        if output is None:
            return of_matrix(Matrix(W, frequency=counted))
        twin = Matrix(output, "output", frequency=counted)
        own = of_matrix(Matrix(W, frequency=counted, output=twin))
        return own | {f"{OF_OUTPUT}{name}": value for name, value in of_matrix(twin).items()}

    return measure


def attempt_run(
    settings: StudySettings,
    dataset: Dataset,
    home: Path,
    measure: Measure | None,
    progress: Progress,
    command: str,
) -> RunResult:
    """Train one run; RunFailed if it diverges, or alone lacks memory."""
    import torch

    from embgeo.training.loop.loop import train_run

    try:
        return train_run(
            settings, dataset, home, measure=measure, progress=progress, command=command
        )
    except (MemoryError, torch.OutOfMemoryError) as error:
        if torch.distributed.is_initialized():
            raise  # other processes wait for this one
        cause = f"out of memory: {' '.join(str(error).split()) or 'none is left'}"
    # Behind the handler: an error with a context would hold the tensors of the run.
    gc.collect()
    torch.cuda.empty_cache()
    way_out = "lower batch of [training] and raise accumulate, in another folder"
    raise OutOfMemory(cause, where=home, way_out=way_out)


def analyze_embedding(folder: Path, device: str, command: str, progress: Progress) -> None:
    """Analyze the matrices of a run, unless their analyses are in its folder.

    The analyses of an output matrix and a source embedding are in folders inside.
    """
    from embgeo.stats.resources import Resources
    from embgeo.training.loop.checkpoint import (
        MODEL_NAME,
        SOURCE_NAME,
        VOCABULARY_NAME,
        offer_resume,
    )
    from embgeo.training.models.encoder_decoder import SOURCE_TENSOR
    from embgeo.training.study.run_result import OUTPUT_FOLDER, SOURCE_FOLDER
    from embgeo.workflows.analyze import analyze

    model = folder / MODEL_NAME
    if not model.is_file():
        way_out = f"remove this folder, and train it again with {argument('resume')}"
        cause = f"the run is finished, but its {MODEL_NAME} is missing"
        raise UnreadableFile(cause, where=folder, way_out=way_out)
    has_source = any(tensor.name == SOURCE_TENSOR for tensor in open_checkpoint(model).tensors)
    homes = (folder, *([folder / SOURCE_FOLDER] if has_source else []))
    if all(is_analyzed(home, model) for home in homes):
        return
    matrix = load(model, counts=folder / VOCABULARY_NAME)
    found = {OUTPUT_FOLDER: matrix.output, "": matrix}
    if has_source:
        counts = folder / SOURCE_NAME
        source = load(model, tensor=SOURCE_TENSOR, output="none", counts=counts)
        found = {SOURCE_FOLDER: source, **found}
    resources = Resources(device=choose_pass_device(device))
    for place, each in found.items():
        if each is not None:
            analysis = analyze(each, command=command, progress=progress, resources=resources)
            with offer_resume():
                analysis.save(folder / place)


def choose_pass_device(device: str) -> str:
    """Choose the device of analyses: the CUDA device that trained, else the CPU."""
    from embgeo.training.loop.distributed import find_device

    found = find_device(device)
    has_array_api = find_spec("array_api_compat") is not None
    return str(found) if found.type == "cuda" and has_array_api else "cpu"


def is_analyzed(folder: Path, model: Path) -> bool:
    """Tell whether the folder holds an analysis of this file, by its hash."""
    try:
        content = FORMAT.read(folder / JSON_NAME)
        own = content["provenance"]["sha256"] if (folder / ARRAYS_NAME).is_file() else None
    except (UnreadableFile, LookupError, TypeError):
        return False
    return digest_of(model) == own


@dataclass(frozen=True, slots=True)
class RunsHere:
    """Trains runs one after the other, in this process and those that torchrun started."""

    dataset: Dataset
    measure: Measure | None
    command: str
    monitor: RunMonitor
    group: ProcessGroup

    def train(self, waiting: Sequence[Job], *, analyzed: bool) -> Iterator[tuple[int, Outcome]]:
        """Yield the place and the outcome of each run, and analyze its embedding if `analyzed`."""
        given = self.measure, self.monitor.progress, self.command
        for place, (settings, home) in enumerate(waiting):
            try:
                outcome: Outcome = attempt_run(settings, self.dataset, home, *given)
            except RunFailed as error:
                outcome = error.with_traceback(None)  # which holds the model
            else:
                if analyzed and self.group.leads:
                    device = settings.training.device
                    analyze_embedding(home, device, self.command, self.monitor.progress)
                self.group.wait()
            yield place, outcome


# --- side by side ---------------------------------------------------------------------------------


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
                for future in as_completed(futures):
                    yield futures[future], future.result()
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
    runs: RunsHere | None = None
    while True:
        try:
            one, home, analyzed = pickle.load(messages)
        except EOFError:
            return
        try:
            if runs is None:
                runs = prepare_runs(settings, plugins, command)
            with naming_plugins(plugins):
                ((_, outcome),) = runs.train([(one, home)], analyzed=analyzed)
            answer: Outcome | BaseException = outcome
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


def prepare_runs(settings: StudySettings, plugins: Sequence[Path], command: str) -> RunsHere:
    """Read the plug-ins and the text of a study."""
    from embgeo.training.loop.distributed import ProcessGroup
    from embgeo.training.plugins import load_plugins
    from embgeo.training.tasks import make_task

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

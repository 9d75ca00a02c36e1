"""``embgeo.train``: training with published methods, and the study of the runs."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.errors import Diverged, EmbgeoError
from embgeo.core.values import format_number
from embgeo.workflows.train_monitor import RunMonitor
from embgeo.workflows.train_task import (
    StudyTask,
    TrainRequest,
    check_runs,
    check_runs_folder,
    explain_interrupt,
    prepare,
)

if TYPE_CHECKING:
    from embgeo.training.loop.loop import Measure
    from embgeo.training.study.record import Study
    from embgeo.training.study.run_result import RunResult


@dataclass(frozen=True, slots=True)
class TrainedStudy:
    """The result of :func:`train`.

    Attributes
    ----------
    study : Study
        The runs by method, and the outcomes of the papers' claims.
    folder : Path
        Folder of the runs, with ``training.json``.
    report : Path
        The HTML report.
    diverged : dict of (str, int) to Diverged
        The runs that diverged, by method and seed; the study omits them.
    """

    study: Study
    folder: Path
    report: Path
    diverged: Mapping[tuple[str, int], Diverged]

    def error(self) -> EmbgeoError | None:
        """The error if runs diverged, else None."""
        from embgeo.training.loop.loop import DIVERGED_WAY_OUT

        if not self.diverged:
            return None
        names = ", ".join(f"{method} with seed {seed}" for method, seed in self.diverged)
        lost = f"{len(self.diverged)} of {len(self.diverged) + len(self.study.runs)} runs"
        cause = f"{lost} diverged ({names}); the report is about the others"
        return EmbgeoError(cause, where=self.folder, way_out=DIVERGED_WAY_OUT)


def train(
    data: Path | str | None = None,
    *,
    compare: Sequence[str] | str | None = None,
    preset: str | None = None,
    config: Path | str | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    seeds: int | None = None,
    device: str | None = None,
    tune: Sequence[float] | str | None = None,
    start: Path | str | None = None,
    plugins: Sequence[Path | str] = (),
    out: Path | str | None = None,
    resume: bool = False,
    command: str = "",
    monitor: RunMonitor | None = None,
) -> TrainedStudy | None:
    """Train language models with each of several methods, and compare the results.

    All methods start from the same weights and see the same text in the same order. Every run is
    evaluated and its embedding analyzed; a report compares both between the methods, and with the
    claims of their papers. Needs torch: ``pip install 'embgeo[train]'``.

    Parameters
    ----------
    data : path, optional
        A text file, or a folder with a training, validation and test split; by default the text of
        `config`, or of the resumed runs.
    compare : sequence of str, optional
        Names of methods, or one text with commas, such as ``"mle,cosreg,frage"``;
        docs/training.md lists all.
    preset : str, optional
        Name of a preset of settings; "tiny-cpu" by default.
    config : path, optional
        File of TOML settings, which override the preset.
    settings : mapping, optional
        Single settings, which override both: ``{"training.epochs": 3, "model": {"d": 64}}``.
    seeds : int, optional
        Train each method with the seeds 0 … `seeds` − 1.
    device : str, optional
        "cpu", "cuda", "mps" or "auto".
    tune : sequence of float or str, optional
        Learning rates, or "lr=1e-3,3e-3". Each method is trained with each rate and the first seed,
        and takes the rate with the lowest perplexity on the validation split.
    start : path, optional
        A finished run with the initial weights of all runs, or a folder with such a run for each
        method and seed. The text is read with its vocabulary.
    plugins : sequence of path
        Files of Python code to run, which register your own models, methods or tasks; see
        docs/plugins.md. No other code is run, whatever a folder or a file of settings names.
    out : path, optional
        Folder of the runs; by default the name of the text with ``.runs``, in the current folder.
    resume : bool
        Whether to resume the runs in `out`. Finished runs are kept, settings are taken from the
        runs unless given, and methods and seeds may be added.
    command : str
        Recorded in the results.
    monitor : RunMonitor, optional
        Receives reports of the runs.

    Returns
    -------
    TrainedStudy or None
        None in all processes of a distributed training but the first.

    Raises
    ------
    BadOption
        If arguments or settings are invalid, or `out` holds something else.
    UnreadableFile
        If the text or a file of settings cannot be read.
    Diverged
        If all runs diverged.
    EmbgeoError
        If a file cannot be written, or the training was interrupted and can be resumed.

    Examples
    --------
    >>> import embgeo
    >>> found = embgeo.train("wiki.txt", compare=["mle", "cosreg"], seeds=3)  # doctest: +SKIP
    >>> found.study.values("cosreg", "cosine.mean")  # doctest: +SKIP
    {0: 0.0052, 1: 0.0049, 2: 0.0051}
    """
    request = TrainRequest(
        data,
        compare=compare,
        preset=preset,
        config=config,
        settings=settings,
        seeds=seeds,
        device=device,
        tune=tune,
        start=start,
        plugins=plugins,
        out=out,
        resume=resume,
    )
    require_torch()
    from embgeo.training.plugins import naming_plugins

    with naming_plugins(request.plugins):
        return train_study(prepare(request, command), monitor or RunMonitor(), resume=resume)


def plan_training(
    data: Path | str | None = None,
    *,
    command: str = "",
    **arguments: Any,
) -> tuple[StudyTask, dict[str, Any]]:
    """What :func:`train` would do with these arguments; nothing is written.

    The plan is JSON-ready: corpus, model, epochs, seeds, methods with their sizes and steps.
    """
    request = TrainRequest(data, **arguments)
    require_torch()
    from embgeo.training.plugins import naming_plugins

    with naming_plugins(request.plugins):
        task = prepare(request, command)
        return task, plan_task(task)


def plan_task(task: StudyTask) -> dict[str, Any]:
    from embgeo.training.loop.check import plan_runs
    from embgeo.training.loop.checkpoint import describe_dataset

    settings = task.settings
    return {
        "corpus": describe_dataset(task.dataset),
        "model": settings.tables()["model"],
        "epochs": settings.training.epochs,
        "seeds": list(settings.seeds),
        "methods": [asdict(plan) for plan in plan_runs(settings, task.dataset)],
        "rates": list(settings.tune.lr),
    }


def require_torch() -> None:
    """EmbgeoError if a package for training is missing."""
    missing = [name for name in ("torch", "tomli_w") if find_spec(name) is None]
    if missing:
        named = " and ".join(missing).replace("tomli_w", "tomli-w")
        cause = f"training needs {named}, which is not installed"
        raise EmbgeoError(cause, way_out="pip install 'embgeo[train]'")


def train_study(task: StudyTask, monitor: RunMonitor, *, resume: bool) -> TrainedStudy | None:
    """Train all runs of a task, then write the study with its report."""
    from embgeo.training.loop.checkpoint import write_study_settings
    from embgeo.training.loop.distributed import join_processes
    from embgeo.workflows.train_study import geometry_measure, write_study
    from embgeo.workflows.train_tuning import read_tuned, tune_rates

    measure = geometry_measure(task.dataset.vocabulary.counts)
    with ExitStack() as stack:
        world = stack.enter_context(join_processes(task.settings.training.device))
        if world.leads:
            check_runs_folder(task.folder, resume=resume)
        monitor = monitor if world.leads else RunMonitor()
        task = replace(task, tuned=read_tuned(task))
        if world.leads:
            check_runs(task)
            write_study_settings(task.settings, task.folder)
        try:
            task = tune_rates(task, measure, monitor, leads=world.leads)
            diverged = train_runs(task, measure, monitor, leads=world.leads)
            if not world.leads:
                return None
            study, page = write_study(task, diverged, monitor.progress)
        except KeyboardInterrupt as error:
            plugins = [word for file in task.plugins for word in ("--plugin", str(file))]
            command = shlex.join(["embgeo", "train", "--resume", "-o", str(task.folder), *plugins])
            raise explain_interrupt(task.folder, command) from error
    return TrainedStudy(study, task.folder, page, diverged)


def train_runs(
    task: StudyTask, measure: Measure, monitor: RunMonitor, *, leads: bool
) -> dict[tuple[str, int], Diverged]:
    """Train and analyze every run, and return the diverged ones; Diverged if all did."""
    from embgeo.training.loop.loop import train_run
    from embgeo.workflows.train_study import analyze_embedding

    diverged: dict[tuple[str, int], Diverged] = {}
    total = len(task.runs)
    monitor.expect(total)
    for place, (method, seed) in enumerate(task.runs, 1):
        monitor.begin(place - 1)
        began = time.perf_counter()
        home = task.home(method, seed)
        try:
            result = train_run(
                task.run_settings(method, seed),
                task.dataset,
                home,
                measure=measure,
                progress=monitor.progress,
                command=task.command,
            )
        except Diverged as error:
            if total == len(diverged) + 1:
                raise
            diverged[method, seed] = error
            monitor.say(f"{place}/{total}  {method}, seed {seed}: {error.cause}")
            continue
        monitor.done(place)
        if leads:
            device = task.settings.training.device
            analyze_embedding(home, device, task.command, monitor.progress)
            seconds = time.perf_counter() - began
            monitor.say(f"{place}/{total}  {describe_run(result)} ({seconds:.0f} s)")
    return diverged


def describe_run(result: RunResult) -> str:
    from embgeo.training.study.deciding import spell_score

    value, split = result.valid.get(result.quality), "validation"
    if value is None:
        value, split = (result.test or {}).get(result.quality), "test"
    shown = "unknown" if value is None else format_number(value)
    return f"{result.method}, seed {result.seed}: {split} {spell_score(result.quality)} {shown}"

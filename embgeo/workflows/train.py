"""Training language models with published methods, and comparing what they did.

Each run is trained, then analyzed as :func:`embgeo.analyze` does it; the runs side by side are a
study, with a report.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.errors import Diverged, EmbgeoError
from embgeo.core.number_text import format_duration
from embgeo.core.progress import Progress
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
    from embgeo.training.loop.planning import RunBudget
    from embgeo.training.loop.session import Measure
    from embgeo.training.settings import StudySettings
    from embgeo.training.study.run_result import RunResult
    from embgeo.training.study.training import Training
    from embgeo.training.tasks import Dataset


@dataclass(frozen=True, slots=True)
class TrainedStudy:
    """What a training left behind.

    Attributes
    ----------
    study : Training
        Runs and methods side by side, and the claims of papers.
    folder : Path
        Of the runs, with ``training.json``.
    report : Path
        The page.
    diverged : dict of (str, int) to Diverged
        By method and seed, the runs that did not come to their end; the study is about the others.
    """

    study: Training
    folder: Path
    report: Path
    diverged: Mapping[tuple[str, int], Diverged]

    def error(self) -> EmbgeoError | None:
        """What is wrong with a study from which runs are missing; None if none is."""
        from embgeo.training.loop.session import CALMER

        if not self.diverged:
            return None
        names = ", ".join(f"{method} with seed {seed}" for method, seed in self.diverged)
        runs = len(self.diverged) + len(self.study.runs)
        return EmbgeoError(
            f"{len(self.diverged)} of {runs} runs diverged ({names}); the report is about the "
            "others",
            where=self.folder,
            way_out=CALMER,
        )


def train(
    data: Path | str | None = None,
    *,
    compare: Sequence[str] | str | None = None,
    preset: str | None = None,
    config: Path | str | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    seeds: int | None = None,
    budget: float | str | None = None,
    device: str | None = None,
    tune: Sequence[float] | str | None = None,
    start: Path | str | None = None,
    plugins: Sequence[Path | str] = (),
    out: Path | str | None = None,
    resume: bool = False,
    command: str = "",
    monitor: RunMonitor | None = None,
) -> TrainedStudy | None:
    """Train language models with each of several methods, and compare what they did.

    All methods start from the same weights and see the same text in the same order. Perplexity is
    evaluated, every embedding is analyzed, and one report says which method did what to both, and
    which claims of the papers held. It needs torch: ``pip install 'embgeo[train]'``.

    Parameters
    ----------
    data : path, optional
        A text file, or a folder with a training, validation and test split; may also stand in
        `config`, or be that of the runs which are resumed.
    compare : sequence of str, optional
        Methods by name, or their names with commas, such as ``"mle,cosreg,frage"``;
        docs/training.md lists all, as does the message about an unknown one.
    preset : str, optional
        Settings to begin with; by default "tiny-cpu".
    config : path, optional
        TOML settings; they override the preset.
    settings : mapping, optional
        Single settings, which stand over both: ``{"training.epochs": 3, "model": {"d": 64}}``.
    seeds : int, optional
        Train each method with seeds 0 … `seeds` − 1.
    budget : float or str, optional
        Seconds, or a time such as "5m", for all runs together; epochs are fitted to it.
    device : str, optional
        "cpu", "cuda", "mps" or "auto".
    tune : sequence of float or str, optional
        Learning rates, or "lr=1e-3,3e-3": each method is trained with each of them and the first
        seed, and takes the one with the lowest perplexity on the validation split.
    start : path, optional
        A finished run whose weights all begin with, or a folder of runs, of which each begins with
        that of its method and seed. The text is read with its vocabulary.
    plugins : sequence of path
        Files of Python code that register models, methods or tasks of your own, which are run; see
        docs/plugins.md. Nothing else is run: not what a folder or a file of settings names.
    out : path, optional
        Folder of the runs; by default the name of the text with ``.runs``, in the current folder.
    resume : bool
        Go on with the runs in `out`: finished ones are kept, settings that are not given are those
        they were begun with, methods and seeds may be added.
    command : str
        Recorded in the results.
    monitor : RunMonitor, optional
        Receives reports of the runs.

    Returns
    -------
    TrainedStudy or None
        None in a process of a distributed training that does not write.

    Raises
    ------
    BadOption
        Arguments or settings that make no sense, or a folder that holds something else.
    UnreadableFile
        A text or a file of settings that cannot be read.
    Diverged
        No run came to its end.
    EmbgeoError
        A file cannot be written; or the training was interrupted, and can be resumed.

    Examples
    --------
    >>> import embgeo
    >>> found = embgeo.train("wiki.txt", compare=["mle", "cosreg"], budget="5m")  # doctest: +SKIP
    >>> found.study.values("cosreg", "cosine.mean")  # doctest: +SKIP
    {0: 0.0052}
    """
    request = TrainRequest(
        data,
        compare=compare,
        preset=preset,
        config=config,
        settings=settings,
        seeds=seeds,
        budget=budget,
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
    monitor: RunMonitor | None = None,
    **arguments: Any,
) -> tuple[StudyTask, dict[str, Any]]:
    """What :func:`train` would do, and how long it takes; nothing is written.

    Parameters
    ----------
    data, command, **arguments
        As of :func:`train`.
    monitor : RunMonitor, optional
        Receives the time of each method as soon as it is known, with an estimate of all.

    Returns
    -------
    task : StudyTask
    plan : dict
        JSON-ready: corpus, model, epochs, seeds, methods with their sizes and seconds.
    """
    request = TrainRequest(data, **arguments)
    require_torch()
    from embgeo.training.plugins import naming_plugins

    with naming_plugins(request.plugins):
        return plan_study(prepare(request, command), monitor or RunMonitor())


def plan_study(task: StudyTask, monitor: RunMonitor) -> tuple[StudyTask, dict[str, Any]]:
    """The plan of a task."""
    from embgeo.training.loop.planning import plan_runs, settle
    from embgeo.workflows.train_study import geometry_measure

    measure = geometry_measure(task.dataset.vocabulary.counts)
    settings = settle(task.settings, task.dataset, task.folder, measure)
    monitor.expect(len(settings.compare))
    monitor.begin(0)

    def report(found: Sequence[RunBudget]) -> None:
        monitor.done(len(found))
        monitor.say(describe_estimate(settings, found))

    budgets = plan_runs(settings, task.dataset, measure, report)
    return task, describe_plan(settings, task.dataset, budgets)


def describe_estimate(settings: StudySettings, budgets: Sequence[RunBudget]) -> str:
    """The last of the methods that are timed so far, and what all take if the others are alike."""
    times = [each.seconds(settings) for each in budgets]
    methods = len(settings.compare)
    total = settings.runs_per_method * methods * sum(times) / len(times)
    return (
        f"{len(times)}/{methods}  {budgets[-1].method}: {format_duration(times[-1])} a run; about "
        f"{format_duration(total)} in all"
    )


def describe_plan(
    settings: StudySettings, dataset: Dataset, budgets: Sequence[RunBudget]
) -> dict[str, Any]:
    from embgeo.training.loop.run import describe_dataset

    methods = [{**asdict(budget), "seconds": budget.seconds(settings)} for budget in budgets]
    return {
        "corpus": describe_dataset(dataset),
        "model": settings.tables()["model"],
        "epochs": settings.training.epochs,
        "seeds": list(settings.seeds),
        "methods": methods,
        "rates": list(settings.tune.lr),
        "seconds": settings.runs_per_method * sum(each["seconds"] for each in methods),
    }


def require_torch() -> None:
    """EmbgeoError in one line where the packages that train are missing."""
    from importlib.util import find_spec

    missing = [name for name in ("torch", "tomli_w") if find_spec(name) is None]
    if missing:
        raise EmbgeoError(
            f"training needs {' and '.join(missing).replace('tomli_w', 'tomli-w')}, which is not "
            "installed",
            way_out="pip install 'embgeo[train]'",
        )


def train_study(task: StudyTask, monitor: RunMonitor, *, resume: bool) -> TrainedStudy | None:
    """All runs of a task, then the study with its report."""
    from embgeo.training.loop.planning import settle
    from embgeo.training.loop.process import join_processes
    from embgeo.training.loop.run import write_study_settings
    from embgeo.workflows.train_study import geometry_measure, write_study
    from embgeo.workflows.train_tuning import read_tuned, tune_rates

    measure = geometry_measure(task.dataset.vocabulary.counts)
    with ExitStack() as stack:
        world = stack.enter_context(join_processes(task.settings.training.device))
        if world.leads:
            check_runs_folder(task.folder, resume=resume)
        settings = settle(task.settings, task.dataset, task.folder, measure)
        task = replace(task, settings=settings)
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
            how = shlex.join(["embgeo", "train", "--resume", "-o", str(task.folder), *plugins])
            raise explain_interrupt(task.folder, how) from error
    return TrainedStudy(study, task.folder, page, diverged)


def train_runs(
    task: StudyTask, measure: Measure, monitor: RunMonitor, *, leads: bool
) -> dict[tuple[str, int], Diverged]:
    """Train and analyze every run; those that diverged.

    Raises
    ------
    Diverged
        All of them did.
    """
    from embgeo.workflows.train_study import analyze_embedding

    diverged: dict[tuple[str, int], Diverged] = {}
    total = len(task.runs)
    monitor.expect(total)
    for place, (method, seed) in enumerate(task.runs, 1):
        monitor.begin(place - 1)
        began = time.perf_counter()
        try:
            result = train_one(task, method, seed, measure, monitor.progress)
        except Diverged as error:
            if total == len(diverged) + 1:
                raise
            diverged[method, seed] = error
            monitor.say(f"{place}/{total}  {method}, seed {seed}: {error.cause}")
            continue
        monitor.done(place)
        if leads:
            device = task.settings.training.device
            analyze_embedding(task.home(method, seed), device, task.command, monitor.progress)
            seconds = time.perf_counter() - began
            monitor.say(f"{place}/{total}  {describe_run(result)} ({seconds:.0f} s)")
    return diverged


def train_one(
    task: StudyTask, method: str, seed: int, measure: Measure, progress: Progress
) -> RunResult:
    """One run; what is there already is left as it is."""
    from embgeo.training.loop.run import train_run

    return train_run(
        task.run_settings(method, seed),
        task.dataset,
        task.home(method, seed),
        measure=measure,
        progress=progress,
        command=task.command,
    )


def describe_run(result: RunResult) -> str:
    """The line of a finished run."""
    from embgeo.training.study.deciding import spell_score

    value, split = result.valid.get(result.quality), "validation"
    if value is None:
        value, split = (result.test or {}).get(result.quality), "test"
    shown = "unknown" if value is None else format_number(value)
    return f"{result.method}, seed {result.seed}: {split} {spell_score(result.quality)} {shown}"

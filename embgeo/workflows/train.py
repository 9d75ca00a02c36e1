"""``embgeo.train``: training with published methods, and the study of the runs.

A run and its steps are in `embgeo.training.loop.loop`, whose `Trainer.loss` asks the task for the
loss of a step.
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.comparison.comparison import COMPARISON_NAME, Comparison, Member
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import BadOption, EmbgeoError, RunFailed, UnreadableFile, argument, writing
from embgeo.core.options import known_arguments
from embgeo.core.progress import Progress, RunMonitor
from embgeo.core.settings import parse_value
from embgeo.core.values import format_number
from embgeo.files.guard import cannot_read
from embgeo.files.saved import write_file
from embgeo.result.analysis import REPORT_NAME, load_analysis
from embgeo.training.complete import check_settings, complete_settings
from embgeo.training.limits import Few
from embgeo.training.plugins import naming_plugins
from embgeo.training.registry import add_controls, choose_reference, find_method
from embgeo.training.settings import STUDY_SETTINGS_NAME, StudySettings, read_settings
from embgeo.training.study.assemble import assemble_study
from embgeo.training.study.record import COMPARISON_FOLDER, STUDY, Study, StudyMethod
from embgeo.training.study.run_result import RunResult, read_run
from embgeo.training.study.wording import spell_score
from embgeo.workflows.folders import (
    COMPARISON_FILES,
    ELSEWHERE,
    choose_folder,
    is_occupied,
    write_whole,
)
from embgeo.workflows.saved_analysis import load_analyzed_matrix
from embgeo.workflows.train_runs import RunsBeside, RunsHere, geometry_measure
from embgeo.workflows.train_settings import (
    Tuned,
    gather_settings,
    read_tuned,
    read_tuning,
    tune_settings,
)

if TYPE_CHECKING:
    from embgeo.training.tasks import Dataset

#: Methods that serve as the baseline, best first.
BASELINES = ("mle", "untied")


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
    failed : dict of (str, int) to RunFailed
        The runs that diverged or lacked memory, by method and seed; the study omits them.
    """

    study: Study
    folder: Path
    report: Path
    failed: Mapping[tuple[str, int], RunFailed]

    def error(self) -> EmbgeoError | None:
        """Return the error if runs failed, else None."""
        if not self.failed:
            return None
        names = ", ".join(f"{method} with seed {seed}" for method, seed in self.failed)
        lost = f"{len(self.failed)} of {len(self.failed) + len(self.study.runs)} runs"
        said = " or ".join(dict.fromkeys(why.HOW for why in self.failed.values()))
        cause = f"{lost} {said} ({names}); the report is about the others"
        way_out = "; ".join(dict.fromkeys(why.way_out for why in self.failed.values()))
        return EmbgeoError(cause, where=self.folder, way_out=way_out)


@known_arguments
def train(
    data: Path | str | None = None,
    *,
    compare: Sequence[str] | str | None = None,
    preset: str | None = None,
    config: Path | str | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    seeds: int | None = None,
    device: str | None = None,
    tune: Mapping[str, Sequence[Any]] | Sequence[str] | None = None,
    plugins: Sequence[Path | str] | None = (),
    out: Path | str | None = None,
    resume: bool = False,
    jobs: int = 1,
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
    tune : mapping or sequence of str, optional
        Values to try by setting: ``{"lr": [1e-3, 3e-3], "method.cosreg.gamma": [0.1, 1]}``, or
        texts such as "lr=1e-3,3e-3". Each method tries them with a seed of its own, one setting
        after the other, and takes the values with the best score on the validation split.
    plugins : sequence of path
        Files of Python code to run, which register your own models, methods or tasks; see
        docs/plugins.md. No other code is run, whatever a folder or a file of settings names.
    out : path, optional
        Folder of the runs; by default the name of the text with ``.runs``, in the current folder.
    resume : bool
        Whether to resume the runs in `out`. Finished runs are kept, settings are taken from the
        runs unless given, and methods and seeds may be added.
    jobs : int
        Number of runs side by side, each in a process of its own, on one GPU or several. All
        numbers are those of one run after the other.
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
    RunFailed
        If all runs diverged or lacked memory.
    EmbgeoError
        If a file cannot be written, or the training was interrupted and can be resumed.

    Examples
    --------
    >>> import embgeo
    >>> found = embgeo.train("wiki.txt", compare=["mle", "cosreg"], seeds=3)  # doctest: +SKIP
    >>> found.study.values("cosreg", "cosine.mean")  # doctest: +SKIP
    {0: 0.0052, 1: 0.0049, 2: 0.0051}
    """
    given: dict[str, Any] = locals() | {}  # by name; nothing else is local yet
    for name in ("jobs", "command", "monitor"):
        del given[name]
    require_torch()
    jobs = parse_value(jobs, Few, argument("jobs"))
    with naming_plugins(plugins):
        chosen, dataset, folder = prepare(**given)
        try:
            return train_study(
                chosen,
                dataset,
                folder,
                resume=resume,
                jobs=jobs,
                plugins=tuple(Path(file).resolve() for file in plugins or ()),
                command=command,
                monitor=monitor or RunMonitor(),
            )
        except KeyboardInterrupt as error:
            files = [word for file in plugins or () for word in ("--plugin", str(file))]
            again = shlex.join(["embgeo", "train", "--resume", "-o", str(folder), *files])
            raise explain_interrupt(folder, again) from error


def plan_training(data: Path | str | None = None, **arguments: Any) -> tuple[Path, dict[str, Any]]:
    """Return the folder and the runs of :func:`train` with these arguments; nothing is written.

    The plan is JSON-ready: corpus, model, epochs, seeds, methods with their sizes
    and steps.
    """
    require_torch()
    with naming_plugins(arguments.get("plugins")):
        settings, dataset, folder = prepare(data, **arguments)
        from embgeo.training.loop.check import plan_runs
        from embgeo.training.loop.facts import describe_dataset

        plan = {
            "corpus": describe_dataset(dataset),
            "model": settings.tables()["model"],
            "epochs": settings.training.epochs,
            "seeds": list(settings.seeds),
            "methods": plan_runs(settings, dataset),
            "tuned": {name: list(values) for name, values in settings.tune.items()},
        }
    return folder, plan


def require_torch() -> None:
    """Raise EmbgeoError if a package for training is missing."""
    missing = [name for name in ("torch", "tomli_w") if find_spec(name) is None]
    if missing:
        named = " and ".join(missing).replace("tomli_w", "tomli-w")
        verb = "is" if len(missing) == 1 else "are"
        cause = f"training needs {named}, which {verb} not installed"
        raise EmbgeoError(cause, way_out="pip install 'embgeo[train]'")


def prepare(
    data: Path | str | None = None,
    *,
    out: Path | str | None = None,
    resume: bool = False,
    **arguments: Any,
) -> tuple[StudySettings, Dataset, Path]:
    """Complete settings, the text and the folder of a study, checked before anything is trained."""
    given = gather_settings(data, out=out, resume=resume, **arguments)
    where = "compare" if arguments.get("compare") is None else argument("compare")
    methods = add_controls(given.compare, given.method, where)
    given = check_settings(given.updated({"compare": list(methods)}))
    if not given.data.path:
        way_out = f"give a file or a folder with {argument('data')}"
        raise BadOption("no text is given", way_out=way_out)
    path = Path(given.data.path)
    lost = resume and data is None and not path.exists()
    cause = "the text of the runs was not found from the current folder"
    refuse_if(lost, str(path), cause, f"name it with {argument('data')}")
    try:
        path.stat()
    except OSError as error:
        raise cannot_read(path, error) from error
    except ValueError as error:  # of a name with a NUL
        raise UnreadableFile("is not a file name", where=repr(str(path))) from error
    # Imported with torch, which the refusal of a misspelled setting need not wait for.
    from embgeo.training.loop.check import check_study
    from embgeo.training.tasks import make_task

    settings = complete_settings(given)
    dataset = make_task(settings).load(settings)
    check_study(settings, dataset)
    name = path.resolve().name
    usual = f"{name.partition('.')[0] or name or 'text'}.runs"
    return settings, dataset, choose_folder(None if out is None else Path(out), Path(usual))


def train_study(
    settings: StudySettings,
    dataset: Dataset,
    folder: Path,
    *,
    resume: bool,
    jobs: int,
    plugins: tuple[Path, ...],
    command: str,
    monitor: RunMonitor,
) -> TrainedStudy | None:
    """Train all runs, then write the study with its report; None in all processes but the first."""
    from embgeo.training.loop.checkpoint import make_folder, write
    from embgeo.training.loop.distributed import join_processes

    measure = geometry_measure(dataset.vocabulary.counts)
    with join_processes(settings.training.device) as world:
        where, way_out = argument("jobs"), "leave it out: torchrun's processes train a run together"
        refuse_if(world.size > 1 and jobs > 1, where, "is for one process", way_out)
        if world.leads:
            check_runs_folder(folder, resume=resume)
            check_runs(settings, dataset, folder, read_tuned(settings, folder))
            make_folder(folder)
            write(folder / STUDY_SETTINGS_NAME, settings.text().encode())
        else:
            monitor = RunMonitor()
        if jobs == 1:
            runs: RunsHere | RunsBeside = RunsHere(dataset, measure, command, monitor, world)
        else:
            runs = RunsBeside(settings, plugins, command, monitor, world, jobs)
        tuned = tune_settings(settings, folder, runs)
        failed = train_every_run(settings, folder, tuned, runs)
        if not world.leads:
            return None
        study, page = write_study(settings, folder, failed, command, monitor.progress)
    return TrainedStudy(study, folder, page, failed)


def check_runs_folder(folder: Path, *, resume: bool) -> None:
    """Refuse, before anything is computed, a folder to which runs cannot be added."""
    empty, ours = not is_occupied(folder), (folder / "train.toml").is_file()
    again, where = argument("resume"), str(folder)
    refuse_if(resume and empty, where, "holds no runs", f"leave out {again}")
    refuse_if(ours and not resume, where, "holds runs", f"resume them with {again}, or {ELSEWHERE}")
    # In a folder of unknown origin they may lead anywhere, and what is written would follow.
    link = next((path for path in folder.rglob("*") if path.is_symlink()), None)
    refuse_if(link is not None, str(link), "is a link", "put the file or folder itself there")
    refuse_if(not (empty or ours), where, "exists and holds something other than runs", ELSEWHERE)


def check_runs(settings: StudySettings, dataset: Dataset, folder: Path, tuned: Tuned) -> None:
    """Refuse settings that differ from existing runs, before anything is written."""
    from embgeo.training.loop.checkpoint import (
        RUN_NAME,
        identity,
        read_identity,
        require_same,
        run_folder,
    )

    for method, seed in settings.runs:
        home = run_folder(folder, method, seed)
        now = settings.one(method, seed, tuned.get(method, {})).tables()
        known = read_identity(home)
        if known is not None:
            require_same(known, identity(now, dict(dataset.files)), home)
        elif (home / RUN_NAME).is_file():
            before = read_settings(home / RUN_NAME).tables()
            require_same(identity(before, {}), identity(now, {}), home)


def explain_interrupt(folder: Path, command: str) -> EmbgeoError:
    """Return the error of an interrupted training, with the command that resumes it."""
    if not (folder / "train.toml").is_file():  # which is written first
        return EmbgeoError("interrupted; nothing was written")
    kept = any(any(folder.glob(f"*/seed-*/{name}")) for name in ("state.pt", "result.json"))
    state = "what was trained is kept" if kept else "no state was saved yet"
    return EmbgeoError(f"interrupted; {state}", way_out=f"resume it with: {command}")


def train_every_run(
    settings: StudySettings,
    folder: Path,
    tuned: Mapping[str, Mapping[str, Any]],
    runs: RunsHere | RunsBeside,
) -> dict[tuple[str, int], RunFailed]:
    """Train and analyze every run with the tuned settings of its method.

    Returns the runs that failed; raises the error of the last one if all did.
    """
    from embgeo.training.loop.checkpoint import run_folder

    failed: dict[tuple[str, int], RunFailed] = {}
    total, say = len(settings.runs), runs.monitor.say
    waiting = [
        (settings.one(method, seed, tuned.get(method, {})), run_folder(folder, method, seed))
        for method, seed in settings.runs
    ]
    began = time.perf_counter()
    for behind, (place, outcome) in enumerate(runs.train(waiting, analyzed=True), 1):
        method, seed = settings.runs[place]
        if isinstance(outcome, RunFailed):
            if total == len(failed) + 1:
                raise outcome
            failed[method, seed] = outcome
            say(f"{behind}/{total}  {method}, seed {seed}: {outcome.cause}")
        elif runs.group.leads:
            seconds = time.perf_counter() - began
            say(f"{behind}/{total}  {describe_run(outcome)} ({seconds:.0f} s)")
            began = time.perf_counter()
    return failed


def describe_run(result: RunResult) -> str:
    value, split = result.valid.get(result.quality), "validation"
    if value is None:
        value, split = (result.test or {}).get(result.quality), "test"
    shown = "unknown" if value is None else format_number(value)
    return f"{result.method}, seed {result.seed}: {split} {spell_score(result.quality)} {shown}"


# --- the record, the comparison and the report --------------------------------------------------


def write_study(
    settings: StudySettings,
    folder: Path,
    failed: Mapping[tuple[str, int], RunFailed],
    command: str,
    progress: Progress,
) -> tuple[Study, Path]:
    """Write ``training.json``, the comparison of the embeddings and the report; return its path.

    At least one run did not fail.
    """
    from embgeo.report.study import render
    from embgeo.training.loop.checkpoint import MAKE_ROOM, offer_resume

    study = make_study(settings, folder, failed, command)
    progress.start("comparing the embeddings", 0)
    comparison = compare_embeddings(study, folder, command, progress)
    home, report = folder / COMPARISON_FOLDER, folder / REPORT_NAME
    with offer_resume():
        STUDY.save(study, folder)
    if comparison is not None:
        write_whole(home, comparison.save, COMPARISON_FILES, MAKE_ROOM)
    elif (home / COMPARISON_NAME).is_file():  # of earlier runs
        shutil.rmtree(home, ignore_errors=True)
    page = render(study, comparison)
    with writing(report, MAKE_ROOM):
        write_file(report, page)
    return study, report


def make_study(
    settings: StudySettings,
    folder: Path,
    failed: Mapping[tuple[str, int], RunFailed],
    command: str,
) -> Study:
    from embgeo.training.loop.checkpoint import run_folder

    kept = [run for run in settings.runs if run not in failed]
    names = order_methods(tuple(dict.fromkeys(name for name, _ in kept)))
    trained = [
        read_run(folder, run_folder(folder, name, seed))
        for name in names
        for seed in settings.seeds
        if (name, seed) in kept
    ]
    found = {name: find_method(name, settings.method) for name in names}
    tuned = {name: read_tuning(folder, name, settings.list_tuned(name)) for name in names}
    methods = [
        StudyMethod(
            name,
            method.title,
            choose_reference(name, tuple(names), settings.method),
            method.role,
            tried=() if (tuning := tuned[name]) is None else tuning.tried,
        )
        for name, method in found.items()
    ]
    provenance = {"command": command, "settings": settings.tables()}
    lost = [f"{name}, seed {seed}: {why.cause}" for (name, seed), why in failed.items()]
    study = assemble_study(trained, methods, provenance, lost)
    missing = describe_missing({name: method.reference for name, method in found.items()})
    return replace(study, notes=(*missing, *study.notes))


def describe_missing(controls: Mapping[str, str]) -> tuple[str, ...]:
    """Write a note on each control that was not trained, given the methods with theirs.

    Controls of other methods are trained for these: they need no control themselves.
    """
    without: dict[str, list[str]] = {}
    for name, control in controls.items():
        if control and control not in controls and name not in controls.values():
            without.setdefault(control, []).append(name)
    return tuple(
        f"no difference is shown for {', '.join(names)}: {control}, the control, has no run here; "
        f"--resume --compare {control} adds one"
        for control, names in without.items()
    )


def order_methods(names: tuple[str, ...]) -> list[str]:
    """Return the baseline first, the others in their order."""
    first = next((name for name in BASELINES if name in names), names[0])
    return [first, *(name for name in names if name != first)]


def compare_embeddings(
    study: Study, folder: Path, command: str, progress: Progress
) -> Comparison | None:
    """Compare the embeddings of the first seed that all methods have, then other matrices.

    None for a single method, or without such a seed.
    """

    from embgeo.comparison.compare import compare

    if len(study.methods) < 2 or study.shown_seed is None:
        return None
    names = [method.name for method in study.methods]
    homes = {name: folder / study.choose_shown_run(name).folder for name in names}
    others = {
        f"{name} ({role})": homes[name] / role for name in names for role in study.roles(name)[1:]
    }
    inputs = []
    for name, home in {**homes, **others}.items():
        analysis = load_analysis(home)
        matrix, absent = load_analyzed_matrix(analysis, home)
        member = Member(name, str(home), analysis, True, absent)
        inputs.append((member, matrix))
    return compare(inputs, command=command, progress=progress)

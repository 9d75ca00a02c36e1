"""All runs of a comparison: each is trained, then analyzed as ``embgeo analyze`` would do it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.cli.shared import command_line
from embgeo.cli.train_compare import combine
from embgeo.cli.train_folder import check_runs_folder, interrupted
from embgeo.cli.train_geometry import geometry
from embgeo.cli.train_progress import Watch, watch
from embgeo.cli.train_settings import Given
from embgeo.cli.train_summary import plan_text, summary
from embgeo.core.errors import BadOption, Diverged, EmbgeoError, UnreadableFile
from embgeo.core.values import format_number

if TYPE_CHECKING:
    from embgeo.core.progress import Progress
    from embgeo.training.data import Corpus
    from embgeo.training.loop.budget import Plan
    from embgeo.training.loop.hooks import Measure
    from embgeo.training.settings.study_settings import StudySettings
    from embgeo.training.study.run_result import RunResult


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be trained, and where.

    Attributes
    ----------
    config : StudySettings
    corpus : Corpus
    folder : Path
    """

    config: StudySettings
    corpus: Corpus
    folder: Path

    @property
    def runs(self) -> list[tuple[str, int]]:
        """Method and seed of every run; all methods of one seed before the next."""
        return [(method, seed) for seed in self.config.seeds for method in self.config.compare]


def prepared(given: Given) -> Task:
    """Settings and text.

    Raises
    ------
    EmbgeoError
    """
    from embgeo.training.data import load_corpus
    from embgeo.training.loop.rehearsal import rehearse
    from embgeo.training.settings.resolve import resolve

    config = resolve(given.settings())
    if not config.data.path:
        raise BadOption("no text is given", way_out="give a file or a folder with --data")
    path = Path(config.data.path)
    if given.resume and given.data is None and not path.exists():
        raise BadOption(
            "the text that the runs were begun with is not there, seen from here",
            where=path,
            way_out="say where it is with --data",
        )
    chosen = config.data
    corpus = load_corpus(
        path,
        unit=chosen.unit,
        min_count=chosen.min_count,
        size=chosen.size,
        tokenizer=None if chosen.tokenizer is None else Path(chosen.tokenizer),
        tokens=chosen.tokens,
    )
    rehearse(config, corpus)
    return Task(config, corpus, given.folder(path))


def foretell(given: Given, *, json_: bool) -> None:
    """``--dry-run``: sizes, steps and an estimate."""
    from embgeo.training.loop.budget import plans, settled

    task = prepared(given)
    measure = geometry(task.corpus.vocabulary.counts)
    config = settled(task.config, task.corpus, task.folder, measure)
    plan = plan_of(config, task.corpus, plans(config, task.corpus, measure))
    print(json.dumps(plan, indent=1) if json_ else plan_text(plan, task.folder))


def plan_of(config: StudySettings, corpus: Corpus, plans: Sequence[Plan]) -> dict[str, Any]:
    """What is going to be trained, JSON-ready."""
    from embgeo.training.loop.run import corpus_facts

    methods = [{**asdict(plan), "seconds": plan.seconds(config)} for plan in plans]
    return {
        "corpus": corpus_facts(corpus),
        "model": config.tables()["model"],
        "epochs": config.training.epochs,
        "seeds": list(config.seeds),
        "methods": methods,
        "seconds": len(config.seeds) * sum(each["seconds"] for each in methods),
    }


def compare_methods(given: Given, *, json_: bool, quiet: bool) -> None:
    """Train, analyze, compare, and say what came of it."""
    from embgeo.training.loop.budget import settled
    from embgeo.training.loop.distributed import joined
    from embgeo.training.loop.run import write_comparison
    from embgeo.training.study.files import training_to_json

    task = prepared(given)
    measure = geometry(task.corpus.vocabulary.counts)
    with ExitStack() as stack:
        world = stack.enter_context(joined(task.config.training.device))
        if world.leads:
            check_runs_folder(task.folder, resume=given.resume)
        task = replace(task, config=settled(task.config, task.corpus, task.folder, measure))
        watching = stack.enter_context(watch(len(task.runs), quiet or not world.leads))
        if world.leads:
            check_runs(task)
            write_comparison(task.config, task.folder)
        lost: dict[tuple[str, int], Diverged] = {}
        try:
            for place, run in enumerate(task.runs):
                try:
                    train_one(task, place, measure, watching, leads=world.leads)
                except Diverged as error:
                    if len(task.runs) == len(lost) + 1:
                        raise
                    lost[run] = error
                    watching.say(
                        f"{place + 1}/{len(task.runs)}  {run[0]}, seed {run[1]}: {error.cause}"
                    )
            if not world.leads:
                return
            training, page = combine(task, lost, watching.progress)
        except KeyboardInterrupt as error:
            raise interrupted(task.folder, f"embgeo train --resume -o {task.folder}") from error
    if json_:
        print(json.dumps(training_to_json(training), indent=1, allow_nan=False))
    elif not quiet:
        summary(training, page)
    if lost:
        raise incomplete(task, lost)


def incomplete(task: Task, lost: Mapping[tuple[str, int], Diverged]) -> EmbgeoError:
    """What is said of a comparison from which runs are missing."""
    from embgeo.training.loop.session import CALMER

    names = ", ".join(f"{method} with seed {seed}" for method, seed in lost)
    return EmbgeoError(
        f"{len(lost)} of {len(task.runs)} runs diverged ({names}); the report is about the others",
        where=task.folder,
        way_out=CALMER,
    )


def check_runs(task: Task) -> None:
    """Refuse settings that are not those of the runs that are there, before anything is written.

    Raises
    ------
    BadOption
    """
    from embgeo.training.loop.checkpoint import identity, require_same
    from embgeo.training.loop.run import RUN_NAME, begun_with, run_folder
    from embgeo.training.settings.study_settings import read_settings

    for method, seed in task.runs:
        home = run_folder(task.folder, method, seed)
        now = task.config.one(method, seed).tables()
        known = begun_with(home)
        if known is not None:
            require_same(known, identity(now, task.corpus.files), home)
        elif (home / RUN_NAME).is_file():
            require_same(
                identity(read_settings(home / RUN_NAME).tables(), {}), identity(now, {}), home
            )


def train_one(task: Task, place: int, measure: Measure, watching: Watch, *, leads: bool) -> None:
    """One run and the analysis of its embedding; what is there already is left as it is."""
    from embgeo.training.loop.run import run_folder, train

    method, seed = task.runs[place]
    folder = run_folder(task.folder, method, seed)
    watching.begin(place)
    began = time.perf_counter()
    result = train(
        task.config.one(method, seed),
        task.corpus,
        folder,
        measure=measure,
        progress=watching.progress,
        command=command_line(),
    )
    watching.done(place + 1)
    if not leads:
        return
    analyze(folder, task.config.training.device, watching.progress)
    watching.say(told(result, place + 1, len(task.runs), time.perf_counter() - began))


def told(result: RunResult, done: int, runs: int, seconds: float) -> str:
    """The line of a finished run."""
    perplexity = result.valid.get("perplexity")
    shown = "unknown" if perplexity is None else format_number(perplexity)
    return (
        f"{done}/{runs}  {result.method}, seed {result.seed}: validation perplexity {shown} "
        f"({seconds:.0f} s)"
    )


def analyze(folder: Path, device: str, progress: Progress) -> None:
    """The analysis of a run's embedding, in the folder of the run, unless it is there."""
    import embgeo
    from embgeo.stats.resources import Resources
    from embgeo.training.loop.run import VOCABULARY_NAME
    from embgeo.training.loop.saving import MODEL_NAME

    model = folder / MODEL_NAME
    if not model.is_file():
        raise UnreadableFile(
            f"the run is finished, but its {MODEL_NAME} is gone",
            where=folder,
            way_out="take this folder away, and train it again with --resume",
        )
    if is_analyzed(folder, model):
        return
    matrix = embgeo.load(model, counts=folder / VOCABULARY_NAME)
    embgeo.analyze(
        matrix,
        command=command_line(),
        progress=progress,
        resources=Resources(device=device_of_passes(device)),
    ).save(folder)


def device_of_passes(device: str) -> str:
    """Where analyses run: on the CUDA device that trained, else on the CPU."""
    from embgeo.training.loop.device import device_of

    found = device_of(device)
    return str(found) if found.type == "cuda" and has_array_api() else "cpu"


def has_array_api() -> bool:
    from importlib.util import find_spec

    return find_spec("array_api_compat") is not None


def is_analyzed(folder: Path, model: Path) -> bool:
    """Whether the folder holds an analysis of this very file."""
    from embgeo.io.bounded.records import ARRAYS_NAME
    from embgeo.result.saved import JSON_NAME

    try:
        said: Any = json.loads((folder / JSON_NAME).read_text(encoding="utf-8"))
        own = said["provenance"]["sha256"] if (folder / ARRAYS_NAME).is_file() else None
    except (OSError, ValueError, LookupError, TypeError):
        return False
    with model.open("rb") as stream:
        return bool(hashlib.file_digest(stream, "sha256").hexdigest() == own)

"""From finished runs to one comparison: its files and its report."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.cli.shared import command_line
from embgeo.core.errors import Diverged, EmbgeoError
from embgeo.workflows.folders import replace_comparison

if TYPE_CHECKING:
    from embgeo.cli.train_runs import Task
    from embgeo.comparison.comparison import Comparison
    from embgeo.core.progress import Progress
    from embgeo.training.study.training import Training

#: Method and seed of runs without an end.
Lost = Mapping[tuple[str, int], Diverged]

#: What a baseline is, the best first.
BASELINES = ("mle", "untied")


def combine(task: Task, lost: Lost, progress: Progress) -> tuple[Training, Path]:
    """``training.json``, the comparison of the embeddings, and the report; its path.

    Parameters
    ----------
    task : Task
    lost : dict of (str, int) to Diverged
        Method and seed of the runs that did not come to their end; some others did.
    progress : Progress

    Raises
    ------
    EmbgeoError
    """
    from embgeo.comparison.files import COMPARISON_NAME
    from embgeo.report.training import write
    from embgeo.training.study.files import COMPARISON_FOLDER, save_training

    training = training_of_runs(task, lost)
    progress.start("comparing the embeddings", 0)
    compared = comparison_of_runs(training, task, progress)
    save_training(training, task.folder)
    earlier = task.folder / COMPARISON_FOLDER
    if compared is not None:
        save_beside(compared, task.folder)
    elif (earlier / COMPARISON_NAME).is_file():  # of other runs than those of the report
        shutil.rmtree(earlier, ignore_errors=True)
    return training, write(training, compared, task.folder)


def in_order(names: tuple[str, ...]) -> list[str]:
    """The baseline first, then as they were named."""
    first = next((name for name in BASELINES if name in names), names[0])
    return [first, *(name for name in names if name != first)]


def training_of_runs(task: Task, lost: Lost) -> Training:
    """Everything the runs say, side by side."""
    from embgeo.result.analysis import load_analysis
    from embgeo.training.loop.run import run_folder
    from embgeo.training.methods.published import method, reference_of
    from embgeo.training.study.making import Trained, training_of
    from embgeo.training.study.reading import read_run

    kept = [run for run in task.runs if run not in lost]
    names = in_order(tuple(dict.fromkeys(name for name, _ in kept)))
    trained = []
    for name in names:
        for seed in task.config.seeds:
            if (name, seed) in lost:
                continue
            home = run_folder(task.folder, name, seed)
            place = home.relative_to(task.folder).as_posix()
            trained.append(Trained(place, read_run(home), load_analysis(home)))
    references = {name: reference_of(name, tuple(names)) or "" for name in names}
    titles = {name: method(name).title for name in names}
    told = [f"{name}, seed {seed}: {why.cause}" for (name, seed), why in lost.items()]
    return training_of(trained, references, titles, provenance(task), told)


def provenance(task: Task) -> dict[str, Any]:
    return {"command": command_line(), "settings": task.config.tables()}


def comparison_of_runs(training: Training, task: Task, progress: Progress) -> Comparison | None:
    """The embeddings of the first seed that all have; None of a single method, or of no seed."""
    from embgeo.comparison.compare import compare_inputs
    from embgeo.comparison.comparison import Member
    from embgeo.comparison.originals import original
    from embgeo.comparison.pairs import ComparisonInput
    from embgeo.result.analysis import load_analysis

    if len(training.methods) < 2 or training.shown_seed is None:
        return None
    inputs = []
    for method in training.methods:
        home = task.folder / training.shown_run(method.name).folder
        analysis = load_analysis(home)
        matrix, absent = original(analysis, home)
        inputs.append(
            ComparisonInput(Member(method.name, str(home), analysis, True, absent), matrix)
        )
    return compare_inputs(inputs, command=command_line(), progress=progress)


def save_beside(comparison: Comparison, folder: Path) -> None:
    """Write the comparison into its folder, in the place of an earlier one.

    Raises
    ------
    EmbgeoError
    """
    from embgeo.comparison.files import COMPARISON_NAME, save_comparison
    from embgeo.training.study.files import COMPARISON_FOLDER

    target = folder.absolute() / COMPARISON_FOLDER
    fresh = Path(tempfile.mkdtemp(prefix=f".{COMPARISON_FOLDER}.", dir=folder))
    try:
        save_comparison(comparison, fresh)
        target.mkdir(exist_ok=True)
        if (target / COMPARISON_NAME).is_file():
            replace_comparison(fresh, target)
        else:
            for path in sorted(fresh.iterdir(), key=lambda path: path.name == COMPARISON_NAME):
                path.replace(target / path.name)
    except OSError as error:
        raise EmbgeoError(
            f"cannot be written: {error.strerror or error}",
            where=target,
            way_out="make room, and go on with --resume",
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)

"""The record, the comparison and the report of a study."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.comparison.comparison import COMPARISON_NAME, Comparison, Member
from embgeo.core.errors import RunFailed, argument
from embgeo.files.saved import write_text
from embgeo.result.analysis import REPORT_NAME, load_analysis
from embgeo.workflows.folders import COMPARISON_FILES, write_whole
from embgeo.workflows.saved_analysis import load_analyzed_matrix
from embgeo.workflows.train_tuning import read_tuning

if TYPE_CHECKING:
    from embgeo.core.progress import Progress
    from embgeo.training.settings import StudySettings
    from embgeo.training.study.record import Study

#: Methods that serve as the baseline, best first.
BASELINES = ("mle", "untied")


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
    from embgeo.training.study.record import COMPARISON_FOLDER, STUDY

    study = make_study(settings, folder, failed, command)
    progress.start("comparing the embeddings", 0)
    comparison = compare_embeddings(study, folder, command, progress)
    STUDY.save(study, folder)
    home = folder / COMPARISON_FOLDER
    if comparison is not None:
        way_out = f"make room, and resume with {argument('resume')}"
        write_whole(home, comparison.save, COMPARISON_FILES, way_out)
    elif (home / COMPARISON_NAME).is_file():  # of earlier runs
        shutil.rmtree(home, ignore_errors=True)
    report = folder / REPORT_NAME
    write_text(report, render(study, comparison))
    return study, report


def make_study(
    settings: StudySettings,
    folder: Path,
    failed: Mapping[tuple[str, int], RunFailed],
    command: str,
) -> Study:
    from embgeo.training.loop.checkpoint import run_folder
    from embgeo.training.methods.definitions import choose_reference, find_method
    from embgeo.training.study.assemble import assemble_study
    from embgeo.training.study.record import StudyMethod
    from embgeo.training.study.run_result import read_run

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

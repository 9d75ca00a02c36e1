"""Measuring runs: geometry during training, analyses afterwards, and the study of all runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.saved import COMPARISON_NAME
from embgeo.core.errors import Diverged, UnreadableFile, argument
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum, subspace
from embgeo.io import load, open_checkpoint
from embgeo.io.bounded.records import ARRAYS_NAME, digest_of
from embgeo.io.bounded.saved import write_text
from embgeo.result.analysis import REPORT_NAME, load_analysis
from embgeo.result.saved import JSON_NAME
from embgeo.training.study.log import name_of_output
from embgeo.workflows.folders import COMPARISON_FILES, write_whole
from embgeo.workflows.saved_analysis import load_analyzed_matrix
from embgeo.workflows.train_task import StudyTask

if TYPE_CHECKING:
    from embgeo.core.progress import Progress
    from embgeo.training.study.record import Study


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
    """A function that measures an embedding and, of an untied model, the output matrix.

    :func:`embgeo.training.loop.loop.train_run` calls it; `counts` are token counts of the training
    split.
    """
    from embgeo.core.options import Options
    from embgeo.metrics.skipping import skip_unneeded
    from embgeo.workflows.analyze import analyze

    counted = Frequency("counts", np.asarray(counts, dtype=np.float64), "the training split")
    options = skip_unneeded(Options(), (*MEASURED, OF_TWO))
    families = tuple(dict.fromkeys(name.partition(".")[0] for name in (*MEASURED, OF_TWO)))

    def of_matrix(matrix: Matrix) -> dict[str, float]:
        analysis = analyze(matrix, sections=families, options=options, reference=False)
        found = {name: analysis.scalar(name) for name in (*MEASURED, OF_TWO)}
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
        return own | {name_of_output(name): value for name, value in of_matrix(twin).items()}

    return measure


#: Methods that serve as the baseline, best first.
BASELINES = ("mle", "untied")


def analyze_embedding(folder: Path, device: str, command: str, progress: Progress) -> None:
    """Analyze the matrices of a run, unless their analyses are in its folder.

    The analyses of an output matrix and a source embedding are in folders inside.
    """
    from embgeo.stats.resources import Resources
    from embgeo.training.loop.checkpoint import MODEL_NAME, SOURCE_NAME, VOCABULARY_NAME
    from embgeo.training.study.run_result import OUTPUT_FOLDER, SOURCE_FOLDER
    from embgeo.training.tasks.encoder_decoder import SOURCE_TENSOR
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
            analysis.save(folder / place)


def choose_pass_device(device: str) -> str:
    """The device of analyses: the CUDA device that trained, else the CPU."""
    from embgeo.training.loop.distributed import find_device

    found = find_device(device)
    has_array_api = find_spec("array_api_compat") is not None
    return str(found) if found.type == "cuda" and has_array_api else "cpu"


def is_analyzed(folder: Path, model: Path) -> bool:
    """Whether the folder holds an analysis of this file, by its hash."""
    try:
        content: Any = json.loads((folder / JSON_NAME).read_text(encoding="utf-8"))
        own = content["provenance"]["sha256"] if (folder / ARRAYS_NAME).is_file() else None
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return digest_of(model) == own


def write_study(
    task: StudyTask, diverged: Mapping[tuple[str, int], Diverged], progress: Progress
) -> tuple[Study, Path]:
    """Write ``training.json``, the comparison of the embeddings and the report; return its path.

    At least one run did not diverge.
    """
    from embgeo.report.study import render
    from embgeo.training.study.record import COMPARISON_FOLDER, STUDY

    study = make_study(task, diverged)
    progress.start("comparing the embeddings", 0)
    comparison = compare_embeddings(study, task, progress)
    STUDY.save(study, task.folder)
    folder = task.folder / COMPARISON_FOLDER
    if comparison is not None:
        way_out = f"make room, and resume with {argument('resume')}"
        write_whole(folder, comparison.save, COMPARISON_FILES, way_out)
    elif (folder / COMPARISON_NAME).is_file():  # of earlier runs
        shutil.rmtree(folder, ignore_errors=True)
    report = task.folder / REPORT_NAME
    write_text(report, render(study, comparison))
    return study, report


def make_study(task: StudyTask, diverged: Mapping[tuple[str, int], Diverged]) -> Study:
    """The study of the runs that did not diverge."""
    from embgeo.training.methods.definitions import choose_reference, find_method
    from embgeo.training.study.assemble import assemble_study
    from embgeo.training.study.record import StudyMethod
    from embgeo.training.study.run_result import read_run
    from embgeo.workflows.train_tuning import read_tried

    kept = [run for run in task.runs if run not in diverged]
    names = order_methods(tuple(dict.fromkeys(name for name, _ in kept)))
    trained = [
        read_run(task.folder, task.home(name, seed))
        for name in names
        for seed in task.settings.seeds
        if (name, seed) in kept
    ]
    tables = task.settings.method
    methods = [
        StudyMethod(
            name,
            find_method(name, tables).title,
            choose_reference(name, tuple(names), tables),
            find_method(name, tables).role,
            tried=read_tried(task, name),
        )
        for name in names
    ]
    provenance = {"command": task.command, "settings": task.settings.tables()}
    lost = [f"{name}, seed {seed}: {why.cause}" for (name, seed), why in diverged.items()]
    study = assemble_study(trained, methods, provenance, lost)
    missing = describe_missing({name: find_method(name, tables).reference for name in names})
    return replace(study, notes=(*missing, *study.notes))


def describe_missing(controls: Mapping[str, str]) -> tuple[str, ...]:
    """A note on each control that was not trained, given the methods with theirs.

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
    """The baseline first, the others in their order."""
    first = next((name for name in BASELINES if name in names), names[0])
    return [first, *(name for name in names if name != first)]


def compare_embeddings(study: Study, task: StudyTask, progress: Progress) -> Comparison | None:
    """Compare the embeddings of the first seed that all methods have, then other matrices.

    None for a single method, or without such a seed.
    """

    from embgeo.comparison.compare import compare

    if len(study.methods) < 2 or study.shown_seed is None:
        return None
    names = [method.name for method in study.methods]
    homes = {name: task.folder / study.choose_shown_run(name).folder for name in names}
    others = {
        f"{name} ({role})": homes[name] / role for name in names for role in study.roles(name)[1:]
    }
    inputs = []
    for name, home in {**homes, **others}.items():
        analysis = load_analysis(home)
        matrix, absent = load_analyzed_matrix(analysis, home)
        member = Member(name, str(home), analysis, True, absent)
        inputs.append((member, matrix))
    return compare(inputs, command=task.command, progress=progress)

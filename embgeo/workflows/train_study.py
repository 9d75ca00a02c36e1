"""Measuring runs: geometry while they train, their analyses at the end, and one study of all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.originals import original
from embgeo.comparison.saved import COMPARISON_NAME
from embgeo.core.errors import Diverged, UnreadableFile, argument
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum, subspace
from embgeo.io import load
from embgeo.io.bounded.records import ARRAYS_NAME, digest_of
from embgeo.io.bounded.saved import write_text
from embgeo.result.analysis import REPORT_NAME, load_analysis
from embgeo.result.saved import JSON_NAME
from embgeo.training.study.log import name_of_output
from embgeo.workflows.folders import replace_comparison, write_whole
from embgeo.workflows.train_task import StudyTask

if TYPE_CHECKING:
    from embgeo.core.progress import Progress
    from embgeo.training.study.training import Training


#: What is measured at regular steps.
MEASURED = (
    isotropy.I1.name,
    isotropy.I1_UNIT.name,
    isotropy.I2.name,
    cosine.MEAN.name,
    spectrum.EFFECTIVE_RANK.name,
    frequency.PROBE_AUC.name,
)
#: And of an untied model.
OF_TWO = subspace.DISTANCE.name

Array = npt.NDArray[np.float32]


def geometry_measure(
    counts: npt.NDArray[np.int64],
) -> Callable[[Array, Array | None], dict[str, float]]:
    """A function that measures an embedding, for :func:`embgeo.training.loop.run.train_run`.

    It measures the output matrix, too, where that is another one.

    `counts`: of the tokens in the training split.
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


#: What a baseline is, the best first.
BASELINES = ("mle", "untied")


def analyze_embedding(folder: Path, device: str, command: str, progress: Progress) -> None:
    """The analyses of a run's matrices, in the folder of the run, unless they are there.

    Those of an output matrix and of a source embedding, of a model that has them, are in folders
    of their own.
    """
    from embgeo.stats.resources import Resources
    from embgeo.training.loop.checkpoint import MODEL_NAME, SOURCE_NAME, VOCABULARY_NAME
    from embgeo.training.study.run_result import OUTPUT_FOLDER, SOURCE_FOLDER
    from embgeo.training.tasks.encoder_decoder import SOURCE_TENSOR
    from embgeo.workflows.analyze import analyze

    model = folder / MODEL_NAME
    if not model.is_file():
        raise UnreadableFile(
            f"the run is finished, but its {MODEL_NAME} is gone",
            where=folder,
            way_out=f"take this folder away, and train it again with {argument('resume')}",
        )
    known = is_analyzed(folder, model)
    if known and SOURCE_TENSOR in list_tensors(model):
        known = is_analyzed(folder / SOURCE_FOLDER, model)
    if known:
        return
    matrix = load(model, counts=folder / VOCABULARY_NAME)
    source = None
    if SOURCE_TENSOR in list_tensors(model):
        counts = folder / SOURCE_NAME
        source = load(model, tensor=SOURCE_TENSOR, output="none", counts=counts)
    resources = Resources(device=choose_pass_device(device))
    found = ((source, SOURCE_FOLDER), (matrix.output, OUTPUT_FOLDER), (matrix, ""))
    for each, place in found:
        if each is not None:
            analyze(each, command=command, progress=progress, resources=resources).save(
                folder / place
            )


def list_tensors(model: Path) -> tuple[str, ...]:
    """Names of the tensors of a model that was trained here."""
    from safetensors import safe_open

    with safe_open(model, "numpy") as content:
        return tuple(content.keys())


def choose_pass_device(device: str) -> str:
    """Where analyses run: on the CUDA device that trained, else on the CPU."""
    from embgeo.training.loop.process import find_device

    found = find_device(device)
    has_array_api = find_spec("array_api_compat") is not None
    return str(found) if found.type == "cuda" and has_array_api else "cpu"


def is_analyzed(folder: Path, model: Path) -> bool:
    """Whether the folder holds an analysis of this very file."""
    try:
        content: Any = json.loads((folder / JSON_NAME).read_text(encoding="utf-8"))
        own = content["provenance"]["sha256"] if (folder / ARRAYS_NAME).is_file() else None
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return digest_of(model) == own


def write_study(
    task: StudyTask, diverged: Mapping[tuple[str, int], Diverged], progress: Progress
) -> tuple[Training, Path]:
    """``training.json``, the comparison of the embeddings, and the report; its path.

    `diverged`: method and seed of the runs that did not come to their end; some others did.
    """
    from embgeo.report.study import render
    from embgeo.training.study.training import COMPARISON_FOLDER, save_training

    study = make_study(task, diverged)
    progress.start("comparing the embeddings", 0)
    comparison = compare_embeddings(study, task, progress)
    save_training(study, task.folder)
    beside = task.folder / COMPARISON_FOLDER
    if comparison is not None:
        way_out = f"make room, and go on with {argument('resume')}"
        write_whole(beside, comparison.save, replace_comparison, way_out)
    elif (beside / COMPARISON_NAME).is_file():  # of other runs than those of the report
        shutil.rmtree(beside, ignore_errors=True)
    report = task.folder / REPORT_NAME
    write_text(report, render(study, comparison))
    return study, report


def make_study(task: StudyTask, diverged: Mapping[tuple[str, int], Diverged]) -> Training:
    """Everything the runs say, side by side."""
    from embgeo.training.methods.definitions import choose_reference, find_method
    from embgeo.training.study.assemble import assemble_study
    from embgeo.training.study.run_result import read_run
    from embgeo.training.study.training import StudyMethod
    from embgeo.workflows.train_tuning import read_tried

    kept = [run for run in task.runs if run not in diverged]
    names = order_methods(tuple(dict.fromkeys(name for name, _ in kept)))
    trained = []
    for name in names:
        for seed in task.settings.seeds:
            if (name, seed) in kept:
                trained.append(read_run(task.folder, task.home(name, seed)))
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
    return assemble_study(trained, methods, provenance, lost)


def order_methods(names: tuple[str, ...]) -> list[str]:
    """The baseline first, then as they were named."""
    first = next((name for name in BASELINES if name in names), names[0])
    return [first, *(name for name in names if name != first)]


def compare_embeddings(study: Training, task: StudyTask, progress: Progress) -> Comparison | None:
    """The embeddings of the first seed that all have; None of a single method, or of no seed.

    After those of all methods come the other matrices of models that have several.
    """
    from embgeo.comparison.compare import compare_inputs
    from embgeo.comparison.pairs import ComparisonInput

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
        matrix, absent = original(analysis, home)
        member = Member(name, str(home), analysis, True, absent)
        inputs.append(ComparisonInput(member, matrix))
    return compare_inputs(inputs, command=task.command, progress=progress)

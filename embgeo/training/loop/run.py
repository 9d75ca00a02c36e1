"""A run as a folder of files."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from embgeo.core.errors import BadOption
from embgeo.core.progress import Progress
from embgeo.training.complete import complete_settings
from embgeo.training.data import write_vocabulary
from embgeo.training.data.byte_level import TOKENIZER_NAME
from embgeo.training.loop import checkpoint
from embgeo.training.loop.checkpoint import (
    MODEL_NAME,
    SOURCE_NAME,
    VOCABULARY_NAME,
    count_parameters,
    model_bytes,
    write,
)
from embgeo.training.loop.log import open_tensorboard
from embgeo.training.loop.loop import Loop
from embgeo.training.loop.process import find_device, join_processes, note_interrupts, numerics
from embgeo.training.loop.session import Measure, Session
from embgeo.training.settings import STUDY_SETTINGS_NAME, StudySettings
from embgeo.training.study.run_result import (
    RESULT_NAME,
    RUN_RESULT,
    RunResult,
    is_finished,
    load_result,
)
from embgeo.training.study.samples import find_format
from embgeo.training.tasks import Dataset

RUN_NAME = "run.toml"


def train_run(
    config: StudySettings,
    dataset: Dataset,
    folder: Path,
    *,
    measure: Measure | None,
    progress: Progress,
    command: str,
) -> RunResult:
    """Train one method with one seed, or resume it; return the saved result of a finished run.

    Ctrl-C and SIGTERM save the state, then raise KeyboardInterrupt. `config` has one method and one
    seed; see `StudySettings.one`. `measure` gives numbers of the embedding every `geometry.every`
    steps and at the end. `command` is recorded in the result.
    """
    config = complete_settings(config)
    if len(config.compare) != 1 or len(config.seeds) != 1:
        raise BadOption(
            "a run has one method and one seed", way_out="take them by StudySettings.one()"
        )
    identity = checkpoint.identity(config.tables(), dict(dataset.files))
    if is_finished(folder):
        checkpoint.require_same(read_identity(folder), identity, folder)
        # Left by a process that was killed after it wrote the result.
        (folder / checkpoint.STATE_NAME).unlink(missing_ok=True)
        return load_result(folder)
    with ExitStack() as stack:
        world = stack.enter_context(join_processes(config.training.device))
        device = find_device(config.training.device)
        stack.enter_context(numerics(config.training.precision, device, config.training.threads))
        interrupts = stack.enter_context(note_interrupts())
        tensorboard = None
        if world.leads:
            begin(config, dataset, folder)
            if config.training.tensorboard:
                tensorboard = open_tensorboard(folder)
        session = Session(config, dataset, folder, device, world, identity, measure, tensorboard)
        stack.callback(session.log.close)
        session.train(progress, interrupts)
        result = finish(session, command)
        if world.broadcast(interrupts.asked):
            raise KeyboardInterrupt
        return result


def read_identity(folder: Path) -> dict[str, Any] | None:
    """Saved settings and text of the run in a folder; None without any."""
    if is_finished(folder):
        result = load_result(folder)
        return checkpoint.identity(dict(result.settings), dict(result.corpus["files"]))
    state = checkpoint.load_state(folder)
    return None if state is None else dict(state["identity"])


def begin(config: StudySettings, dataset: Dataset, folder: Path) -> None:
    """Write the files that are known before the first step."""
    with prepare_folder(folder):
        if not (folder / checkpoint.STATE_NAME).exists():
            write(folder / RUN_NAME, config.text().encode())
            write_vocabulary(dataset.vocabulary, folder / VOCABULARY_NAME)
            if (source := getattr(dataset, "source_vocabulary", None)) is not None:
                write_vocabulary(source, folder / SOURCE_NAME)
            if (tokenizer := getattr(dataset, "tokenizer", None)) is not None:
                write(folder / TOKENIZER_NAME, tokenizer.encode())


@contextmanager
def prepare_folder(folder: Path) -> Iterator[None]:
    """Make a folder; `BadOption` if that, or writing to it inside the block, fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise BadOption(
            f"cannot be written: {error.strerror or error}",
            where=folder,
            way_out="choose another folder with -o",
        ) from error


def finish(session: Session, command: str) -> RunResult:
    """Evaluate and write the trained model, then the result, and remove the state."""
    loop, folder = session.loop, session.folder
    with session.final() as model:
        valid, test, samples = session.final_scores()
        parameters = count_parameters(model)
        content = model_bytes(model) if session.world.leads else b""
    result = RunResult(
        method=loop.method.name,
        seed=session.config.seeds[0],
        steps=loop.step_number,
        epochs=round(loop.epochs, 6),
        tokens=loop.tokens,
        seconds=round(session.seconds, 3),
        parameters=parameters,
        valid=valid,
        test=test,
        settings=session.config.tables(),
        source=loop.method.publication,
        deviations=list_deviations(loop),
        notes=tuple(session.notes),
        versions=list_versions(),
        command=command,
        corpus=describe_dataset(session.dataset),
        initial_sha256=loop.initial_sha256,
        stopped_early=session.stopped,
        task=loop.task.NAME,
        quality=loop.task.quality(session.config),
        quantities=loop.task.QUANTITIES,
    )
    if session.world.leads:
        write(folder / MODEL_NAME, content)
        if samples is not None:
            saved = find_format(samples)
            write(folder / saved.file, saved.text(samples).encode())
        write(folder / RESULT_NAME, RUN_RESULT.text(result).encode())
        (folder / checkpoint.STATE_NAME).unlink(missing_ok=True)
    return result


#: No publication states how the output bias starts.
BIAS_DEVIATION = (
    "the output bias starts at the log frequencies of the training split; the papers start it "
    "at zero or do not say"
)


def list_deviations(loop: Loop) -> tuple[str, ...]:
    """Deviations of a run from the publications: method, model, initialization."""
    has_bias = getattr(loop.model.get_output_embeddings(), "bias", None) is not None
    started = has_bias and loop.config.model.bias_init == "log-counts"
    parts = [getattr(type(part), "DEVIATIONS", ()) for part in loop.model.modules()]
    found = dict.fromkeys((*loop.method.deviations, *chain(*parts)))
    return (*found, BIAS_DEVIATION) if started else tuple(found)


def write_study_settings(config: StudySettings, folder: Path) -> None:
    """Write the settings of a study into its folder."""
    with prepare_folder(folder):
        write(folder / STUDY_SETTINGS_NAME, config.text().encode())


def describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """Description of the data for a result."""
    return {
        "name": dataset.name,
        "unit": dataset.unit,
        "rows": len(dataset.vocabulary),
        "tokens": dict(dataset.sizes),
        "files": dict(dataset.files),
        "notes": list(dataset.notes),
    }


def list_versions() -> dict[str, str]:
    """Versions of the packages that numbers depend on."""
    found = {"python": platform.python_version()}
    for name in ("embgeo", "torch", "numpy", "safetensors"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found

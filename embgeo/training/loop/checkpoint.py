"""Files of a run: the model, and the state to resume from (``state.pt``)."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import NoneType
from typing import Any

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from embgeo.core.errors import (
    BadOption,
    EmbgeoError,
    UnreadableFile,
    argument,
    looking_at,
    writing,
)
from embgeo.files.saved import Content, remove_left, write_file
from embgeo.training.data.tokenizer import TOKENIZER_NAME
from embgeo.training.data.vocabulary import Dataset, vocabulary_bytes
from embgeo.training.settings import StudySettings
from embgeo.training.study.run_result import is_finished, load_result

RUN_NAME = "run.toml"
MODEL_NAME = "model.safetensors"
VOCABULARY_NAME = "vocabulary.tsv"
#: The vocabulary of the source language of translations, if it has its own.
SOURCE_NAME = "vocabulary.source.tsv"
STATE_NAME = "state.pt"
FORMAT = 2
START_AGAIN = "remove the file to start again"
#: The way out of a full disk, whatever was written.
MAKE_ROOM = f"make room, and go on with {argument('resume')}"
ELSEWHERE = "choose another folder with -o"
_PLAIN = (bool, int, float, str, bytes, NoneType)

#: Settings that may change when a run is resumed: on the same device they change no number.
FREE = {
    "data": ("path",),
    "task": ("wordsim",),
    "training": ("device", "save_seconds", "save_steps"),
}


def run_folder(folder: Path, method: str, seed: int) -> Path:
    return folder / method / f"seed-{seed}"


def write(path: Path, content: Content) -> None:
    """Write a file that is whole or not there, also after a loss of power."""
    with writing(path, MAKE_ROOM):
        write_file(path, content, durable=True)


@contextmanager
def offer_resume() -> Iterator[None]:
    """Give `MAKE_ROOM` as the way out of errors about writing inside the block."""
    try:
        yield
    except EmbgeoError as error:
        if type(error) is not EmbgeoError or not isinstance(error.__cause__, OSError):
            raise
        raise EmbgeoError(error.cause, where=error.where, way_out=MAKE_ROOM) from error


def begin_folder(config: StudySettings, dataset: Dataset, folder: Path) -> None:
    """Write the files that are known before the first step."""
    make_folder(folder)
    remove_left(folder)
    if (folder / STATE_NAME).exists():
        return
    write(folder / RUN_NAME, config.text().encode())
    write(folder / VOCABULARY_NAME, vocabulary_bytes(dataset.vocabulary))
    if (source := getattr(dataset, "source_vocabulary", None)) is not None:
        write(folder / SOURCE_NAME, vocabulary_bytes(source))
    if (tokenizer := getattr(dataset, "tokenizer", None)) is not None:
        write(folder / TOKENIZER_NAME, tokenizer.encode())


def make_folder(folder: Path) -> None:
    with looking_at(folder, ELSEWHERE):
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def hold_folder(folder: Path, waits: Callable[[], None]) -> Iterator[None]:
    """Hold a run's folder alone; `waits` is called first if another process holds it.

    The worker of a study that was killed goes on to the end of its step, and saves its state.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    make_folder(folder)
    with looking_at(folder, ELSEWHERE):
        place = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # file systems without locks
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waits()
                fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


# --- The model ----------------------------------------------------------------------------------


def model_bytes(model: nn.Module) -> bytes:
    """Save all weights in float32, each once; the metadata names the aliases of tied ones.

    Call :func:`make_plain` first.
    """
    first: dict[int, str] = {}
    tensors: dict[str, Tensor] = {}
    tied = []
    for name, tensor in model.state_dict().items():
        known = first.setdefault(tensor.data_ptr(), name) if tensor.numel() else name
        if known == name:
            tensors[name] = tensor.detach().to("cpu", torch.float32).contiguous()
        else:
            tied.append(f"{name}={known}")
    # One entry only: the order of several is not the same from process to process.
    return to_bytes(tensors, metadata={"tied": ",".join(sorted(tied))} if tied else None)


def fingerprint(model: Any) -> str:
    """Return SHA-256 of all weights except those of an untied output layer and its bias.

    So tied and untied models, with or without a bias, have the same fingerprint.
    """
    output = {id(p) for p in model.get_output_embeddings().parameters()}
    output -= {id(p) for p in model.get_input_embeddings().parameters()}
    digest = hashlib.sha256()
    for name, p in sorted(model.named_parameters(), key=itemgetter(0)):
        if id(p) not in output:
            digest.update(f"{name} {tuple(p.shape)}\n".encode())
            digest.update(p.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


# --- The state ----------------------------------------------------------------------------------


def identity(tables: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    """Return what must be the same to resume a run: settings, and the text by name and hash.

    By hash alone, a validation and a test split that changed places would not be noticed.
    """
    kept = {
        name: (
            {key: v for key, v in table.items() if key not in FREE.get(name, ())}
            if isinstance(table, dict)
            else table
        )
        for name, table in tables.items()
    }
    return {"settings": kept, "files": dict(files)}


def read_identity(folder: Path) -> dict[str, Any] | None:
    """Read the saved settings and the text of the run in a folder; None without any."""
    if is_finished(folder):
        result = load_result(folder)
        return identity(dict(result.settings), dict(result.corpus["files"]))
    state = load_state(folder)
    return None if state is None else dict(state["identity"])


def require_same(before: Any, now: Any, where: Path) -> None:
    """Raise `BadOption` if the run of a folder has other settings."""
    if before != now:
        raise BadOption(
            f"holds a run of other settings: {describe_difference(before, now)}",
            where=where,
            way_out="resume with the settings it began with, or choose another folder with -o",
        )


def describe_difference(before: Any, now: Any, name: str = "") -> str:
    """Name a setting in which two identities differ, with both values."""
    if name == "files":
        moved = sorted(before.values()) == sorted(now.values())
        return "its files have other names" if moved else "the text is another one"
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                inner = f"{name}.{key}" if name else str(key)
                return describe_difference(before.get(key), now.get(key), inner)
    return f"{name.removeprefix('settings.')} was {before!r} and is {now!r}"


def save_state(state: dict[str, Any], folder: Path) -> None:
    """Replace the saved state."""
    require_plain(state)
    write(folder / STATE_NAME, partial(torch.save, {"format": FORMAT, **state}))


def require_plain(value: Any, name: str = "state") -> None:
    """Raise TypeError for values that `load_state`, which runs no code, cannot read."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            require_plain(entry, f"{name}.{key}")
    elif type(value) in (list, tuple):
        for place, entry in enumerate(value):
            require_plain(entry, f"{name}.{place}")
    elif not isinstance(value, Tensor) and type(value) not in _PLAIN:
        raise TypeError(f"{name} is a {type(value).__name__}, which is not saved")


def load_state(folder: Path) -> dict[str, Any] | None:
    """Load the state of a folder; None without one."""
    path = folder / STATE_NAME
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the reader of zip files and pickles raises all kinds
        cause = "no state of a run, or damaged"
        raise UnreadableFile(cause, where=path, way_out=START_AGAIN) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise UnreadableFile(f"no state in format {FORMAT}", where=path, way_out=START_AGAIN)
    return state


@contextmanager
def guard_state(folder: Path) -> Iterator[None]:
    """Report a state that does not fit its run as a damaged file."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
        cause = f"does not fit the run, or damaged ({error})"
        raise UnreadableFile(cause, where=folder / STATE_NAME, way_out=START_AGAIN) from error


def move_to(device: torch.device | str, value: Any) -> Any:
    """Move tensors in dicts, tuples and lists to a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return {key: move_to(device, entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(move_to(device, entry) for entry in value)
    return value

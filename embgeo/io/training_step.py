"""The training step that a checkpoint itself records, where it does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from embgeo.core.errors import EmbgeoError
from embgeo.io.bounded.guard import reading
from embgeo.io.bounded.small_files import parse_json, read_head, read_json
from embgeo.io.bounded.zip_members import MAGICS, open_archive
from embgeo.io.pickle.loading import load
from embgeo.io.pickle.machine import Stub

#: What the step is called in checkpoints, the best name first.
ENTRIES = ("global_step", "step", "num_updates", "iteration", "iter", "n_iter", "epoch")
#: Entries that hold such entries: Lightning's, fairseq's and others' own bookkeeping.
NESTED = ("trainer_state", "state", "progress", "extra_state")
TRAINER_STATE = "trainer_state.json"

_LENGTH_BYTES = 8
_LONGEST_HEADER = 100 * 2**20
_METADATA = "__metadata__"


def training_step(path: Path) -> tuple[float, str] | None:
    """The step, and the name of the entry that holds it; None where it says nothing.

    Looked at are ``trainer_state.json`` of a model folder, the metadata of a safetensors file, and
    the entries next to the tensors in a torch checkpoint, of which nothing is run.
    """
    try:
        if path.is_dir():
            return _in_entries(read_json(path / TRAINER_STATE))
        head = read_head(path)
        if head.startswith(MAGICS):
            return _in_entries(_read_pickle(path))
        return _in_entries(_metadata(path, head))
    except (EmbgeoError, OSError):
        return None


def _read_pickle(path: Path) -> object:
    with reading(path, "torch checkpoint"):
        archive = open_archive(path)
        pickles = [name for name in archive.members if name.rpartition("/")[2] == "data.pkl"]
        if len(pickles) != 1:
            return None
        program = archive.bytes_of(pickles[0], whole=True)
        return load(program.data, persistent=lambda pid: Stub("(persistent id)", (pid,)))


def _metadata(path: Path, head: bytes) -> object:
    length = int.from_bytes(head[:_LENGTH_BYTES], "little")
    if not head[_LENGTH_BYTES:].lstrip().startswith(b"{") or length > _LONGEST_HEADER:
        return None
    with path.open("rb") as file:
        text = file.read(_LENGTH_BYTES + length)[_LENGTH_BYTES:]
    header = parse_json(text.decode("utf-8", "replace"), path)
    return header.get(_METADATA) if isinstance(header, dict) else None


def _in_entries(found: object) -> tuple[float, str] | None:
    if not isinstance(found, Mapping):
        return None
    for entries in _levels(found):
        for name in ENTRIES:
            step = _number(entries.get(name))
            if step is not None:
                return step, name
    return None


def _levels(found: Mapping[object, object]) -> Iterable[Mapping[object, object]]:
    yield found
    for name in NESTED:
        inner = found.get(name)
        if isinstance(inner, Mapping):
            yield inner


def _number(value: object) -> float | None:
    """A whole number that is not negative; metadata of safetensors are strings."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return float(int(value))
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15:
        return float(value)
    return float(value) if isinstance(value, float) and 0 <= value < 1e15 else None

"""The training step that a checkpoint states."""

from collections.abc import Mapping
from pathlib import Path

from embgeo.core.errors import EmbgeoError
from embgeo.files.guard import reading
from embgeo.files.maps import map_file
from embgeo.files.small_files import is_companion, read_head, read_json
from embgeo.files.zip_members import MAGICS, open_archive
from embgeo.io.formats import safetensors
from embgeo.io.formats.pickle.loading import load

#: Keys of the training step, by preference.
ENTRIES = ("global_step", "step", "num_updates", "iteration", "iter", "n_iter", "epoch")
#: Keys of dicts with such keys: the bookkeeping of Lightning, fairseq and others.
NESTED = ("trainer_state", "state", "progress", "extra_state")
TRAINER_STATE = "trainer_state.json"


def training_step(path: Path) -> tuple[float, str] | None:
    """Find the training step, and the name of the entry that holds it.

    Reads ``trainer_state.json`` of a model folder, the metadata of a safetensors file, or the
    entries next to the tensors in a torch checkpoint.
    """
    try:
        if path.is_dir():
            state = path / TRAINER_STATE
            return _in_entries(read_json(state)) if is_companion(state) else None
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
        return load(archive.bytes_of(pickles[0], whole=True).data)


def _metadata(path: Path, head: bytes) -> object:
    if not safetensors.sniff(head):
        return None
    with reading(path, safetensors.NAME):
        return safetensors.read_header(map_file(path))[1].get(safetensors.METADATA)


def _in_entries(found: object) -> tuple[float, str] | None:
    if not isinstance(found, Mapping):
        return None
    nested = (found.get(name) for name in NESTED)
    for entries in (found, *(inner for inner in nested if isinstance(inner, Mapping))):
        for name in ENTRIES:
            step = _number(entries.get(name))
            if step is not None:
                return step, name
    return None


def _number(value: object) -> float | None:
    """Return a number that is not negative; the metadata of safetensors are strings."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return float(int(value))
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15:
        return float(value)
    return float(value) if isinstance(value, float) and 0 <= value < 1e15 else None

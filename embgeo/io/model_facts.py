"""What a checkpoint says besides its matrices: the final LayerNorm, and the training step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import EmbgeoError
from embgeo.core.matrix import FinalNorm
from embgeo.io.bounded.companions import is_companion
from embgeo.io.bounded.guard import reading, short
from embgeo.io.bounded.small_files import parse_json, read_head, read_json
from embgeo.io.bounded.zip_members import MAGICS, open_archive
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.pickle.loading import load
from embgeo.io.pickle.objects import Stub

#: What comes last before the output projection, in the architectures that have it.
_FINAL = re.compile(
    r"(^|\.)(ln_f|norm_f|ln_out|ln_final|final_layer_?norm|final_norm|output_norm|"
    r"(decoder|lm_head)\.(layer_norm|norm)|(model|transformer)\.norm|"
    r"predictions\.transform\.LayerNorm)$"
)
#: Layers of a stack end with norms of the same names.
_IN_A_STACK = re.compile(r"\.\d+\.")
_SCALES = ("weight", "gamma", "scale", "g")
_BIASES = ("bias", "beta", "b")


def find_final_norm(checkpoint: Checkpoint, d: int) -> FinalNorm:
    """The last LayerNorm before the output, of width `d`; by name only, nothing else is read."""
    by_name = {t.name.replace("/", "."): t for t in checkpoint.tensors}
    layers: dict[str, Tensor] = {}
    for name, tensor in by_name.items():
        layer, _, leaf = name.rpartition(".")
        if leaf in _SCALES and tensor.shape == (d,) and is_final_norm(name):
            layers[layer] = tensor
    if len(layers) > 1:
        layers = {name: t for name, t in layers.items() if "encoder" not in name} or layers
    if not layers:
        return FinalNorm(absent="no final LayerNorm was found by name in the checkpoint")
    if len(layers) > 1:
        names = ", ".join(map(short, sorted(layers)[:4]))
        return FinalNorm(absent=f"several layers could be the final LayerNorm: {names}")
    layer, scale = next(iter(layers.items()))
    bias = next(
        (by_name[f"{layer}.{leaf}"] for leaf in _BIASES if f"{layer}.{leaf}" in by_name), None
    )
    layer = short(layer)
    if bias is None or bias.shape != (d,):
        return FinalNorm(
            layer, absent=f"{layer} has no bias (an RMSNorm?), the condition is for LayerNorm"
        )
    try:
        return FinalNorm(layer, entries(scale), entries(bias))
    except (EmbgeoError, OSError) as error:
        return FinalNorm(layer, absent=f"{layer} could not be read ({error})")


def is_final_norm(name: str) -> bool:
    """Whether a tensor's name is that of a scale or bias of a last norm before the output."""
    layer, _, leaf = name.replace("/", ".").rpartition(".")
    is_last = _FINAL.search(layer) is not None and not _IN_A_STACK.search(f".{layer}")
    return is_last and leaf in (*_SCALES, *_BIASES)


def entries(tensor: Tensor) -> npt.NDArray[np.float64]:
    return np.asarray(tensor.open(), dtype=np.float64)


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

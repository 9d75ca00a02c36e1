"""Final LayerNorm and training step of a checkpoint."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import EmbgeoError
from embgeo.core.matrix import FinalNorm
from embgeo.files.guard import reading, short
from embgeo.files.maps import map_file
from embgeo.files.small_files import is_companion, read_head, read_json
from embgeo.files.zip_members import MAGICS, open_archive
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.formats import safetensors
from embgeo.io.formats.pickle.loading import load

#: The last layer before the output matrix.
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
    """Find the last LayerNorm before the output by its name, and read its `d` entries."""
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
    biases = (by_name.get(f"{layer}.{leaf}") for leaf in _BIASES)
    bias = next(filter(None, biases), None)
    layer = short(layer)
    if bias is None or bias.shape != (d,):
        return FinalNorm(
            layer, absent=f"{layer} has no bias (an RMSNorm?), the condition is for LayerNorm"
        )
    try:
        return FinalNorm(layer, _read_entries(scale), _read_entries(bias))
    except (EmbgeoError, OSError) as error:
        return FinalNorm(layer, absent=f"{layer} could not be read ({error})")


def is_final_norm(name: str) -> bool:
    """Tell whether a name is that of the scale or bias of the last norm before the output."""
    layer, _, leaf = name.replace("/", ".").rpartition(".")
    is_last = _FINAL.search(layer) is not None and not _IN_A_STACK.search(f".{layer}")
    return is_last and leaf in (*_SCALES, *_BIASES)


def _read_entries(tensor: Tensor) -> npt.NDArray[np.float64]:
    return np.asarray(tensor.open(), dtype=np.float64)


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

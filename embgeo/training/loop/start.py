"""Initial weights from a finished run."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.training.data import Vocabulary, read_vocabulary
from embgeo.training.loop.checkpoint import MODEL_NAME, VOCABULARY_NAME, run_folder
from embgeo.training.models import LanguageModel


def find_start(start: Path, method: str, seed: int) -> Path:
    """Find the run to start from: `start` itself, or the run of method and seed in it."""
    for folder in (start, run_folder(start, method, seed)):
        if (folder / MODEL_NAME).is_file():
            return folder
    raise BadOption(
        f"holds no finished run, nor one of {method} with seed {seed}",
        where=start,
        way_out=f"give the folder of a run or of runs with {argument('start')}",
    )


def read_start_vocabulary(start: Path, method: str, seed: int) -> Vocabulary:
    """The vocabulary of the weights, which the text must use."""
    return read_vocabulary(find_start(start, method, seed) / VOCABULARY_NAME)


def start_from(model: LanguageModel, folder: Path) -> None:
    """Load the weights of a finished run into a model.

    An untied model starts its output matrix at the embedding of a tied run; a tied model omits the
    output matrix of an untied run. A bias that only the model has keeps its initial value; one that
    only the run has is omitted.
    """
    weights = read_weights(folder / MODEL_NAME)
    before, output = names_of(model, "input"), names_of(model, "output")
    own = model.state_dict()
    tied = own[before].data_ptr() == own[output].data_ptr()
    if before in weights and (tied or output not in weights):
        weights[output] = weights[before]
    bias = output.replace("weight", "bias")
    for name in [before, *sorted({*own, *weights} - {before, bias})]:
        found = weights.get(name)
        if found is None or name not in own or found.shape != own[name].shape:
            raise BadOption(
                f"the weights are of another model: {name} is {shape_of(found)} there, and "
                f"{shape_of(own.get(name))} here",
                where=folder,
                way_out="give the settings of [model] in its run.toml",
            )
    model.load_state_dict({**own, **{name: weights[name] for name in own if name in weights}})


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a model file."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise UnreadableFile(
            "not a model that a run has written, or damaged",
            where=path,
            way_out="train it again",
        ) from error


def names_of(model: LanguageModel, role: str) -> str:
    """The name of the weight of the input embedding or of the output layer."""
    layer = getattr(model, f"get_{role}_embeddings")()
    return next(f"{name}.weight" for name, module in model.named_modules() if module is layer)


def shape_of(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else "×".join(map(str, tensor.shape))

"""A Hugging Face model folder: configuration, weights, tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.companions import FOREIGN_LINK, is_companion, is_foreign_link
from embgeo.io.bounded.guard import cannot_read, list_short, refuse
from embgeo.io.bounded.small_files import read_json
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.convert.arrow import is_dataset, join_tables
from embgeo.io.foreign import refuse_folder
from embgeo.io.formats.mlx import read_quantized
from embgeo.io.labels.model_folder import vocabulary_of
from embgeo.io.labels.special_tokens import find_special
from embgeo.io.mapped.torch_distributed import METADATA
from embgeo.io.remote.source_record import read_source

NAME = "model folder"
RECOGNIZED = (
    "a folder with model.safetensors, pytorch_model.bin, one other file that is read, or the "
    "Parquet files of one table"
)
READ = (
    "weights in their own format; matrices quantized by MLX are decoded; config.json and tokenizer "
    "files are read"
)
EXTRA = ""

#: Weights files by name, the preferred one first.
WEIGHTS = (
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
)

#: Files of training programs that hold arrays but no model.
NOT_WEIGHTS = (
    "optimizer",
    "scheduler",
    "scaler",
    "rng_state",
    "training_args",
    "trainer_state",
    "random_states",
    "merges.txt",
)
_LISTED = 6
#: Classes of transformers that predict tokens; others, such as BertModel, have no output matrix.
_LANGUAGE_MODEL = re.compile(
    r"LMHead|CausalLM|MaskedLM|ForConditionalGeneration|ForPreTraining|MTModel"
)


@dataclass(frozen=True, slots=True)
class ModelConfiguration:
    """The matrices as ``config.json`` describes them."""

    tied: bool | None = None
    vocabulary_size: int | None = None
    model_type: str = ""
    quantization: dict[str, Any] | None = None
    columns: int | None = None
    dtype: str = ""


def open_folder(
    folder: Path,
    open_file: Callable[[Path], Checkpoint],
    is_known: Callable[[Path], bool],
) -> Checkpoint:
    """The weights of a model folder, with its tokens and whether the model is tied.

    `is_known` tells whether `open_file` reads the format of a file.
    """
    files = _weights_files(folder, open_file, is_known)
    for file in files:
        if is_foreign_link(file):
            raise refuse(file, FOREIGN_LINK, "name that file instead of the folder")
    opened = [open_file(file) for file in files]
    weights = opened[0] if len(opened) == 1 else join_tables(folder, opened)
    configuration = read_configuration(folder)
    weights = read_quantized(weights, configuration.quantization)
    vocabulary, left_out = None, tuple[str, ...]()
    if weights.counts is None:
        vocabulary, left_out = vocabulary_of(folder, configuration.model_type)
    notes = [*weights.notes, *left_out]
    if (source := read_source(folder)) is not None:
        notes.append(source.note)
    size = configuration.vocabulary_size
    if size is not None and not any(size in t.shape for t in weights.tensors):
        notes.append(f"config.json says vocab_size {size:,}, but no tensor has that many rows")
    if vocabulary is not None:
        notes += vocabulary.notes
        weights = replace(
            weights,
            tokens=vocabulary.tokens,
            tokens_source=vocabulary.source,
            vocabularies=(),
            encoder=vocabulary.encoder,
            special=find_special(folder, vocabulary),
        )
    return replace(
        weights,
        path=folder,
        format=f"{NAME} ({weights.format})",
        tied=configuration.tied,
        notes=tuple(notes),
    )


def _weights_files(
    folder: Path, open_file: Callable[[Path], Checkpoint], is_known: Callable[[Path], bool]
) -> list[Path]:
    """The file with the weights, or the files of a table."""
    try:
        entries = sorted(folder.iterdir())
        files = [entry for entry in entries if entry.is_file()]
    except OSError as error:
        raise cannot_read(folder, error) from error
    by_name = {file.name: file for file in files}
    for name in WEIGHTS:
        if name in by_name:
            return [by_name[name]]
    metadata = by_name.get(METADATA)
    if metadata is not None and metadata.stat().st_size and is_known(metadata):
        return [metadata]
    known = [
        file
        for file in files
        if file.stat().st_size and not file.name.startswith((".", *NOT_WEIGHTS)) and is_known(file)
    ]
    if len(known) > 1:
        known = [file for file in known if file.suffix != ".json" or _opens(file, open_file)]
    if len(known) == 1 or is_dataset([file.name for file in known]):
        return known
    if known:
        listing = list_short([file.name for file in known], _LISTED)
        raise refuse(
            folder,
            f"the folder holds several files that may hold the matrix: {listing}",
            "name one of them",
        )
    foreign = refuse_folder(folder, (entry.name for entry in entries))
    if foreign is not None:
        raise foreign
    listing = list_short(list(by_name), _LISTED) or "no files"
    raise refuse(
        folder,
        f"no model weights in this folder (it holds {listing})",
        "name a checkpoint file, or a folder with model.safetensors or pytorch_model.bin",
    )


def _opens(file: Path, open_file: Callable[[Path], Checkpoint]) -> bool:
    """Whether JSON with lists of numbers is a matrix and not, for example, a training log."""
    try:
        open_file(file)
    except UnreadableFile:
        return False
    return True


def read_configuration(folder: Path) -> ModelConfiguration:
    """The configuration of a folder; an empty one without ``config.json``."""
    path = folder / "config.json"
    if not is_companion(path):
        return ModelConfiguration()
    data = read_json(path)
    if not isinstance(data, dict):
        raise refuse(path, "is not a JSON object", "download the configuration again")
    # Multimodal models keep the configuration of the language model under text_config.
    inner = data.get("text_config")
    parts = [data, inner] if isinstance(inner, dict) else [data]
    return ModelConfiguration(
        tied=_first(parts, "tie_word_embeddings", bool) if _has_head(data) else None,
        vocabulary_size=_first(parts, "vocab_size", int),
        model_type=_first(parts, "model_type", str) or "",
        quantization=_first(parts, "quantization", dict),
        columns=_first(parts, "hidden_size", int) or _first(parts, "n_embd", int),
        dtype=_first(parts, "dtype", str) or _first(parts, "torch_dtype", str) or "",
    )


def _has_head(configuration: dict[str, Any]) -> bool:
    """Whether the model has an output matrix; true if no class is listed."""
    classes = configuration.get("architectures")
    if not isinstance(classes, list) or not classes:
        return True
    return any(_LANGUAGE_MODEL.search(name) for name in classes if isinstance(name, str))


def _first(parts: list[dict[str, Any]], key: str, kind: type) -> Any:
    return next((part[key] for part in parts if type(part.get(key)) is kind), None)

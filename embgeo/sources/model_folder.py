"""A Hugging Face model folder: configuration, weights, tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embgeo.errors import UnreadableFile
from embgeo.sources import tokenizer_files
from embgeo.sources.base import Checkpoint
from embgeo.sources.reading import cannot_read, read_json, read_text, safe_text, split_lines
from embgeo.sources.tokenizer_files import Vocabulary
from embgeo.sources.torch_distributed import METADATA

NAME = "model folder"
RECOGNISED = "a folder with model.safetensors, pytorch_model.bin or one other file that is read"
READ = "the weights as their own format; config.json and the tokenizer's files are read"
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


@dataclass(frozen=True, slots=True)
class _Configuration:
    tied: bool | None = None
    vocabulary_size: int | None = None


def open_folder(
    folder: Path,
    open_file: Callable[[Path], Checkpoint],
    is_known: Callable[[Path], bool],
) -> Checkpoint:
    """The weights of a model folder, with its tokens and what it says about tying.

    Parameters
    ----------
    folder : Path
    open_file : callable
        Opens a single weights file, whatever its format.
    is_known : callable
        Whether a file's first bytes are those of a format that `open_file` reads.

    Raises
    ------
    UnreadableFile
        No weights, several possible ones, or a damaged configuration or tokenizer.
    """
    weights = open_file(_weights_file(folder, is_known))
    configuration = _configuration(folder)
    # Vectors with counts know their own words: GloVe's vocab.txt, say, is no list of tokens.
    vocabulary = _vocabulary(folder) if weights.counts is None else None
    notes = [*weights.notes]
    size = configuration.vocabulary_size
    if size is not None and not any(size in t.shape for t in weights.tensors):
        notes.append(f"config.json says vocab_size {size:,}, but no tensor has that many rows")
    if vocabulary is None:
        checkpoint = replace(weights, path=folder, tied=configuration.tied)
    else:
        notes += vocabulary.notes
        checkpoint = replace(
            weights,
            path=folder,
            tied=configuration.tied,
            tokens=vocabulary.tokens,
            tokens_source=vocabulary.source,
            vocabularies=(),
        )
    return replace(checkpoint, format=f"{NAME} ({weights.format})", notes=tuple(notes))


def _weights_file(folder: Path, is_known: Callable[[Path], bool]) -> Path:
    try:
        files = sorted(entry for entry in folder.iterdir() if entry.is_file())
    except OSError as error:
        raise cannot_read(folder, error) from error
    by_name = {file.name: file for file in files}
    for name in WEIGHTS:
        if name in by_name:
            return by_name[name]
    metadata = by_name.get(METADATA)
    if metadata is not None and metadata.stat().st_size and is_known(metadata):
        return metadata
    known = [file for file in files if _may_be_weights(file) and is_known(file)]
    if len(known) == 1:
        return known[0]
    if known:
        listing = _listing([file.name for file in known])
        raise UnreadableFile(
            f"the folder holds several files with tensors: {listing}",
            where=folder,
            way_out="name one of them",
        )
    listing = _listing([file.name for file in files])
    raise UnreadableFile(
        f"no model weights in this folder (it holds {listing})"
        if files
        else "no model weights in this folder (it holds no files)",
        where=folder,
        way_out="name a checkpoint file, or a folder with model.safetensors or pytorch_model.bin",
    )


def _may_be_weights(file: Path) -> bool:
    return file.stat().st_size > 0 and not file.name.startswith((".", *NOT_WEIGHTS))


def _listing(names: list[str]) -> str:
    shown = ", ".join(names[:_LISTED])
    return f"{shown} and {len(names) - _LISTED:,} more" if len(names) > _LISTED else shown


def _configuration(folder: Path) -> _Configuration:
    path = folder / "config.json"
    if not path.is_file():
        return _Configuration()
    data = read_json(path)
    if not isinstance(data, dict):
        raise UnreadableFile(
            "is not a JSON object", where=path, way_out="download the configuration once more"
        )
    # Models of text and pictures keep the language model's part under text_config.
    inner = data.get("text_config")
    parts = [data, inner] if isinstance(inner, dict) else [data]
    return _Configuration(
        tied=_first(parts, "tie_word_embeddings", bool),
        vocabulary_size=_first(parts, "vocab_size", int),
    )


def _first(parts: list[dict[str, Any]], key: str, kind: type) -> Any:
    return next((part[key] for part in parts if type(part.get(key)) is kind), None)


def _vocabulary(folder: Path) -> Vocabulary | None:
    path = folder / "tokenizer.json"
    if path.is_file():
        return tokenizer_files.from_tokenizer_json(read_json(path), path)
    path = folder / "vocab.json"
    if path.is_file():
        return _with_added_tokens(read_json(path), path)
    path = folder / "vocab.txt"
    if path.is_file():
        lines = split_lines(read_text(path))
        return Vocabulary(tuple(safe_text(line) for line in lines), path.name)
    return None


def _with_added_tokens(data: Any, path: Path) -> Vocabulary:
    """vocab.json together with added_tokens.json, which older tokenizers put beside it."""
    if not isinstance(data, dict) or not data:
        raise UnreadableFile(
            "is not a JSON object of tokens and ids",
            where=path,
            way_out="download the tokenizer once more",
        )
    beside = path.with_name("added_tokens.json")
    added = read_json(beside) if beside.is_file() else {}
    if not isinstance(added, dict):
        raise UnreadableFile(
            "is not a JSON object of tokens and ids",
            where=beside,
            way_out="download the tokenizer once more",
        )
    return tokenizer_files.from_ids({**data, **added}, path)

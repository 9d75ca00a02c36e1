"""Tensors of a remote model to fetch: those that an analysis of the whole model would choose."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from embgeo.core.source import Source
from embgeo.io import parameter_names as names
from embgeo.io.bounded.guard import Damaged, plain, short
from embgeo.io.choosing import choose
from embgeo.io.formats import sharded
from embgeo.io.formats.model_folder import WEIGHTS
from embgeo.io.formats.table_parts import ENDING, is_dataset
from embgeo.io.model_facts import is_final_norm
from embgeo.io.remote.ranges import RemoteFolder, save_small
from embgeo.io.remote.tensors import (
    WHOLE,
    RemoteTensor,
    as_checkpoint,
    list_tensors,
    place_tensor,
)

#: Endings of files with tensors, by preference.
_ENDINGS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")
_IN_A_STACK = re.compile(r"[./]\d+[./]")
_LISTED = 6


def find_weights(folder: RemoteFolder) -> str:
    """Name of the weights file, or of the index of its shards."""
    if folder.chosen:
        return folder.chosen
    if (known := next((name for name in WEIGHTS if name in folder.files), None)) is not None:
        return known
    for ending in _ENDINGS:
        found = sorted(name for name in folder.files if name.endswith(ending))
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(map(short, found[:_LISTED]))
            raise Damaged(
                f"there are several files with tensors: {listed}",
                f"name one of them, as in {folder.name}/{found[0]}",
            )
    raise Damaged("there are no weights of a language model", "name the file that holds the matrix")


def find_tables(folder: RemoteFolder) -> list[str]:
    """Parquet files that together are a table, if there are no weights of a model."""
    has_weights = folder.chosen or any(name in folder.files for name in WEIGHTS)
    tables = sorted(name for name in folder.files if name.endswith(ENDING))
    return [] if has_weights or not is_dataset(tables) else tables


def list_weights(
    folder: RemoteFolder, source: Source
) -> tuple[list[RemoteTensor], tuple[str, ...]]:
    """Tensors of the files that may hold what is needed, and the names of all weights files."""
    tables = find_tables(folder)
    if tables:
        raise Damaged(f"{len(tables)} Parquet files, which are not read in parts", WHOLE)
    weights = find_weights(folder)
    if not weights.endswith(".index.json"):
        return list(list_tensors(folder, weights)), (weights,)
    with tempfile.TemporaryDirectory(prefix="embgeo-") as scratch:
        weight_map = read_index(folder, weights, Path(scratch) / weights)
    shards = tuple(dict.fromkeys(weight_map.values()))
    needed = find_names(weight_map, source)
    holders = {weight_map[name] for name in needed}
    tensors = [
        one
        for shard in ([shard for shard in shards if shard in holders] or shards)
        for one in list_tensors(folder, shard)
        if weight_map.get(one.name) == shard
    ]
    missing = set(needed) - {one.name for one in tensors}
    if missing:
        raise Damaged(f"the index puts {short(min(missing))} into a shard that does not hold it")
    return tensors, shards


def read_index(folder: RemoteFolder, index: str, target: Path) -> dict[str, str]:
    """Save an index as `target` and read the shard of each tensor; all shards have to exist."""
    save_small(folder, index, target)
    weight_map = sharded.read_weight_map(target)
    for shard in dict.fromkeys(weight_map.values()):
        if shard not in folder.files:
            raise Damaged(f"the index names the shard {short(shard)}, which is not there")
    return weight_map


def find_names(known: Iterable[str], source: Source) -> set[str]:
    """Names of possible embeddings, output projections and final norms.

    Empty if no name looks like that of an embedding; then shapes decide.
    """
    all_names = [
        name
        for name in known
        if not (names.is_optimizer_state(name) or names.is_averaged_copy(name))
    ]
    inputs = _match_name(all_names, source.tensor) or _surest(all_names, names.input_rank)
    if not inputs:
        return set()
    outputs: set[str] = set()
    if source.output != "none":
        outputs = _match_name(all_names, source.output) or _surest(all_names, _output_rank)
    return inputs | outputs | {name for name in all_names if is_final_norm(name)}


def _match_name(known: list[str], name: str | None) -> set[str]:
    if name is None:
        return set()
    return {one for one in known if plain(one) == name or plain(one).endswith(f".{name}")}


def _output_rank(name: str) -> int | None:
    """Rank of an output projection; inside a stack of layers only the surest names count.

    Attention has projections of similar names in every shard.
    """
    rank = names.output_rank(name)
    return None if rank and _IN_A_STACK.search(name) else rank


def _surest(known: list[str], rank_of: Callable[[str], int | None]) -> set[str]:
    ranks = {
        name: rank
        for name in known
        if not names.is_other_embedding(name) and (rank := rank_of(name)) is not None
    }
    surest = min(ranks.values(), default=None)
    return {name for name, rank in ranks.items() if rank == surest}


def choose_tensors(
    folder: RemoteFolder, source: Source
) -> tuple[list[RemoteTensor], tuple[str, ...]]:
    """Embedding, output projection and final norm by their bytes, and all weights files."""
    tensors, weights = list_weights(folder, source)
    choice = choose(
        as_checkpoint(folder, tensors),
        tensor=source.tensor,
        output=source.output,
        transpose=source.transpose,
    )
    chosen = {choice.input.name} | ({choice.output.name} if choice.output else set())
    d = choice.input.shape[0 if choice.input_transposed else 1]
    needed = [
        one
        for one in tensors
        if plain(one.name) in chosen or (one.shape == (d,) and is_final_norm(one.name))
    ]
    placed = [place_tensor(folder, one) for one in needed]
    placed.sort(key=lambda one: (weights.index(one.file), one.start))
    return placed, weights

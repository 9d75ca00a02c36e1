"""The tensors of a remote model that an analysis reads, by the headers of safetensors files."""

import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embgeo.core.source import Source
from embgeo.io import parameter_names as names
from embgeo.io.bounded.guard import Damaged, plain, refuse, short
from embgeo.io.bounded.maps import Array, count, number_type
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.convert.arrow import ENDING, is_dataset
from embgeo.io.formats import sharded
from embgeo.io.mapped import safetensors
from embgeo.io.model.choice import choose
from embgeo.io.model.companions import read_parameters
from embgeo.io.model.facts import CONFIGURATIONS, ModelFacts, read_facts
from embgeo.io.model.folder import WEIGHTS
from embgeo.io.model_facts import is_final_norm
from embgeo.io.remote.ranges import RemoteFolder, read_range, save_small

#: First request for a header; the rest of a longer one follows.
FIRST_BYTES = 16 * 2**10
#: Endings of files with tensors, by preference.
_ENDINGS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")
_IN_A_STACK = re.compile(r"[./]\d+[./]")
_LISTED = 6
#: Ids of the rows of a draft head.
_IDS = ("d2t",)


@dataclass(frozen=True, slots=True)
class RemoteTensor:
    """A tensor in bytes `start` to `stop` of a file."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # numpy's or ml_dtypes' name
    file: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class RemoteWeights:
    """The files with the tensors of a remote folder, and the index of the shards or ""."""

    files: tuple[str, ...]
    index: str = ""
    #: Whether tensors can be fetched by ranges: all files are safetensors.
    in_ranges: bool = False


def find_weights(folder: RemoteFolder) -> RemoteWeights:
    """Find the weights that a loader would take, or the Parquet files of one table."""
    tables = sorted(name for name in folder.files if name.endswith(ENDING))
    has_weights = folder.chosen or any(name in folder.files for name in WEIGHTS)
    if not has_weights and is_dataset(tables):
        return RemoteWeights(tuple(tables))
    file = _weights_file(folder)
    if file.endswith(".index.json"):
        with tempfile.TemporaryDirectory(prefix="embgeo-") as scratch:
            weight_map = read_index(folder, file, Path(scratch) / file)
        shards = tuple(dict.fromkeys(weight_map.values()))
        return RemoteWeights(shards, file, all(s.endswith(".safetensors") for s in shards))
    head = read_range(folder, file, 0, min(FIRST_BYTES, folder.files[file].size))
    return RemoteWeights((file,), "", safetensors.sniff(head))


def _weights_file(folder: RemoteFolder) -> str:
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


def read_index(folder: RemoteFolder, index: str, target: Path) -> dict[str, str]:
    """Save an index as `target` and read the shard of each tensor; all shards have to exist."""
    save_small(folder, index, target)
    weight_map = sharded.read_weight_map(target)
    for shard in dict.fromkeys(weight_map.values()):
        if shard not in folder.files:
            raise Damaged(f"shard {short(shard)} of the index was not found")
    return weight_map


def list_tensors(
    folder: RemoteFolder, weights: RemoteWeights, source: Source
) -> list[RemoteTensor]:
    """List tensors of the safetensors files that may hold what is needed."""
    if not weights.index:
        return _read_header(folder, weights.files[0])
    with tempfile.TemporaryDirectory(prefix="embgeo-") as scratch:
        weight_map = read_index(folder, weights.index, Path(scratch) / weights.index)
    needed = find_names(weight_map, source)
    holders = {weight_map[name] for name in needed}
    tensors = [
        one
        for shard in ([shard for shard in weights.files if shard in holders] or weights.files)
        for one in _read_header(folder, shard)
        if weight_map.get(one.name) == shard
    ]
    missing = set(needed) - {one.name for one in tensors}
    if missing:
        raise Damaged(f"the index puts {short(min(missing))} into a shard that does not hold it")
    return tensors


def _read_header(folder: RemoteFolder, file: str) -> list[RemoteTensor]:
    size = folder.files[file].size
    head = read_range(folder, file, 0, min(FIRST_BYTES, size))
    stop = safetensors.LENGTH_BYTES + int.from_bytes(head[: safetensors.LENGTH_BYTES], "little")
    if len(head) < stop <= min(size, safetensors.LONGEST_HEADER):
        head += read_range(folder, file, len(head), stop)
    start, entries = safetensors.read_entries(np.frombuffer(head, dtype=np.uint8), Path(file), size)
    found = []
    for e in entries:
        if (kind := safetensors.DTYPES.get(e.dtype)) is None:
            continue
        if count(e.shape) * number_type(kind).itemsize != e.end - e.start:
            raise Damaged(f"{short(e.name)} has other than the bytes that its shape asks for")
        found.append(RemoteTensor(e.name, e.shape, kind, file, start + e.start, start + e.end))
    return found


def as_checkpoint(
    folder: RemoteFolder, found: Iterable[RemoteTensor], facts: ModelFacts
) -> Checkpoint:
    """Return a checkpoint whose parameters can be chosen, but not opened."""
    tensors = (Tensor(plain(t.name), t.shape, t.dtype, _not_here) for t in found)
    path, form = Path(folder.name.partition("://")[2]), "headers of a remote model"
    return read_parameters(Checkpoint(path, form, tuple(tensors), (), tied=facts.tied, facts=facts))


def read_remote_facts(folder: RemoteFolder) -> ModelFacts:
    """Read the facts of the configuration, which is fetched."""
    with tempfile.TemporaryDirectory(prefix="embgeo-") as scratch:
        for name in CONFIGURATIONS:
            if name in folder.files:
                save_small(folder, name, Path(scratch) / name)
        return read_facts(Path(scratch))


def _not_here() -> Array:
    raise refuse("the tensor", "is not on this machine", "fetch it: embgeo fetch NAME -o FOLDER")


def find_names(known: Iterable[str], source: Source) -> set[str]:
    """Find the names of possible embeddings, output matrices and final norms.

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
    """Rank of an output matrix; inside a stack of layers only the surest names count.

    Attention has projections of similar names in every shard.
    """
    rank = names.output_rank(name)
    return None if rank and _IN_A_STACK.search(name) else rank


def _surest(known: list[str], rank_of: Callable[[str], int | None]) -> set[str]:
    ranks: dict[str, int] = {}
    for name in known:
        # Scales and packed codes lie beside the weight that they belong to.
        weight = f"{name.rpartition('.')[0]}.weight"
        rank = next((r for r in (rank_of(name), rank_of(weight)) if r is not None), None)
        if rank is not None and not names.is_other_embedding(name):
            ranks[name] = rank
    surest = min(ranks.values(), default=None)
    return {name for name, rank in ranks.items() if rank == surest}


def choose_tensors(
    folder: RemoteFolder, weights: RemoteWeights, source: Source
) -> list[RemoteTensor]:
    """List the parts of embedding, output matrix and final norm, in the order of their bytes."""
    tensors = list_tensors(folder, weights, source)
    checkpoint = as_checkpoint(folder, tensors, read_remote_facts(folder))
    choice = choose(
        checkpoint,
        tensor=source.tensor,
        output=source.output,
        transpose=source.transpose,
    )
    chosen: set[str] = set(_IDS)
    for one in filter(None, (choice.input, choice.output)):
        chosen |= {*one.parts, one.name}
    d = choice.input.shape[0 if choice.input_transposed else 1]
    needed = [
        one
        for one in tensors
        if plain(one.name) in chosen or (one.shape == (d,) and is_final_norm(one.name))
    ]
    needed.sort(key=lambda one: (weights.files.index(one.file), one.start))
    return needed

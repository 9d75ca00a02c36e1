"""Checkpoints in several files: the index that maps tensors to files.

Hugging Face writes ``model.safetensors.index.json`` and, for torch checkpoints,
``pytorch_model.bin.index.json``.
"""

import re
from dataclasses import replace

from embgeo.files.guard import Damaged, plain, short
from embgeo.files.maps import Bytes
from embgeo.files.small_files import load_json
from embgeo.io.formats import hdf5, safetensors, torch_legacy, torch_zip
from embgeo.io.formats.foreign import find_foreign
from embgeo.io.formats.format import Beside
from embgeo.io.model.checkpoint import Checkpoint, Tensor

NAME = "sharded checkpoint"
RECOGNIZED = "JSON with a weight_map; its shards, safetensors, torch or HDF5, lie next to it"
READ = "tensors are mapped; the index and the headers of the shards are read"
EXTRA = ""

# As the header of safetensors: an index names each tensor once.
_LONGEST_INDEX = 100_000_000
_HEAD = 4096
_START = re.compile(rb'\s*\{\s*"(?:weight_map|metadata)"\s*:\s*\{')

_SHARDS = (safetensors, torch_zip, torch_legacy, hdf5)


def sniff(head: bytes) -> bool:
    return _START.match(head) is not None and b'"weight_map"' in head


def open_checkpoint(data: Bytes, beside: Beside) -> Checkpoint:
    """Open the tensors of all shards, in the order of the index."""
    weight_map = read_weight_map(data)
    names = list(dict.fromkeys(weight_map.values()))
    shards = {name: _open_shard(beside, name) for name in names}
    places = {name: {t.name: t for t in shards[name].tensors} for name in names}
    tensors: list[Tensor] = []
    for tensor, shard in weight_map.items():
        found = places[shard].get(plain(tensor))
        if found is not None:
            # The index may omit the tensor that an alias names.
            alias = found.alias_of if found.alias_of in weight_map else ""
            tensors.append(replace(found, alias_of=alias))
            continue
        # Keras names a layer: its variables are in a group of HDF5.
        prefix = f"{plain(tensor).strip('/')}/"
        inside = [t for t in shards[shard].tensors if t.name.startswith(prefix)]
        if not inside:
            raise Damaged(f"the index puts {short(tensor)} into {shard}, which does not hold it")
        tensors += inside
    notes = tuple(note for shard in shards.values() for note in shard.notes)
    return Checkpoint(NAME, tuple(tensors), notes=notes, holders=tuple(names))


def read_weight_map(data: Bytes) -> dict[str, str]:
    if len(data) > _LONGEST_INDEX:
        raise Damaged(f"an index of {len(data):,} bytes is not an index")
    index = load_json(data.tobytes().decode("utf-8"), safetensors.without_repeats)
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise Damaged("the index has no weight map")
    places: dict[str, str] = {}
    for name, given in weight_map.items():
        # Keras lists the shards of a layer: a key of its own for each, with slashes behind it.
        for number, shard in enumerate(given if isinstance(given, list) else [given]):
            if not isinstance(shard, str):
                raise Damaged("the index names a shard that is not a string")
            places[name + "/" * number] = shard
    return places


def _open_shard(beside: Beside, name: str) -> Checkpoint:
    head = beside.open(name)[:_HEAD].tobytes()
    for known in _SHARDS:
        if known.sniff(head):
            return beside.open_with(known, name)
    if (other := find_foreign("", head)) is not None:
        raise Damaged(f"the shard {name} {other.what}", other.way_out)
    raise Damaged(f"the shard {name} is neither a safetensors file nor a torch checkpoint")

"""Which shards of a remote model hold what an analysis reads, by the names in its index."""

import re
from collections.abc import Callable, Iterable, Mapping

from embgeo.core.source import Source
from embgeo.files.guard import plain
from embgeo.io.model import names
from embgeo.io.model.final_norm import is_final_norm

_IN_A_STACK = re.compile(r"[./]\d+[./]")


def find_shards(weight_map: Mapping[str, str], source: Source) -> dict[str, str]:
    """Return the entries of an index whose shards may hold what is needed.

    All of them if no name looks like that of an embedding; then shapes decide.
    """
    shards = {weight_map[name] for name in find_names(weight_map, source)}
    return {n: shard for n, shard in weight_map.items() if not shards or shard in shards}


def find_names(known: Iterable[str], source: Source) -> set[str]:
    """Find the names of possible embeddings, output matrices and final norms."""
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

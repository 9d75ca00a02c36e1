"""Choice of the embedding matrix and the output projection among the tensors of a checkpoint.

Names decide, then shapes. If several tensors are possible, the user has to choose.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from embgeo.core.errors import AmbiguousTensor, BadOption, argument
from embgeo.io import parameter_names as names
from embgeo.io.bounded.guard import RIGHT_FILE, refuse, short
from embgeo.io.checkpoint import Checkpoint, Tensor

#: An unnamed matrix is the embedding if it has this many rows per column, and this many times as
#: many rows as any other matrix has rows or columns.
TALL = 4
CLEARLY_LARGER = 2
_LISTED = 8


@dataclass(frozen=True, slots=True)
class TensorRole:
    """Purpose of a tensor: the argument that names it, and words for messages."""

    argument: str
    what: str
    shape: str


EMBEDDING = TensorRole(
    "tensor", "the embedding matrix", "an embedding is a matrix with a row for each token"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The tensors to be analyzed: the embedding, and the output projection of an untied model."""

    input: Tensor
    output: Tensor | None
    #: Whether tokens are columns in the file.
    input_transposed: bool
    output_transposed: bool
    #: Why `input` was chosen.
    reason: str
    #: All matrices of real numbers of the same kind (the model's, averaged copies, or the
    #: optimizer's); tensors in shared storage count once.
    candidates: tuple[Tensor, ...]
    #: Why the embedding is the output projection, too; empty if it is not.
    tied_by: str = ""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _NameGroup:
    """Tensors in the same storage."""

    members: list[Tensor] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.members[0].shape

    @property
    def kind(self) -> int:
        """0 for the model's own matrices, 1 for averaged copies, 2 for the optimizer's."""
        return min(_kind(t.name) for t in self.members)

    def best(self, rank_of: Callable[[str], int | None]) -> tuple[int, Tensor] | None:
        """Rank and tensor of the surest name; None if no name fits."""
        ranked = (
            (rank, t)
            for t in self.members
            if (rank := rank_of(t.name)) is not None
            and not names.is_other_embedding(t.name)
            and _kind(t.name) == self.kind
        )
        return min(ranked, key=lambda pair: pair[0], default=None)


def _kind(name: str) -> int:
    if names.is_optimizer_state(name):
        return 2
    return 1 if names.is_averaged_copy(name) else 0


def choose(
    checkpoint: Checkpoint,
    *,
    tensor: str | None = None,
    output: str | None = None,
    transpose: bool = False,
    role: TensorRole = EMBEDDING,
) -> Choice:
    """Find the embedding matrix and the output projection.

    `tensor` and `output` are names, of which a unique ending after a dot is enough; `output` may be
    ``"none"``. Raises AmbiguousTensor if several tensors could be the embedding, or none; BadOption
    for a named tensor that does not fit; and UnreadableFile for an empty matrix.
    """
    named = None if tensor is None else find_named(checkpoint, tensor, role.argument)
    every = _groups(checkpoint, named)
    kind = min((g.kind for g in every if named is None or named in g.members), default=0)
    groups = [group for group in every if group.kind == kind]
    if named is None:
        chosen, reason = _find_input(checkpoint, groups, role)
    else:
        chosen, reason = named, "named with --tensor"
    if 0 in chosen.shape:
        which = f"tensor {short(chosen.name)!r}" if chosen.name else "the matrix"
        raise refuse(
            checkpoint.path,
            f"{which} is empty ({shape_text(chosen)})",
            f"name another one with {argument(role.argument)}"
            if len(checkpoint.tensors) > 1
            else "save it with at least one row and one column",
        )
    n = chosen.shape[1] if transpose else chosen.shape[0]
    found, tied_by, notes = _find_output(checkpoint, groups, chosen, n, output)
    return Choice(
        input=chosen,
        output=found,
        input_transposed=transpose,
        output_transposed=found is not None and found.shape[0] != n,
        reason=reason,
        candidates=tuple(group.members[0] for group in groups),
        tied_by=tied_by,
        notes=(*notes, *_averaged_copies(every, kind, chosen)),
    )


def is_real(dtype: str) -> bool:
    """Whether a type of numpy or ml_dtypes holds floating-point numbers."""
    if dtype.startswith(("float", "bfloat")):
        return True
    try:
        return np.dtype(dtype).kind == "f"
    except TypeError:
        return False


def shape_text(tensor: Tensor) -> str:
    """Format shape and type: ``50,257×768 float32``."""
    return f"{'×'.join(f'{size:,}' for size in tensor.shape) or 'scalar'} {tensor.dtype}"


def find_named(checkpoint: Checkpoint, name: str, option: str) -> Tensor:
    """Find the matrix called `name`, or the only one whose name ends in ``.name``."""
    exact = [t for t in checkpoint.tensors if t.name == name]
    found = exact or [t for t in checkpoint.tensors if t.name.endswith(f".{name}")]
    if len(found) != 1:
        known = [t.name for t in checkpoint.tensors]
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        cause = "fits several tensors" if found else "is not in the file"
        listing = ", ".join(map(short, [t.name for t in found[:_LISTED]] or near))
        problem = f"{cause} (like {listing})" if listing else cause
    elif len(found[0].shape) != 2 or not is_real(found[0].dtype):
        problem = f"is not a matrix of real numbers ({shape_text(found[0])})"
    else:
        return found[0]
    raise BadOption(
        f"{argument(option)} {name!r} {problem}",
        where=checkpoint.path,
        way_out="'embgeo inspect' lists the tensors",
    )


def _groups(checkpoint: Checkpoint, named: Tensor | None) -> list[_NameGroup]:
    """Group the matrices of real numbers by storage, without unnamed matrices of adapters."""
    by_root: dict[str, _NameGroup] = {}
    for t in checkpoint.tensors:
        is_left_out = names.is_adapter(t.name) and t is not named
        if len(t.shape) == 2 and is_real(t.dtype) and not is_left_out:
            by_root.setdefault(t.alias_of or t.name, _NameGroup()).members.append(t)
    for group in by_root.values():
        # The optimizer's parameters may precede the model; their names come last.
        group.members.sort(key=lambda t: _kind(t.name))
    return list(by_root.values())


def _averaged_copies(every: list[_NameGroup], kind: int, chosen: Tensor) -> tuple[str, ...]:
    """A note on averaged copies of the chosen matrix."""
    if kind == 1:
        return ()
    copies = [g.members[0].name for g in every if g.kind == 1 and g.shape == chosen.shape]
    layer = ".".join(chosen.name.split(".")[-2:])  # ``embed_tokens.weight``
    named_alike = [name for name in copies if name.endswith(layer)]
    if not (named_alike or copies):
        return ()
    first = short((named_alike or copies)[0])
    return (f"{first} is a running average of the weights; --tensor {first} analyses it instead",)


def _find_input(
    checkpoint: Checkpoint, groups: list[_NameGroup], role: TensorRole
) -> tuple[Tensor, str]:
    """Choose the embedding matrix; returns it with the reason."""
    if not groups:
        raise _no_matrix(checkpoint, role)
    ranked = [best for group in groups if (best := group.best(names.input_rank))]
    if len(groups) == 1:
        only = ranked[0][1] if ranked else groups[0].members[0]
        return only, "the only matrix in the file"
    if ranked:
        surest = _surest(ranked)
        if len(surest) == 1:
            return surest[0], "its name is that of a token embedding"
        raise _ambiguous(checkpoint, surest, role)
    if all(names.is_numbered(group.members[0].name) for group in groups):
        by_shape = _input_by_shape(groups)
        if by_shape is not None:
            return by_shape
    outputs = [best for group in groups if (best := group.best(names.output_rank)) and best[0] < 2]
    if outputs and len(surest := _surest(outputs)) == 1:
        return surest[0], "its name is that of an output projection, and no other fits"
    raise _ambiguous(checkpoint, [group.members[0] for group in groups], role)


def _surest(ranked: list[tuple[int, Tensor]]) -> list[Tensor]:
    lowest = min(rank for rank, _ in ranked)
    return [t for rank, t in ranked if rank == lowest]


def _input_by_shape(groups: list[_NameGroup]) -> tuple[Tensor, str] | None:
    """Choose the unnamed matrix that is much taller than all others, if there is one.

    The vocabulary is by far the largest dimension of a small language model; the output projection
    may share it, usually with the mirrored shape (d, N).
    """
    tallest = max(max(group.shape) for group in groups)
    holders = [group for group in groups if tallest in group.shape]
    others = [max(group.shape) for group in groups if tallest not in group.shape]
    tall = [g for g in holders if g.shape[0] == tallest and tallest >= TALL * g.shape[1]]
    wide = [g for g in holders if g.shape[1] == tallest]
    if len(tall) != 1 or len(wide) > 1 or len(holders) != len(tall) + len(wide):
        return None
    if others and tallest < CLEARLY_LARGER * max(others):
        return None
    mirror = f", and tensor {short(wide[0].members[0].name)!r} mirrors its shape" if wide else ""
    return tall[0].members[0], f"by shape: by far the most rows ({tallest:,}){mirror}"


def _find_output(
    checkpoint: Checkpoint, groups: list[_NameGroup], chosen: Tensor, n: int, option: str | None
) -> tuple[Tensor | None, str, tuple[str, ...]]:
    """Find the output projection over the same n tokens, how it is tied, and notes."""
    own = next(group for group in groups if chosen in group.members)
    if option == "none":
        return None, "", ()
    if option is not None:
        found = find_named(checkpoint, option, "output")
        if found in own.members:
            raise BadOption(
                f"{argument('output')} {option!r} is the input embedding itself",
                where=checkpoint.path,
                way_out="leave it out; the model is tied",
            )
        if n not in found.shape:
            raise BadOption(
                f"{argument('output')} {option!r} ({shape_text(found)}) "
                f"has no dimension of {n:,} tokens",
                where=checkpoint.path,
                way_out="name the output projection over the same tokens",
            )
        return found, "", ()
    shared = [t.name for t in own.members if t is not chosen]
    if any(names.output_rank(name) is not None for name in shared):
        tied_by = f"{', '.join(map(short, shared))} shares the storage of {short(chosen.name)}"
        return None, tied_by, ()
    candidates = _output_candidates(groups, own, chosen, n)
    if checkpoint.tied:
        tied_by = "the configuration says that the output projection is the input embedding"
        if candidates:
            tied_by += f"; the stored {short(candidates[0].name)} is left out"
        return None, tied_by, ()
    if len(candidates) > 1:
        several = f"several possible output projections: {_listing(candidates)}"
        return None, "", (f"{several}; choose one with --output",)
    return next(iter(candidates), None), "", ()


def _output_candidates(
    groups: list[_NameGroup], own: _NameGroup, chosen: Tensor, n: int
) -> list[Tensor]:
    others = [group for group in groups if group is not own and n in group.shape]
    if names.is_numbered(chosen.name):
        if chosen.shape[0] != n:
            return []  # tokens are its columns: it is itself the output projection
        return [g.members[0] for g in others if names.is_numbered(g.members[0].name)]
    if names.side(chosen.name) == "encoder" and any(
        (best := group.best(names.input_rank)) and names.side(best[1].name) == "decoder"
        for group in groups
    ):
        return []  # the output projection is over the decoder's tokens
    ranked = [best for group in others if (best := group.best(names.output_rank))]
    surest = _surest(ranked) if ranked else []
    same_width = [t for t in surest if sorted(t.shape) == sorted(chosen.shape)]
    return same_width if len(surest) > 1 and same_width else surest


def _no_matrix(checkpoint: Checkpoint, role: TensorRole) -> AmbiguousTensor:
    if not checkpoint.tensors:
        return AmbiguousTensor("it holds no tensors", where=checkpoint.path, way_out=RIGHT_FILE)
    flat = [t for t in checkpoint.tensors if len(t.shape) == 2]
    if any(names.is_adapter(t.name) for t in flat):
        cause = "it holds the matrices of an adapter (LoRA) and no embedding"
        way_out = "merge it into its model first (peft: model.merge_and_unload())"
    elif flat:
        cause = f"no matrix of real numbers, only {_listing(flat)}"
        way_out = "quantized or integer matrices have to be converted to floating point first"
    else:
        cause = f"no two-dimensional tensor, only {_listing(list(checkpoint.tensors))}"
        way_out = role.shape
    return AmbiguousTensor(cause, where=checkpoint.path, way_out=way_out)


def _ambiguous(
    checkpoint: Checkpoint, candidates: list[Tensor], role: TensorRole
) -> AmbiguousTensor:
    ordered = sorted(candidates, key=lambda t: -t.shape[0] * t.shape[1])
    return AmbiguousTensor(
        f"several tensors could be {role.what}: {_listing(ordered)}",
        where=checkpoint.path,
        way_out=f"choose one with {argument(role.argument, 'NAME')}",
    )


def _listing(tensors: list[Tensor]) -> str:
    shown = [f"{short(t.name)} ({shape_text(t)})" for t in tensors[:_LISTED]]
    if len(tensors) > _LISTED:
        shown.append(f"and {len(tensors) - _LISTED:,} more")
    return ", ".join(shown)

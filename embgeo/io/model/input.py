"""The embedding matrix among the parameters of a checkpoint, or why none is chosen.

Names decide, with the sizes that the configuration says; without a name, the shapes. What could be
the embedding and cannot be read stops the choice: nothing takes its place. If the evidence does not
decide, the user has to choose.
"""

import re
from dataclasses import dataclass, replace

from embgeo.core.errors import AmbiguousTensor, WayOut, argument
from embgeo.files.guard import list_short, short
from embgeo.files.maps import TEXT, count
from embgeo.io.model import names
from embgeo.io.model.candidates import (
    CandidateGroup,
    collect_evidence,
    contradicts,
    count_slices,
    describe,
    find_fault,
    has_vocabulary,
    input_rank,
    is_lone_output,
    is_named_by,
    is_real,
    lacks_rows,
)
from embgeo.io.model.checkpoint import Checkpoint, Tensor

#: An unnamed matrix is the embedding if it has this many rows per column, and this many times as
#: many rows as any other matrix has rows or columns.
TALL, CLEARLY_LARGER = 4, 2
#: Types of codes, which indices and edges of graphs are not stored in.
_CODES = ("int8", "uint8", "uint16", "uint32")
#: Parts of names of what may be an embedding.
_LIKE_EMBEDDINGS = re.compile(r"emb|codebook|vector|flat_param")
LISTED = 8


@dataclass(frozen=True, slots=True)
class TensorRole:
    """Purpose of a tensor: the argument that names it, and words for messages."""

    argument: str
    what: str
    shape: str


EMBEDDING = TensorRole(
    "tensor", "the embedding matrix", "an embedding is a matrix with a row for each token"
)


def find_input(
    checkpoint: Checkpoint, groups: list[CandidateGroup], role: TensorRole
) -> tuple[Tensor, str]:
    """Choose the embedding matrix; returns it with the reason."""
    by_name = {t.name: t for group in groups for t in group.members}
    ranked = [
        best
        for group in groups
        if (best := group.best(lambda name: input_rank(by_name[name], checkpoint.facts)))
    ]
    if not ranked:
        return _find_without_name(checkpoint, groups, role)
    surest, reason = _find_surest(checkpoint, ranked)
    if len(surest) > 1:
        raise _ambiguous(checkpoint, surest, role)
    (chosen,) = surest
    if chosen.problem:
        raise _stopped(checkpoint, chosen)
    _refuse_slice(checkpoint, chosen)
    if 0 not in chosen.shape and lacks_rows(chosen, checkpoint.facts):
        raise _ambiguous(checkpoint, surest, role)
    return chosen, "the only matrix in the file" if len(groups) == 1 else reason


def _find_surest(
    checkpoint: Checkpoint, ranked: list[tuple[int, Tensor]]
) -> tuple[list[Tensor], str]:
    """Return the tensors that the evidence cannot tell apart, and why they go before the others."""
    facts = checkpoint.facts
    outer = _outermost(checkpoint, [t for _, t in ranked])
    ranks = {t.name: rank for rank, t in ranked}
    lowest = min(ranks[t.name] for t in outer)
    surest = [t for t in outer if ranks[t.name] == lowest]
    proved = [t for t in outer if has_vocabulary(t, facts) and not names.kind_of(t.name)]
    kinds = {names.kind_of(t.name) for t in surest}
    reason = "name matches a token embedding"
    named = [t for t in outer if is_named_by(facts.architecture, t.name)]
    if len(named) == 1 and kinds == {""} == {names.kind_of(named[0].name)}:
        reason = f"name matches the token embedding of {short(facts.architecture)}"
        return _with_unread(outer, ranks, named), reason
    if len(proved) == 1 and (len(surest) > 1 or kinds != {""}):
        return _with_unread(outer, ranks, proved), f"{reason}, and it has the rows of vocab_size"
    if len(surest) == 1 and kinds != {""} and len(outer) > 1:
        return outer, reason  # other kinds of ids are a question
    return _with_unread(outer, ranks, surest), reason


def _with_unread(outer: list[Tensor], ranks: dict[str, int], surest: list[Tensor]) -> list[Tensor]:
    """Return the surest tensors; alone the one that cannot be read, if its name is as sure."""
    if len(surest) > 1 and any(t.problem for t in surest):
        return [next(t for t in surest if t.problem)]
    highest = max(ranks[t.name] for t in surest)
    unread = [t for t in outer if t.problem and ranks[t.name] <= highest]
    return unread[:1] or surest


def _outermost(checkpoint: Checkpoint, tensors: list[Tensor]) -> list[Tensor]:
    """Drop copies for multi-token prediction and tensors of one layer, if others remain."""
    layers = checkpoint.facts.layers
    kept = [t for t in tensors if not names.is_prediction_copy(t.name, layers)] or tensors
    return [t for t in kept if names.layer_of(t.name) is None] or kept


def _find_without_name(
    checkpoint: Checkpoint, groups: list[CandidateGroup], role: TensorRole
) -> tuple[Tensor, str]:
    """Choose the only matrix, the tallest of numbered ones, or the output of a tied model."""
    readable = [group for group in groups if group.is_readable]
    matrices = [group.members[0] for group in readable]
    lone = matrices[0] if len(matrices) == 1 else None
    _refuse_unknown_form(checkpoint, lone)
    found = None
    if checkpoint.facts.pieces == 1:  # else another shard may hold the embedding
        found = _find_by_shape(checkpoint, readable, lone) or _find_output(checkpoint, readable)
    rival = _find_rival(checkpoint, found, is_question=found is None and len(matrices) > 1)
    if rival is not None:
        raise _stopped(checkpoint, rival, is_sure=False)
    if found is not None:
        return found
    if matrices:
        raise _ambiguous(checkpoint, matrices, role)
    raise _no_matrix(checkpoint, role)


def _find_by_shape(
    checkpoint: Checkpoint, readable: list[CandidateGroup], lone: Tensor | None
) -> tuple[Tensor, str] | None:
    if lone is not None:
        is_possible = _may_be_embedding(checkpoint, lone)
        return (lone, "the only matrix in the file") if is_possible else None
    if not readable or not all(names.is_numbered(g.members[0].name) for g in readable):
        return None
    found = find_tallest(readable)
    return found if found is not None and _may_be_embedding(checkpoint, found[0]) else None


def find_tallest(groups: list[CandidateGroup]) -> tuple[Tensor, str] | None:
    """Choose the unnamed matrix that is much taller than all others, if there is one.

    The vocabulary is by far the largest dimension of a small language model; the output matrix
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
    checkpoint: Checkpoint, readable: list[CandidateGroup]
) -> tuple[Tensor, str] | None:
    """Choose the output matrix with the surest name, which is the embedding of a tied model."""
    outputs = [b for group in readable if (b := group.best(names.output_rank)) and b[0] < 2]
    if not outputs:
        return None
    lowest = min(rank for rank, _ in outputs)
    surest = _outermost(checkpoint, [t for rank, t in outputs if rank == lowest])
    if len(surest) > 1 or not _may_be_embedding(checkpoint, surest[0]):
        return None
    return surest[0], "name matches an output matrix, and no other fits"


def _may_be_embedding(checkpoint: Checkpoint, tensor: Tensor) -> bool:
    """Tell whether neither the kind of layer nor the configuration speaks against it."""
    if names.is_layer_kernel(tensor.name) or names.is_other_embedding(tensor.name):
        return False
    if contradicts(tensor, checkpoint.facts):
        return False
    return not is_lone_output(tensor, checkpoint.facts)


def _find_rival(
    checkpoint: Checkpoint, found: tuple[Tensor, str] | None, *, is_question: bool
) -> Tensor | None:
    """Find what cannot be read, or is no matrix, and may be the embedding as well.

    A member of unknown form, a stack that is named like embeddings, codes, or a flat vector that
    are as large as the matrix that was found. If several matrices are a question anyway
    (`is_question`), only what is named like embeddings goes before it.
    """
    size = count(found[0].shape) if found is not None else None
    for tensor in sorted(checkpoint.tensors, key=lambda t: not t.problem):
        name, shape = tensor.name, tensor.shape
        if names.layer_of(name) is not None or names.is_layer_kernel(name):
            continue
        if names.is_other_embedding(name) or names.is_adapter(name) or names.copy_kind(name):
            continue
        is_like = _LIKE_EMBEDDINGS.search(name.lower()) is not None
        # Several matrices are a question anyway.
        is_text = tensor.dtype in (TEXT, "bytes")
        if tensor.problem and (is_like or not (is_text or is_question)):
            return tensor
        is_large = size is not None and count(shape) >= size
        if is_real(tensor.dtype):
            rivals = (is_like and len(shape) > 2) or (len(shape) == 1 and is_large)
        else:
            rivals = len(shape) == 2 and (is_like or (is_large and tensor.dtype in _CODES))
        if rivals and tensor.dtype != "bool" and 0 not in shape:
            problem, way_out = find_fault(tensor)
            return replace(tensor, problem=problem, way_out=way_out)
    return None


def _refuse_unknown_form(checkpoint: Checkpoint, lone: Tensor | None) -> None:
    """Refuse a module of an embedding whose parts are in no form that is read.

    Tensor trains, factors, norms and masks are such forms. A module with the `lone` matrix of the
    file and nothing else is that matrix.
    """
    held: dict[str, list[Tensor]] = {}
    for tensor in checkpoint.tensors:
        name = tensor.name
        module = names.module_of(name, sure=False)
        is_outer = module and names.input_rank(module) is not None and names.layer_of(name) is None
        if not is_outer or names.is_adapter(name) or names.copy_kind(name):
            continue
        if not names.is_other_embedding(name):
            held.setdefault(module, []).append(tensor)
    for module, parts in held.items():
        if parts == [lone] or all(t.problem or len(t.shape) < 2 for t in parts):
            continue
        ends = [t.name.removeprefix(module).lstrip(".:/") for t in parts]
        cause = f"{short(module)} is stored in a form that is not known ({list_short(ends, 3)})"
        way_out = f"choose another matrix with {argument('tensor', 'NAME')}"
        raise AmbiguousTensor(cause, where=checkpoint.path, way_out=way_out)


def _refuse_slice(checkpoint: Checkpoint, chosen: Tensor) -> None:
    """Refuse a matrix with the n-th part of the rows, or of the columns, that it should have."""
    pieces = count_slices(chosen, checkpoint.tensors, checkpoint.facts)
    if pieces > 1:
        facts = checkpoint.facts
        whole = f"{facts.vocabulary:,} × {facts.columns or chosen.shape[1]:,} matrix"
        raise AmbiguousTensor(
            f"{describe(chosen)} is one of {pieces} slices of the {whole} of the configuration",
            where=checkpoint.path,
            way_out="join the slices with the program that wrote them, and name the result",
        )


def refuse_columns(checkpoint: Checkpoint, chosen: Tensor) -> None:
    """Refuse a matrix whose columns are the vocabulary of the configuration."""
    facts, turned = checkpoint.facts, replace(chosen, shape=chosen.shape[::-1])
    if chosen.shape[0] == facts.columns != chosen.shape[1] and has_vocabulary(turned, facts):
        cause = f"{describe(chosen)} has a column for each of {facts.vocabulary:,} tokens"
        ways_out, way_out = [WayOut(arguments={"transpose": True})], f"use {argument('transpose')}"
        raise AmbiguousTensor(cause, where=checkpoint.path, way_out=way_out, ways_out=ways_out)


def _stopped(checkpoint: Checkpoint, tensor: Tensor, *, is_sure: bool = True) -> AmbiguousTensor:
    """Return the error for an embedding whose form cannot be read: nothing takes its place."""
    module = short(tensor.name.removesuffix(".weight")) or "the matrix"
    way_out = tensor.way_out
    if not is_sure:
        way_out += f"; if it is not the embedding, choose one with {argument('tensor', 'NAME')}"
    return AmbiguousTensor(f"{module} {tensor.problem}", where=checkpoint.path, way_out=way_out)


def _no_matrix(checkpoint: Checkpoint, role: TensorRole) -> AmbiguousTensor:
    if not checkpoint.tensors:
        return AmbiguousTensor("it holds no tensors", where=checkpoint.path)
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
    ordered = sorted(candidates, key=lambda t: -t.shape[0] * t.shape[1] if len(t.shape) == 2 else 0)
    ways_out = [
        WayOut(arguments={role.argument: t.name}) for t in ordered[:LISTED] if not t.problem
    ]
    if len(ordered) > 1:
        cause = f"several tensors could be {role.what}: {_listing(ordered)}"
        way_out = f"choose one with {argument(role.argument, 'NAME')}"
    else:
        evidence = collect_evidence(ordered[0], checkpoint.facts)
        against = (one.text for one in evidence if not one.speaks_for)
        why = next(against, "nothing says that it is one")
        cause = f"{describe(ordered[0])} may not be {role.what}: {why}"
        way_out = f"measure it with {argument(role.argument)} {short(ordered[0].name)}"
    return AmbiguousTensor(cause, where=checkpoint.path, way_out=way_out, ways_out=ways_out)


def _listing(tensors: list[Tensor]) -> str:
    shown = [describe(t) for t in tensors[:LISTED]]
    if len(tensors) > LISTED:
        shown.append(f"and {len(tensors) - LISTED:,} more")
    return ", ".join(shown)

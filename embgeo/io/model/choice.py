"""Choice of the embedding matrix and the output matrix among the parameters of a checkpoint.

Names decide, with the sizes that the configuration says; without a name, the shapes. What could be
the embedding and cannot be read stops the choice: nothing takes its place. If the evidence does not
decide, the user has to choose.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from embgeo.core.errors import AmbiguousTensor, BadOption, WayOut, argument
from embgeo.files.guard import list_short, refuse, short, without_collection
from embgeo.files.maps import TEXT, count
from embgeo.io.model import names
from embgeo.io.model.candidates import (
    CandidateGroup,
    collect_evidence,
    contradicts,
    count_slices,
    describe,
    find_fault,
    group_matrices,
    has_vocabulary,
    input_rank,
    is_lone_output,
    is_named_by,
    is_padded,
    is_real,
    lacks_rows,
    shape_text,
)
from embgeo.io.model.checkpoint import (
    FEWEST_VECTORS,
    SAVE_FLOATS,
    Checkpoint,
    Tensor,
    unreadable,
)

#: An unnamed matrix is the embedding if it has this many rows per column, and this many times as
#: many rows as any other matrix has rows or columns.
TALL, CLEARLY_LARGER = 4, 2
#: Types of codes, which indices and edges of graphs are not stored in.
_CODES = ("int8", "uint8", "int16", "uint16", "uint32")
#: Parts of names of what may be an embedding.
_LIKE_EMBEDDINGS = re.compile(r"emb|codebook|vector|flat_param")
#: A name of anything: texts called so that label no rows may be vectors in a form of their own.
_DATA = re.compile(r"(^|[./])data$")
LISTED = 8
#: An output over fewer tokens than the input has at least this share of them.
_SHARED = 0.75


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
    """The tensors to be analyzed: the embedding, and the output matrix of an untied model."""

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
    #: Why the embedding is the output matrix, too; empty if it is not.
    tied_by: str = ""
    notes: tuple[str, ...] = ()
    #: Whether an output matrix is stored that is not among `output`, as it cannot be read.
    has_unread_output: bool = False
    #: Copies of the embedding in modules for multi-token prediction.
    copies: tuple[Tensor, ...] = ()


@without_collection()
def choose(
    checkpoint: Checkpoint,
    *,
    tensor: str | None = None,
    output: str | None = None,
    transpose: bool = False,
    role: TensorRole = EMBEDDING,
) -> Choice:
    """Find the embedding matrix and the output matrix.

    `tensor` and `output` are names, of which a unique ending after a dot is enough; `output` may be
    ``"none"``. Raises AmbiguousTensor if several tensors could be the embedding, or none; BadOption
    for a named tensor that does not fit; and UnreadableFile for an empty matrix, and for an
    embedding whose form cannot be read.
    """
    named = None if tensor is None else find_named(checkpoint, tensor, role.argument)
    every = group_matrices(checkpoint.tensors, named)
    kinds = [g.copy_kind for g in every if named is None or named in g.members]
    kind = min(kinds, default=0)
    groups = [group for group in every if group.copy_kind == kind]
    if named is None:
        chosen, reason = find_input(checkpoint, groups, role)
        if not transpose:
            refuse_columns(checkpoint, chosen)
    else:
        chosen, reason = named, "named with --tensor"
    if 0 in chosen.shape:
        which = f"tensor {short(chosen.name)!r}" if chosen.name else "the matrix"
        raise refuse(
            checkpoint.path,
            f"{which} is empty ({shape_text(chosen.shape, chosen.dtype)})",
            f"name another one with {argument(role.argument)}"
            if len(checkpoint.tensors) > 1
            else "save it with at least one row and one column",
        )
    n = chosen.shape[1] if transpose else chosen.shape[0]
    option = None if output in (None, "none") else find_named(checkpoint, str(output), "output")
    found = OutputChoice()
    if output != "none":
        found = find_output(checkpoint, groups, chosen, n, option)
    readable = [group for group in groups if group.is_readable]
    return Choice(
        input=chosen,
        output=found.tensor,
        input_transposed=transpose,
        output_transposed=found.transposed,
        reason=reason,
        candidates=tuple(group.members[0] for group in readable),
        tied_by=found.tied_by,
        notes=(
            *_note_choice(
                checkpoint, chosen, found, transpose=transpose, is_named=named is not None
            ),
            *(_note_averages(every, chosen) if kind != 1 else ()),
        ),
        has_unread_output=found.is_unread,
        copies=tuple(
            g.members[0]
            for g in readable
            if g.shape == chosen.shape
            and chosen not in g.members
            and names.is_prediction_copy(g.members[0].name, checkpoint.facts.layers)
            and input_rank(g.members[0], checkpoint.facts) is not None
        ),
    )


def find_named(checkpoint: Checkpoint, name: str, option: str) -> Tensor:
    """Find the matrix called `name`, or the only one whose name ends in ``.name``."""
    exact = [t for t in checkpoint.tensors if name == t.name or t.parts == (name,)]
    found = exact or [t for t in checkpoint.tensors if t.name.endswith(f".{name}")]
    way_out, near = "'embgeo inspect --all' lists the tensors", list[str]()
    if len(found) != 1:
        known = [t.name for t in checkpoint.tensors]
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        cause = "fits several tensors" if found else "is not in the file"
        listing = ", ".join(map(short, [t.name for t in found[:LISTED]] or near))
        problem = f"{cause} (like {listing})" if listing else cause
    elif found[0].problem:
        problem, way_out = found[0].problem, found[0].way_out
    elif len(found[0].shape) != 2 or not is_real(found[0].dtype):
        shape = shape_text(found[0].shape, found[0].dtype)
        problem = f"is not a matrix of real numbers ({shape})"
    else:
        return found[0]
    raise BadOption(
        f"{argument(option)} {name!r} {problem}",
        where=checkpoint.path,
        way_out=way_out,
        ways_out=[WayOut(arguments={option: one}) for one in near],
    )


def _note_choice(
    checkpoint: Checkpoint, chosen: Tensor, found: OutputChoice, *, transpose: bool, is_named: bool
) -> Iterator[str]:
    """Yield what the reader should know of the chosen matrices."""
    for tensor in filter(None, (chosen, found.tensor)):
        if tensor.note:
            yield tensor.note
        elif tensor.form and tensor.parts:  # and not joined from pieces
            yield f"{short(tensor.name)} is decoded: {tensor.form}"
    n, d = chosen.shape[::-1] if transpose else chosen.shape
    name, kind, facts = short(chosen.name), names.kind_of(chosen.name), checkpoint.facts
    known = facts.vocabulary if chosen.row_ids is None else None
    if known is not None:
        said = f"the configuration says vocab_size {known:,}, and the matrix has {n:,} rows"
        if n < known:
            yield said
        elif n > known and n not in facts.others.values() and not checkpoint.tokens and not kind:
            which = "one" if n == known + 1 else f"those from {known:,} on"
            yield f"{said}, of which {which} may be padding"
    if facts.columns is not None and d != facts.columns:
        size = f"{facts.columns:,}"
        yield f"the configuration says hidden_size {size}, and the matrix has {d:,} columns"
    yield from found.notes
    if is_named:
        return
    is_output = names.output_rank(chosen.name) is not None
    if is_output and names.input_rank(chosen.name) is None:
        yield f"{name} is an output matrix; the file holds no input embedding"
    if kind:
        yield f"the rows of {name} are {kind}"
    if beside := _list_beside(checkpoint, chosen):
        yield f"not applied to {name}: {list_short(beside)}"


def _list_beside(checkpoint: Checkpoint, chosen: Tensor) -> list[str]:
    """List tensors of the module of a weight that may scale its rows, or hold further ones."""
    module = chosen.name.removesuffix("weight")
    if "." not in chosen.name:
        return [
            one.name
            for one in checkpoint.tensors
            if one.name in ("scale", "scales") and one.shape[:1] == chosen.shape[:1]
        ]
    if not module.endswith("."):
        return []
    scales = {chosen.shape[:1], (chosen.shape[0], 1), chosen.shape[1:], (1, chosen.shape[1])}
    return [
        one.name
        for one in checkpoint.tensors
        if one.name.startswith(module)
        and one.name not in (chosen.name, *chosen.parts)
        and not (names.copy_kind(one.name) or names.is_adapter(one.name))
        and (
            (one.shape in scales and "." not in one.name.removeprefix(module))
            or (len(one.shape) == 2 and one.shape[1] == chosen.shape[1])
        )
    ]


def _note_averages(every: list[CandidateGroup], chosen: Tensor) -> tuple[str, ...]:
    """Return a note on averaged copies of the chosen matrix."""
    copies = [g.members[0].name for g in every if g.shape == chosen.shape and g.copy_kind == 1]
    if not copies:
        return ()
    layer = ".".join(chosen.name.split(".")[-2:])  # ``embed_tokens.weight``
    first = short(next((name for name in copies if name.endswith(layer)), copies[0]))
    return (f"{first} is a running average of the weights; --tensor {first} analyses it instead",)


# The embedding


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
    if len(surest) > 1 or names.is_optimizer_state(surest[0].name):
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
        found = _find_by_shape(checkpoint, readable, lone) or _find_tied(checkpoint, readable)
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


def _find_tied(checkpoint: Checkpoint, readable: list[CandidateGroup]) -> tuple[Tensor, str] | None:
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
    if names.is_optimizer_state(tensor.name):
        return False
    if contradicts(tensor, checkpoint.facts):
        return False
    return not is_lone_output(tensor, checkpoint.facts)


def _find_rival(
    checkpoint: Checkpoint, found: tuple[Tensor, str] | None, *, is_question: bool
) -> Tensor | None:
    """Find a member that may be the embedding, too, and cannot be read or is not a matrix.

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
        is_data = _DATA.search(name) is not None and checkpoint.tokens is None
        is_like = is_data or _LIKE_EMBEDDINGS.search(name.lower()) is not None
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
    return _find_vectors(checkpoint, size)


def _find_vectors(checkpoint: Checkpoint, size: int | None) -> Tensor | None:
    """Find vectors of one length that lie side by side, and may be the rows or the columns.

    They lie below a name like embeddings, or take as much as the matrix of `size` that was found.
    """
    held: dict[tuple[str, int], list[Tensor]] = {}
    for tensor in checkpoint.tensors:
        above = re.sub(r"(^|[./:])[^./:]*$", "", tensor.name)
        if names.layer_of(above) is not None or names.is_other_embedding(above):
            continue
        is_vector = len(tensor.shape) == 1 and tensor.shape[0] > 1 and is_real(tensor.dtype)
        if is_vector and not names.copy_kind(tensor.name):
            held.setdefault((above, tensor.shape[0]), []).append(tensor)
    for (above, width), vectors in held.items():
        shape = (len(vectors), width)
        is_large = size is not None and count(shape) >= size
        is_like = _LIKE_EMBEDDINGS.search(above.lower()) is not None
        if len(vectors) >= FEWEST_VECTORS and (is_like or is_large):
            problem = f"holds {len(vectors):,} vectors one by one, not a matrix"
            return unreadable(above or "the file", shape, vectors[0].dtype, problem, SAVE_FLOATS)
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
        # A parametrization computes the weight, by a function that the file does not hold.
        is_weight = parts == [lone] and ".parametrizations." not in parts[0].name
        if is_weight or all(t.problem or len(t.shape) < 2 for t in parts):
            continue
        ends = [t.name.removeprefix(module).lstrip(".:/") for t in parts]
        cause = f"{short(module)} is stored in a form that is not known ({list_short(ends)})"
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
    other = f"if it is not the embedding, choose one with {argument('tensor', 'NAME')}"
    way_out = "; ".join(filter(None, (tensor.way_out, "" if is_sure else other)))
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


# The output matrix


@dataclass(frozen=True, slots=True)
class OutputChoice:
    """The output matrix, if there is one that can be read."""

    tensor: Tensor | None = None
    #: Whether tokens are its columns.
    transposed: bool = False
    #: Why it is the embedding; empty if it is not.
    tied_by: str = ""
    notes: tuple[str, ...] = ()
    #: Whether there is one that cannot be read.
    is_unread: bool = False


def find_output(
    checkpoint: Checkpoint,
    groups: list[CandidateGroup],
    chosen: Tensor,
    n: int,
    named: Tensor | None,
) -> OutputChoice:
    """Find the output matrix over the same n tokens, and how it is tied."""
    own = next(group for group in groups if chosen in group.members)
    if named is not None:
        return _check_named(checkpoint, own, chosen, n, named)
    shared = [t.name for t in own.members if t is not chosen]
    if any(names.output_rank(name) is not None for name in shared):
        tied_by = f"{', '.join(map(short, shared))} shares the storage of {short(chosen.name)}"
        return OutputChoice(tied_by=tied_by)
    outputs = [
        best[1]
        for group in groups
        if group is not own
        and (best := group.best(names.output_rank))
        and best[0] == 0
        and _is_outer(checkpoint, best[1])
    ]
    unread = next((output for output in outputs if output.problem), None)
    if unread is not None:
        module = short(unread.name.removesuffix(".weight"))
        note = f"the output matrix {module} {unread.problem}, and is left out"
        return OutputChoice(notes=(note,), is_unread=True)
    candidates = _output_candidates(checkpoint, groups, own, chosen, n)
    if checkpoint.facts.tied:
        tied_by = "the configuration says that the output matrix is the input embedding"
        if candidates:
            tied_by += f"; the stored {short(candidates[0].name)} is left out"
        return OutputChoice(tied_by=tied_by)
    if len(candidates) > 1:
        listed = ", ".join(map(describe, candidates[:LISTED]))
        several = f"several possible output matrices: {listed}"
        return OutputChoice(notes=(f"{several}; choose one with --output",))
    if candidates:
        return OutputChoice(candidates[0], candidates[0].shape[0] != n)
    return _over_other_tokens(checkpoint, outputs, chosen, n)


def _check_named(
    checkpoint: Checkpoint, own: CandidateGroup, chosen: Tensor, n: int, named: Tensor
) -> OutputChoice:
    option = f"{argument('output')} {named.name!r}"
    if named in own.members:
        way_out = "leave it out; the model is tied"
        cause = f"{option} is the input embedding itself"
        raise BadOption(cause, where=checkpoint.path, way_out=way_out)
    if n in named.shape:
        return OutputChoice(named, named.shape[0] != n)
    if _is_longer(named, chosen, n):
        return OutputChoice(named)
    if _is_over_fewer(named, chosen, n):
        return OutputChoice(named, notes=(_note_fewer(named, n),))
    raise BadOption(
        f"{option} ({shape_text(named.shape, named.dtype)}) has no dimension of {n:,} tokens",
        where=checkpoint.path,
        way_out="name the output matrix over the same tokens",
    )


def _is_over_fewer(tensor: Tensor, chosen: Tensor, n: int) -> bool:
    """Tell whether a matrix has the width of the embedding, and rows for most of its tokens."""
    rows, columns = tensor.shape
    return _SHARED * n <= rows < n and columns == chosen.shape[1] and tensor.row_ids is None


def _is_longer(tensor: Tensor, chosen: Tensor, n: int) -> bool:
    """Tell whether a matrix has the width of the embedding, and padding beyond its tokens."""
    rows, columns = tensor.shape
    return rows > n and is_padded(rows, n) and columns == chosen.shape[1]


def _over_other_tokens(
    checkpoint: Checkpoint, surest: list[Tensor], chosen: Tensor, n: int
) -> OutputChoice:
    """Return an output with the surest of names that has fewer or more rows than the input."""
    if names.side(chosen.name) == "encoder":
        return OutputChoice()  # the output matrix may be over the decoder's tokens
    known = checkpoint.facts.vocabulary
    draft = [t for t in surest if t.row_ids is not None and t.shape[1] == chosen.shape[1]]
    if len(draft) == 1 and chosen.row_ids is None:
        rows = f"{draft[0].shape[0]:,} of {n:,} tokens, by the ids of the file"
        return OutputChoice(draft[0], notes=(f"{short(draft[0].name)} has rows for {rows}",))
    fewer = [t for t in surest if _is_over_fewer(t, chosen, n) and t.shape[0] == known]
    if len(fewer) == 1:
        return OutputChoice(fewer[0], notes=(_note_fewer(fewer[0], n),))
    # One row more does not say which row is the extra one.
    longer = [t for t in surest if _is_longer(t, chosen, n) and t.shape[0] > n + 1]
    if len(longer) == 1:
        more = longer[0].shape[0] - n
        note = f"{short(longer[0].name)} has {more:,} rows more than there are tokens, left out"
        return OutputChoice(longer[0], notes=(note,))
    if surest:
        note = f"{describe(surest[0])} is over other ids than the embedding, and is left out"
        return OutputChoice(notes=(note,))
    return _note_unknown_form(checkpoint, n)


def _note_unknown_form(checkpoint: Checkpoint, n: int) -> OutputChoice:
    """Note a module of an output that is stored and holds no matrix that is read."""
    held: dict[str, list[Tensor]] = {}
    for t in checkpoint.tensors:
        module = names.module_of(t.name)
        if names.output_rank(module) == 0 and _is_outer(checkpoint, t):
            held.setdefault(module, []).append(t)
    for module, parts in held.items():
        is_read = any(names.output_rank(t.name) == 0 and len(t.shape) == 2 for t in parts)
        if not is_read and any(len(t.shape) > 1 and n in t.shape for t in parts):
            listed = list_short([t.name.removeprefix(module).lstrip(".:/") for t in parts])
            note = f"the output {short(module)} is stored in a form that is not known ({listed})"
            return OutputChoice(notes=(f"{note}, and is left out",), is_unread=True)
    return OutputChoice()


def _has_ids_of(chosen: Tensor, other: Tensor) -> bool:
    """Tell whether the rows of two matrices are those of the same ids."""
    if chosen.row_ids is None or other.row_ids is None:
        return chosen.row_ids is other.row_ids
    return np.array_equal(chosen.row_ids(), other.row_ids())


def _note_fewer(tensor: Tensor, n: int) -> str:
    rows = tensor.shape[0]
    return (
        f"{short(tensor.name)} has {rows:,} rows for {n:,} tokens: the last {n - rows:,} have none"
    )


def _is_outer(checkpoint: Checkpoint, tensor: Tensor) -> bool:
    is_copy = names.is_prediction_copy(tensor.name, checkpoint.facts.layers)
    return not is_copy and names.layer_of(tensor.name) is None


def _output_candidates(
    checkpoint: Checkpoint,
    groups: list[CandidateGroup],
    own: CandidateGroup,
    chosen: Tensor,
    n: int,
) -> list[Tensor]:
    others = [
        g
        for g in groups
        if g is not own
        and g.is_readable
        and n in g.shape
        and min(g.shape) >= min(2, *chosen.shape)  # one number for each row is no output
        and _has_ids_of(chosen, g.members[0])
    ]
    if names.is_numbered(chosen.name):
        if chosen.shape[0] != n:
            return []  # tokens are its columns: it is itself the output matrix
        return [g.members[0] for g in others if names.is_numbered(g.members[0].name)]
    if names.side(chosen.name) == "encoder" and any(
        (best := group.best(names.input_rank)) and names.side(best[1].name) == "decoder"
        for group in groups
    ):
        return []  # the output matrix is over the decoder's tokens
    ranked = [best for group in others if (best := group.best(names.output_rank))]
    ranked = [best for best in ranked if _is_outer(checkpoint, best[1])] or ranked
    lowest = min((rank for rank, _ in ranked), default=0)
    surest = [t for rank, t in ranked if rank == lowest]
    same_width = [t for t in surest if sorted(t.shape) == sorted(chosen.shape)]
    found = same_width if len(surest) > 1 and same_width else surest
    layers = checkpoint.facts.layers
    is_input = input_rank(chosen, checkpoint.facts) is not None
    return [t for t in found if not (is_input and names.is_prediction_copy(t.name, layers))]

"""Choice of the embedding matrix and the output matrix among the parameters of a checkpoint.

Names decide, with the sizes that the configuration says, then shapes. If the evidence does not
decide, the user has to choose; a parameter whose name is that of the embedding and whose form
cannot be read stops the choice.
"""

import difflib
from dataclasses import dataclass, replace

from embgeo.core.errors import AmbiguousTensor, BadOption, WayOut, argument
from embgeo.io import parameter_names as names
from embgeo.io.bounded.guard import RIGHT_FILE, list_short, refuse, short, without_collection
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.model.candidates import (
    CandidateGroup,
    collect_evidence,
    contradicts,
    count_slices,
    describe,
    group_matrices,
    has_vocabulary,
    input_by_shape,
    input_rank,
    is_lone_output,
    is_named_by,
    is_real,
    lacks_rows,
    shape_text,
)
from embgeo.io.model.output import find_output

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
        chosen, reason = _find_input(checkpoint, groups, role)
        _refuse_slice(checkpoint, chosen)
        if not transpose:
            _refuse_columns(checkpoint, chosen)
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
    found = find_output(checkpoint, groups, chosen, n, option, left_out=output == "none")
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
            *_form_notes(chosen),
            *(_form_notes(found.tensor) if found.tensor else ()),
            *_size_notes(checkpoint, chosen, transpose=transpose),
            *found.notes,
            *_missing_input_note(chosen, named),
            *_kind_note(chosen, named),
            *_averaged_copies(every, kind, chosen),
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
        listing = ", ".join(map(short, [t.name for t in found[:_LISTED]] or near))
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


def _form_notes(tensor: Tensor) -> tuple[str, ...]:
    if tensor.note:
        return (tensor.note,)
    is_decoded = tensor.form and tensor.parts  # and not joined from pieces
    return (f"{short(tensor.name)} is decoded: {tensor.form}",) if is_decoded else ()


def _kind_note(chosen: Tensor, named: Tensor | None) -> tuple[str, ...]:
    """Note that the rows are those of other ids than text, if the user has not named them."""
    kind = names.kind_of(chosen.name)
    return (f"the rows of {short(chosen.name)} are {kind}",) if kind and not named else ()


def _missing_input_note(chosen: Tensor, named: Tensor | None) -> tuple[str, ...]:
    """Return a note if the output matrix takes the place of an embedding that is not stored."""
    has_input_name = names.input_rank(chosen.name) is not None
    if named is not None or has_input_name or names.output_rank(chosen.name) is None:
        return ()
    return (f"{short(chosen.name)} is an output matrix; the file holds no input embedding",)


def _size_notes(checkpoint: Checkpoint, chosen: Tensor, *, transpose: bool) -> tuple[str, ...]:
    """Describe how the matrix differs from the sizes of the configuration."""
    n, d = chosen.shape[::-1] if transpose else chosen.shape
    facts, notes = checkpoint.facts, []
    if facts.vocabulary is not None and n < facts.vocabulary and chosen.row_ids is None:
        size = f"{facts.vocabulary:,}"
        notes.append(f"config.json says vocab_size {size}, and the matrix has {n:,} rows")
    if facts.columns is not None and d != facts.columns:
        size = f"{facts.columns:,}"
        notes.append(f"config.json says hidden_size {size}, and the matrix has {d:,} columns")
    return tuple(notes)


def _averaged_copies(every: list[CandidateGroup], kind: int, chosen: Tensor) -> tuple[str, ...]:
    """Return a note on averaged copies of the chosen matrix."""
    if kind == 1:
        return ()
    copies = [g.members[0].name for g in every if g.shape == chosen.shape and g.copy_kind == 1]
    layer = ".".join(chosen.name.split(".")[-2:])  # ``embed_tokens.weight``
    if not copies:
        return ()
    first = short(next((name for name in copies if name.endswith(layer)), copies[0]))
    return (f"{first} is a running average of the weights; --tensor {first} analyses it instead",)


def _find_input(
    checkpoint: Checkpoint, groups: list[CandidateGroup], role: TensorRole
) -> tuple[Tensor, str]:
    """Choose the embedding matrix; returns it with the reason."""
    facts = checkpoint.facts
    by_name = {t.name: t for group in groups for t in group.members}
    ranked = [
        best
        for group in groups
        if (best := group.best(lambda name: input_rank(by_name[name], facts)))
    ]
    readable = [group for group in groups if group.is_readable]
    if ranked:
        surest, why = _surest(checkpoint, ranked)
        if len(surest) > 1:
            raise _ambiguous(checkpoint, surest, role)
        if surest[0].problem:
            raise _stopped(checkpoint, surest[0])
        _refuse_slice(checkpoint, surest[0])
        if lacks_rows(surest[0], facts):
            raise _ambiguous(checkpoint, surest, role)
        if len(readable) == 1 and len(groups) == 1:
            return surest[0], "the only matrix in the file"
        return surest[0], why
    if not readable:
        raise _no_matrix(checkpoint, role)
    first = readable[0].members[0]
    _refuse_unknown(checkpoint, first.name if len(readable) == 1 else "")
    if facts.pieces > 1:  # another shard may hold the embedding
        raise _ambiguous(checkpoint, [group.members[0] for group in readable], role)
    if len(readable) == 1 and _may_be_embedding(checkpoint, first):
        return first, "the only matrix in the file"
    if all(names.is_numbered(group.members[0].name) for group in readable):
        by_shape = input_by_shape(readable)
        if by_shape is not None and _may_be_embedding(checkpoint, by_shape[0]):
            return by_shape
    outputs = [b for group in readable if (b := group.best(names.output_rank)) and b[0] < 2]
    if outputs:
        lowest = min(rank for rank, _ in outputs)
        surest = _outermost(checkpoint, [t for rank, t in outputs if rank == lowest])
        if len(surest) == 1 and _may_be_embedding(checkpoint, surest[0]):
            return surest[0], "name matches an output matrix, and no other fits"
    raise _ambiguous(checkpoint, [group.members[0] for group in readable], role)


def _refuse_unknown(checkpoint: Checkpoint, lone: str) -> None:
    """Refuse the module of an embedding without a known matrix in it, if none is the `lone` one."""
    held: dict[str, list[str]] = {}
    for name in (t.name for t in checkpoint.tensors):
        module = names.module_of(name)
        if "flat_param" in name.rpartition(".")[2]:  # FSDP's parameters of several modules
            held.setdefault(name, []).append("FSDP's flat parameters")
        is_outer = module and names.input_rank(module) in (0, 1) and names.layer_of(name) is None
        if is_outer and not (names.is_other_embedding(name) or names.is_adapter(name)):
            held.setdefault(module, []).append(name.removeprefix(module).lstrip(".:/"))
    held.pop(names.module_of(lone), None)
    for module, ends in held.items():
        cause = f"{short(module)} is stored in a form that is not known ({list_short(ends, 3)})"
        way_out = f"choose another matrix with {argument('tensor', 'NAME')}"
        raise AmbiguousTensor(cause, where=checkpoint.path, way_out=way_out)


def _may_be_embedding(checkpoint: Checkpoint, tensor: Tensor) -> bool:
    """Tell whether neither the kind of layer nor the configuration speaks against it."""
    if names.is_layer_kernel(tensor.name) or contradicts(tensor, checkpoint.facts):
        return False
    return not is_lone_output(tensor, checkpoint.facts)


def _surest(checkpoint: Checkpoint, ranked: list[tuple[int, Tensor]]) -> tuple[list[Tensor], str]:
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


def _refuse_columns(checkpoint: Checkpoint, chosen: Tensor) -> None:
    """Refuse a matrix whose columns are the vocabulary of the configuration."""
    facts, turned = checkpoint.facts, replace(chosen, shape=chosen.shape[::-1])
    if chosen.shape[0] == facts.columns != chosen.shape[1] and has_vocabulary(turned, facts):
        cause = f"{describe(chosen)} has a column for each of {facts.vocabulary:,} tokens"
        ways_out, way_out = [WayOut(arguments={"transpose": True})], f"use {argument('transpose')}"
        raise AmbiguousTensor(cause, where=checkpoint.path, way_out=way_out, ways_out=ways_out)


def _stopped(checkpoint: Checkpoint, tensor: Tensor) -> AmbiguousTensor:
    """Return the error for an embedding whose form cannot be read: nothing takes its place."""
    module = short(tensor.name.removesuffix(".weight")) or "the matrix"
    cause = f"{module} {tensor.problem}"
    return AmbiguousTensor(cause, where=checkpoint.path, way_out=tensor.way_out)


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
    ordered = sorted(candidates, key=lambda t: -t.shape[0] * t.shape[1] if len(t.shape) == 2 else 0)
    if len(ordered) == 1:
        why = next(iter(_against(checkpoint, ordered[0])), "nothing says that it is one")
        cause = f"{describe(ordered[0])} may not be {role.what}: {why}"
        way_out = f"measure it with {argument(role.argument)} {short(ordered[0].name)}"
        ways_out = _ways_out(role, ordered)
        return AmbiguousTensor(cause, where=checkpoint.path, way_out=way_out, ways_out=ways_out)
    return AmbiguousTensor(
        f"several tensors could be {role.what}: {_listing(ordered)}",
        where=checkpoint.path,
        way_out=f"choose one with {argument(role.argument, 'NAME')}",
        ways_out=_ways_out(role, ordered[:_LISTED]),
    )


def _ways_out(role: TensorRole, tensors: list[Tensor]) -> list[WayOut]:
    """Name each matrix that can be read."""
    return [WayOut(arguments={role.argument: t.name}) for t in tensors if not t.problem]


def _against(checkpoint: Checkpoint, tensor: Tensor) -> list[str]:
    evidence = collect_evidence(tensor, checkpoint.facts)
    return [one.text for one in evidence if not one.speaks_for]


def _listing(tensors: list[Tensor]) -> str:
    shown = [describe(t) for t in tensors[:_LISTED]]
    if len(tensors) > _LISTED:
        shown.append(f"and {len(tensors) - _LISTED:,} more")
    return ", ".join(shown)

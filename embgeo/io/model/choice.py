"""Choice of the embedding matrix and the output matrix among the parameters of a checkpoint."""

import difflib
from dataclasses import dataclass

from embgeo.core.errors import BadOption, WayOut, argument
from embgeo.files.guard import refuse, short, without_collection
from embgeo.io.model import names
from embgeo.io.model.candidates import (
    CandidateGroup,
    group_matrices,
    input_rank,
    is_real,
    shape_text,
)
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.input import EMBEDDING, LISTED, TensorRole, find_input, refuse_columns
from embgeo.io.model.output import find_output


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
    known = facts.vocabulary if chosen.row_ids is None else None
    said = f"config.json says vocab_size {known or 0:,}, and the matrix has {n:,} rows"
    if known is not None and n < known:
        notes.append(said)
    is_padded = known is not None and n > known and n not in facts.others.values()
    if is_padded and checkpoint.tokens is None and not names.kind_of(chosen.name):
        notes.append(f"{said}, of which those from {known:,} on may be padding")
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

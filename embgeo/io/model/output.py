"""The output matrix over the tokens of an embedding, or why there is none."""

from dataclasses import dataclass

import numpy as np

from embgeo.core.errors import BadOption, argument
from embgeo.files.guard import list_short, short
from embgeo.io.model import names
from embgeo.io.model.candidates import (
    PADDING_ROWS,
    PADDING_SHARE,
    CandidateGroup,
    describe,
    input_rank,
    shape_text,
)
from embgeo.io.model.checkpoint import Checkpoint, Tensor

#: An output over fewer tokens than the input has at least this share of them.
_SHARED = 0.75
_LISTED = 4


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
    *,
    left_out: bool,
) -> OutputChoice:
    """Find the output matrix over the same n tokens, and how it is tied."""
    own = next(group for group in groups if chosen in group.members)
    if left_out:
        return OutputChoice()
    if named is not None:
        return _check_named(checkpoint, own, chosen, n, named)
    shared = [t.name for t in own.members if t is not chosen]
    if any(names.output_rank(name) is not None for name in shared):
        tied_by = f"{', '.join(map(short, shared))} shares the storage of {short(chosen.name)}"
        return OutputChoice(tied_by=tied_by)
    unread = _find_unread(checkpoint, groups)
    if unread is not None:
        module = short(unread.name.removesuffix(".weight"))
        note = f"the output matrix {module} {unread.problem}, and is left out"
        return OutputChoice(notes=(note,), is_unread=True)
    candidates = _candidates(checkpoint, groups, own, chosen, n)
    if checkpoint.tied:
        tied_by = "the configuration says that the output matrix is the input embedding"
        if candidates:
            tied_by += f"; the stored {short(candidates[0].name)} is left out"
        return OutputChoice(tied_by=tied_by)
    if len(candidates) > 1:
        listed = ", ".join(map(describe, candidates[:_LISTED]))
        several = f"several possible output matrices: {listed}"
        return OutputChoice(notes=(f"{several}; choose one with --output",))
    if candidates:
        return OutputChoice(candidates[0], candidates[0].shape[0] != n)
    return _over_fewer_tokens(checkpoint, groups, own, chosen, n)


def _check_named(
    checkpoint: Checkpoint, own: CandidateGroup, chosen: Tensor, n: int, named: Tensor
) -> OutputChoice:
    option = f"{argument('output')} {named.name!r}"
    if named in own.members:
        way_out = "leave it out; the model is tied"
        cause = f"{option} is the input embedding itself"
        raise BadOption(cause, where=checkpoint.path, way_out=way_out)
    if n not in named.shape and _is_padded(named, chosen, n):
        return OutputChoice(named)
    if n not in named.shape and not _is_over_fewer(named, chosen, n):
        raise BadOption(
            f"{option} ({shape_text(named.shape, named.dtype)}) has no dimension of {n:,} tokens",
            where=checkpoint.path,
            way_out="name the output matrix over the same tokens",
        )
    if n not in named.shape:
        return OutputChoice(named, notes=(_note_fewer(named, n),))
    return OutputChoice(named, named.shape[0] != n)


def _is_over_fewer(tensor: Tensor, chosen: Tensor, n: int) -> bool:
    """Tell whether a matrix has the width of the embedding, and rows for most of its tokens."""
    rows, columns = tensor.shape
    return _SHARED * n <= rows < n and columns == chosen.shape[1] and tensor.row_ids is None


def _is_padded(tensor: Tensor, chosen: Tensor, n: int) -> bool:
    """Tell whether a matrix has the width of the embedding, and rows beyond its tokens."""
    rows, columns = tensor.shape
    beyond = rows - n
    return 0 < beyond <= max(PADDING_ROWS, int(PADDING_SHARE * n)) and columns == chosen.shape[1]


def _over_fewer_tokens(
    checkpoint: Checkpoint,
    groups: list[CandidateGroup],
    own: CandidateGroup,
    chosen: Tensor,
    n: int,
) -> OutputChoice:
    """Return an output with the surest of names whose rows are fewer than those of the input."""
    if names.side(chosen.name) == "encoder":
        return OutputChoice()  # the output matrix may be over the decoder's tokens
    surest = [
        best[1]
        for group in groups
        if group is not own
        and group.is_readable
        and (best := group.best(names.output_rank))
        and best[0] == 0
        and _is_outer(checkpoint, best[1])
    ]
    known = checkpoint.facts.vocabulary
    draft = [t for t in surest if t.row_ids is not None and t.shape[1] == chosen.shape[1]]
    if len(draft) == 1 and chosen.row_ids is None and not checkpoint.tied:
        return OutputChoice(draft[0], notes=(_note_draft(draft[0], n),))
    fewer = [t for t in surest if _is_over_fewer(t, chosen, n) and t.shape[0] == known]
    if len(fewer) == 1:
        return OutputChoice(fewer[0], notes=(_note_fewer(fewer[0], n),))
    padded = [t for t in surest if _is_padded(t, chosen, n)]
    if len(padded) == 1 and not checkpoint.tied:
        more = padded[0].shape[0] - n
        note = f"{short(padded[0].name)} has {more:,} rows more than there are tokens, left out"
        return OutputChoice(padded[0], notes=(note,))
    if surest and not checkpoint.tied:
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
            listed = list_short([t.name.removeprefix(module).lstrip(".:/") for t in parts], _LISTED)
            note = f"the output {short(module)} is stored in a form that is not known ({listed})"
            return OutputChoice(notes=(f"{note}, and is left out",), is_unread=True)
    return OutputChoice()


def _note_draft(tensor: Tensor, n: int) -> str:
    rows = tensor.shape[0]
    return f"{short(tensor.name)} has rows for {rows:,} of {n:,} tokens, by the ids of the file"


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


def _find_unread(checkpoint: Checkpoint, groups: list[CandidateGroup]) -> Tensor | None:
    """Find a parameter with the surest name of an output, whose form cannot be read."""
    return next(
        (
            best[1]
            for group in groups
            if not group.is_readable
            and (best := group.best(names.output_rank))
            and best[0] == 0
            and _is_outer(checkpoint, best[1])
        ),
        None,
    )


def _candidates(
    checkpoint: Checkpoint,
    groups: list[CandidateGroup],
    own: CandidateGroup,
    chosen: Tensor,
    n: int,
) -> list[Tensor]:
    others = [
        g
        for g in groups
        if g is not own and g.is_readable and n in g.shape and _has_ids_of(chosen, g.members[0])
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

"""The listing of ``embgeo inspect``: reads headers, no tensors."""

from dataclasses import dataclass

from embgeo.core.errors import AmbiguousTensor
from embgeo.core.matrix import tied_note
from embgeo.io.model import names
from embgeo.io.model.candidates import (
    Evidence,
    collect_evidence,
    group_matrices,
    input_rank,
    is_real,
)
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.choice import Choice, choose

_LISTED = 8


@dataclass(frozen=True, slots=True)
class InspectedTensor:
    """One line of the listing.

    Attributes
    ----------
    name, shape, dtype
        Name, shape and type: of a parameter after decoding, of its parts as they are stored.
    nbytes : int
        Size of the values in bytes; 0 for another name of the same storage.
    role : str
        ``"embedding"``, ``"output matrix"``, ``"same storage as NAME"``, ``"part of NAME"`` or
        empty.
    is_candidate : bool
        Whether it could be the embedding or the output matrix.
    evidence : tuple of Evidence
        What speaks for a candidate as the embedding, and what against it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    role: str
    is_candidate: bool = False
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Inspection:
    """The listing, and the choice of the embedding.

    Attributes
    ----------
    file, format : str
        The path or name as it was given, and the format.
    tensors : tuple of InspectedTensor
        Candidates first: the chosen ones, then the others.
    reason : str
        Why the embedding was chosen, or empty.
    problem : str
        Why no embedding was chosen and what to do, in one line, or empty.
    tokens, counts : int
        Number of tokens in the file, and of those with counts.
    tokens_source, counts_source : str
        Where tokens and counts come from, in words, or empty.
    notes : tuple of str
    """

    file: str
    format: str
    tensors: tuple[InspectedTensor, ...]
    reason: str
    problem: str
    tokens: int
    tokens_source: str
    counts: int
    counts_source: str
    notes: tuple[str, ...]


def inspect_checkpoint(
    checkpoint: Checkpoint,
    *,
    tensor: str | None = None,
    output: str | None = None,
    transpose: bool = False,
) -> Inspection:
    """List the tensors, candidates first, and mark the embedding and the output matrix.

    If no tensor, or several, could be the embedding, `Inspection.problem` says so.

    Raises BadOption for a named tensor that does not exist or does not fit.
    """
    choice: Choice | None = None
    problem = ""
    try:
        choice = choose(checkpoint, tensor=tensor, output=output, transpose=transpose)
    except AmbiguousTensor as error:
        problem = error.command_line_text.removeprefix(f"{error.where}: ")
    chosen = (*tied_note(choice.tied_by), *choice.notes) if choice else ()
    unlabeled = () if checkpoint.label_error is None else (str(checkpoint.label_error),)
    notes = (*checkpoint.notes, *unlabeled, *chosen, *_vocabularies(checkpoint))
    return Inspection(
        file=str(checkpoint.path),
        format=checkpoint.format,
        tensors=_list_tensors(checkpoint, choice),
        reason=choice.reason if choice else "",
        problem=problem,
        tokens=len(checkpoint.tokens or ()),
        tokens_source=checkpoint.tokens_source if checkpoint.tokens else "",
        counts=0 if checkpoint.counts is None else len(checkpoint.counts),
        counts_source="" if checkpoint.counts is None else checkpoint.counts_source,
        notes=notes,
    )


def _list_tensors(checkpoint: Checkpoint, choice: Choice | None) -> tuple[InspectedTensor, ...]:
    """List the chosen matrices, other candidates, other parameters, and parts of decoded ones."""
    roles = {} if choice is None else {choice.input.name: "embedding"}
    if choice is not None and choice.output is not None:
        roles[choice.output.name] = "output matrix"
    candidates = {t.name for t in _find_candidates(checkpoint, choice)}
    part_of = {part: t.name for t in checkpoint.tensors for part in t.parts}
    known = {tensor.name for tensor in checkpoint.tensors}
    stored = [t for t in checkpoint.stored if t.name in part_of and t.name not in known]
    listed = []
    for tensor in (*checkpoint.tensors, *stored):
        name = tensor.name
        shared = f"same storage as {tensor.alias_of}" if tensor.alias_of else ""
        part = f"part of {part_of[name]}" if name in part_of and name not in known else ""
        own = name in candidates or name in roles
        listed.append(
            InspectedTensor(
                name,
                tensor.shape,
                tensor.dtype,
                0 if tensor.alias_of else tensor.nbytes,
                "; ".join(filter(None, (roles.get(name), shared, part))),
                own,
                collect_evidence(tensor, checkpoint.facts) if own else (),
            )
        )
    order = {"embedding": 0, "output matrix": 1}
    # What is named as an embedding comes before outputs; an unreadable one stops the choice.
    by_name = {t.name for t in checkpoint.tensors if input_rank(t, checkpoint.facts) is not None}
    listed.sort(
        key=lambda t: (
            order.get(roles.get(t.name, ""), 2),
            not t.is_candidate,
            t.name not in by_name,
        )
    )
    return tuple(listed)


def _find_candidates(checkpoint: Checkpoint, choice: Choice | None) -> list[Tensor]:
    """Find matrices whose names are those of embeddings and outputs; without any, the largest."""
    groups = group_matrices(checkpoint.tensors, None)
    matrices = [tensor for group in groups for tensor in group.members]
    named = [
        tensor
        for tensor in matrices
        if not names.is_other_embedding(tensor.name)
        and (
            input_rank(tensor, checkpoint.facts) is not None or names.output_rank(tensor.name) == 0
        )
    ]
    copies = [] if choice is None else list(choice.copies)
    if named or choice is not None:
        return [*named, *copies]
    readable = [t for t in matrices if len(t.shape) == 2 and is_real(t.dtype)]
    return sorted(readable, key=lambda t: -t.nbytes)[:_LISTED]


def _vocabularies(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return a note on several word lists; the one with an entry for each row labels the rows."""
    if len(checkpoint.vocabularies) < 2:
        return ()
    listed = [f"{name} ({len(words):,})" for name, words in checkpoint.vocabularies[:_LISTED]]
    more = len(checkpoint.vocabularies) - len(listed)
    return (f"word lists in the file: {', '.join(listed)}" + (f" and {more:,} more" * bool(more)),)

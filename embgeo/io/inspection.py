"""The listing of ``embgeo inspect``: reads headers, no tensors."""

from __future__ import annotations

from dataclasses import dataclass

from embgeo.core.errors import AmbiguousTensor
from embgeo.core.matrix import tied_note
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.model.choice import Choice, choose

_LISTED = 8


@dataclass(frozen=True, slots=True)
class InspectedTensor:
    """One line of the listing.

    Attributes
    ----------
    name, shape, dtype
        Name, shape and type in the file.
    nbytes : int
        Size of the values in bytes; 0 for another name of the same storage.
    role : str
        ``"embedding"``, ``"output projection"``, ``"same storage as NAME"`` or empty.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    role: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """The listing, and the choice of the embedding.

    Attributes
    ----------
    tensors : tuple of InspectedTensor
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
    """List the tensors and mark the embedding and the output projection.

    If no tensor, or several, could be the embedding, `Inspection.problem` says so.

    Raises
    ------
    BadOption
        A named tensor that does not exist or does not fit.
    """
    choice: Choice | None = None
    problem = ""
    try:
        choice = choose(checkpoint, tensor=tensor, output=output, transpose=transpose)
    except AmbiguousTensor as error:
        problem = error.command_line_text.removeprefix(f"{error.where}: ")
    roles: dict[str, str] = {}
    if choice is not None:
        roles[choice.input.name] = "embedding"
        if choice.output is not None:
            roles[choice.output.name] = "output projection"
    listed = []
    for t in checkpoint.tensors:
        shared = f"same storage as {t.alias_of}" if t.alias_of else ""
        role = "; ".join(filter(None, (roles.get(t.name), shared)))
        size = 0 if t.alias_of else t.nbytes
        listed.append(InspectedTensor(t.name, t.shape, t.dtype, size, role))
    chosen = (*tied_note(choice.tied_by), *choice.notes) if choice else ()
    notes = (*checkpoint.notes, *chosen, *_vocabularies(checkpoint))
    return Inspection(
        tensors=tuple(listed),
        reason=choice.reason if choice else "",
        problem=problem,
        tokens=len(checkpoint.tokens or ()),
        tokens_source=checkpoint.tokens_source if checkpoint.tokens else "",
        counts=0 if checkpoint.counts is None else len(checkpoint.counts),
        counts_source="" if checkpoint.counts is None else checkpoint.counts_source,
        notes=notes,
    )


def _vocabularies(checkpoint: Checkpoint) -> tuple[str, ...]:
    """A note on several word lists; the one with an entry for each row labels the rows."""
    if len(checkpoint.vocabularies) < 2:
        return ()
    listed = [f"{name} ({len(words):,})" for name, words in checkpoint.vocabularies[:_LISTED]]
    more = len(checkpoint.vocabularies) - len(listed)
    return (f"word lists in the file: {', '.join(listed)}" + (f" and {more:,} more" * bool(more)),)

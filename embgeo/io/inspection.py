"""What a checkpoint holds, as ``embgeo inspect`` shows it: headers only, no tensor is read."""

from __future__ import annotations

from dataclasses import dataclass

from embgeo.core.errors import AmbiguousTensor
from embgeo.core.matrix import tied_note
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.choosing import Choice, choose

_LISTED = 8


@dataclass(frozen=True, slots=True)
class InspectedTensor:
    """One line of the listing.

    Attributes
    ----------
    name, shape, dtype
        As the file has them.
    nbytes : int
        Size of its values in bytes; 0 for a name of storage that was listed before.
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
    """A listing and the choice made from it.

    Attributes
    ----------
    tensors : tuple of InspectedTensor
    reason : str
        Why the embedding was chosen; empty if none was.
    problem : str
        Why none was chosen and what to do, in one line that names options; empty if one was.
    tokens, counts : int
        How many tokens the file names, and for how many it says how often they occurred.
    tokens_source, counts_source : str
        Where they come from, in words; empty without them.
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

    Raises
    ------
    BadOption
        A named tensor that does not exist or does not fit. That no tensor, or several, could be
        the embedding is not an error here: `Inspection.problem` says it.
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
    listed = tuple(
        InspectedTensor(
            name=t.name,
            shape=t.shape,
            dtype=t.dtype,
            nbytes=0 if t.alias_of else t.nbytes,
            role="; ".join(
                part
                for part in (
                    roles.get(t.name, ""),
                    f"same storage as {t.alias_of}" if t.alias_of else "",
                )
                if part
            ),
        )
        for t in checkpoint.tensors
    )
    chosen = (*tied_note(choice.tied_by), *choice.notes) if choice else ()
    notes = (*checkpoint.notes, *chosen, *_vocabularies(checkpoint))
    return Inspection(
        tensors=listed,
        reason=choice.reason if choice else "",
        problem=problem,
        tokens=len(checkpoint.tokens or ()),
        tokens_source=checkpoint.tokens_source,
        counts=0 if checkpoint.counts is None else len(checkpoint.counts),
        counts_source=checkpoint.counts_source,
        notes=notes,
    )


def _vocabularies(checkpoint: Checkpoint) -> tuple[str, ...]:
    """A note where there are several: the one as long as the chosen matrix labels its rows."""
    if len(checkpoint.vocabularies) < 2:
        return ()
    listed = [f"{name} ({len(words):,})" for name, words in checkpoint.vocabularies[:_LISTED]]
    more = len(checkpoint.vocabularies) - len(listed)
    return (f"word lists in the file: {', '.join(listed)}" + (f" and {more:,} more" * bool(more)),)

"""``embgeo inspect``: the tensors of a checkpoint, and the one that would be analyzed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from embgeo.cli import options as o
from embgeo.cli.shared import guarded, print_json, print_lines

if TYPE_CHECKING:
    from embgeo.io.model.inspection import Inspection


@guarded
def inspect(
    *,
    path: o.Checkpoint,
    tensor: o.Tensor = None,
    output: o.Output = None,
    transpose: o.Transpose = None,
    every: Annotated[bool, o.option("List all tensors.", "--all")] = False,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Show which matrix would be analyzed, and why; read headers only.

    Example: embgeo inspect fixtures/baseline.pt
    """
    from embgeo.workflows.inspect import inspect as inspect_model

    found = inspect_model(path, tensor=tensor, output=output, transpose=bool(transpose))
    if json_:
        print_json(asdict(found))
    else:
        listing(found, every)


def listing(found: Inspection, every: bool) -> None:
    """Print the candidates with their evidence, the choice and the notes.

    `every` lists all tensors.
    """
    from embgeo.core.text import align
    from embgeo.io.model.candidates import shape_text

    shown = [one for one in found.tensors if every or one.is_candidate]
    cells = [("tensor", "shape and type", "size", "")]
    for one in shown:
        size = f"{one.nbytes / 1e6:,.3f} MB" if one.nbytes else ""
        cells.append((one.name, shape_text(one.shape, one.dtype), size, one.role))
    heading, *lines = align(cells, left=frozenset({0, 1, 3}))
    print_lines(f"{found.file}: {found.format}", f"  {heading}")
    for one, line in zip(shown, lines, strict=True):
        print_lines(f"  {line}")
        for speaks_for, word in ((True, "for"), (False, "against")):
            texts = [e.text for e in one.evidence if e.speaks_for is speaks_for]
            if texts and one.role != "output matrix":
                print_lines(f"    {word}: {'; '.join(texts)}")
    if more := len(found.tensors) - len(shown):
        print_lines(f"  {more:,} other tensor{'s' * (more > 1)}: --all")
    print_lines(f"chosen: {found.reason}" if found.reason else f"no choice: {found.problem}")
    if found.tokens:
        print_lines(f"tokens: {found.tokens:,}, {found.tokens_source}")
    if found.counts:
        print_lines(f"counts: {found.counts:,}, {found.counts_source}")
    for note in found.notes:
        print_lines(f"note: {note}")

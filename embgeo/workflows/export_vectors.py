"""The vectors of an export: of a saved analysis' checkpoint, or of a checkpoint by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.errors import BadOption, argument

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from embgeo.core.matrix import Matrix
    from embgeo.publish.export.target import Labels, Vectors
    from embgeo.result.analysis import Analysis
    from embgeo.workflows.request import AnalysisRequest


def of_analysis(
    analysis: Analysis, folder: Path, checkpoint: Path | str | None, at_most: int | None
) -> Vectors:
    """The kept rows of the matrix that was analyzed, with what the analysis says of each.

    Raises
    ------
    BadOption
        If the checkpoint is not there, or is not the one that was analyzed.
    """
    from embgeo.comparison.originals import original
    from embgeo.publish.export.columns import collect_columns, frequency

    named = analysis
    if checkpoint is not None:
        named = replace(analysis, provenance={**analysis.provenance, "file": str(checkpoint)})
    matrix, why = original(named, folder)
    if matrix is None:
        raise BadOption(
            why, where=folder, way_out=f"name the checkpoint with {argument('checkpoint')}"
        )
    known = frequency(analysis)
    falling = None
    if known is not None:
        falling = known[1] if known[0] == "count" else -known[1]
    positions = choose_rows(falling, len(analysis.rows), at_most)
    columns = {
        k: v for k, v in collect_columns(analysis).items() if not k.startswith("projection.")
    }
    if analysis.popular is not None:
        # Words, which the projector colors as classes.
        columns["class"] = ["popular" if p else "rare" for p in columns.pop("popular")]
    # Tokens come first: the projector shows the first column.
    names = sorted(columns, key=lambda name: (name != "token", name != "row"))
    labels = picked({name: columns[name] for name in names}, positions)
    return vectors(matrix, analysis.rows[positions], labels)


def of_checkpoint(request: AnalysisRequest, at_most: int | None) -> Vectors:
    """The rows of a checkpoint that are finite and no padding, with tokens and counts."""
    import numpy as np

    matrix = request.load()
    usable = np.ones(matrix.n, dtype=bool)
    for masked in matrix.masked.values():
        usable[masked] = False
    for index, block in matrix.blocks():
        usable[index] &= np.isfinite(block).all(axis=1)
    kept = np.flatnonzero(usable)
    if not len(kept):
        raise BadOption(
            "no row is finite",
            where=request.source.path,
            way_out=f"choose another {argument('tensor')}",
        )
    columns: dict[str, Any] = {"row": kept}
    if matrix.tokens is not None:
        columns = {"token": [matrix.tokens[i] for i in kept], **columns}
    falling = None
    if matrix.frequency is not None:
        falling = matrix.frequency.counts[kept]
        if matrix.frequency.kind == "counts":
            columns["count"] = falling.astype(np.int64)
    positions = choose_rows(falling, len(kept), at_most)
    return vectors(matrix, kept[positions], picked(columns, positions))


def choose_rows(
    falling: npt.NDArray[Any] | None, rows: int, at_most: int | None
) -> npt.NDArray[np.int64]:
    import numpy as np

    from embgeo.publish.export.columns import thin_rows

    as_float = None if falling is None else np.asarray(falling, dtype=np.float64)
    return thin_rows(as_float, rows, rows if at_most is None else at_most)


def picked(columns: dict[str, Any], positions: npt.NDArray[np.int64]) -> Labels:
    """The columns at these positions, as Python's own values."""
    import numpy as np

    from embgeo.publish.export.target import Labels

    values = []
    for column in columns.values():
        if isinstance(column, np.ndarray):
            values.append(column[positions].tolist())
        else:
            values.append([column[i] for i in positions.tolist()])
    return Labels(tuple(columns), tuple(values))


def vectors(matrix: Matrix, rows: npt.NDArray[np.int64], labels: Labels) -> Vectors:
    from embgeo.publish.export.target import Vectors

    def blocks() -> Iterator[npt.NDArray[np.float64]]:
        for _, block in matrix.blocks(rows):
            yield block

    origin = {
        "file": matrix.origin.path,
        "tensor": matrix.origin.tensor,
        "sha256": matrix.origin.sha256,
        "n": matrix.n,
        "d": matrix.d,
    }
    name = matrix.origin.tensor or matrix.name
    return Vectors(name, len(rows), matrix.d, blocks, labels, origin)

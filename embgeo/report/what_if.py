"""The matrix after each cure, packed for the page: numbers in words, places, neighbors."""

from typing import Any

import numpy as np

from embgeo.charts.render.view import fit_view
from embgeo.core.arrays import IntArray
from embgeo.core.numbers import format_optional
from embgeo.core.quantities import cosine, isotropy, spectrum
from embgeo.core.treated import CURES, UNIT, Treated
from embgeo.core.values import Quantity
from embgeo.report.packing import DataBlock
from embgeo.result.analysis import Analysis

#: The numbers that a cure changes, in the order of the page.
NUMBERS = (
    (cosine.MEAN, "mean_cosine"),
    (spectrum.EFFECTIVE_RANK, "effective_rank"),
    (spectrum.TOP_SHARE, "top_share"),
    (isotropy.I1_UNIT_ROWS, "i1"),
)


def list_numbers(analysis: Analysis) -> list[tuple[Quantity, str]]:
    """List the numbers of the matrix as it is stored; empty if no cure was measured."""
    if not analysis.treated:
        return []
    stored = analysis.treated[0]
    return [(q, format_optional(getattr(stored, field), 3)) for q, field in NUMBERS]


def pack_cures(analysis: Analysis, rows: IntArray, block: DataBlock) -> list[dict[str, Any]]:
    """Return every cure with its numbers and these rows; empty if none was measured."""
    return [pack_cure(analysis, treated, rows, block) for treated in analysis.treated]


def pack_cure(
    analysis: Analysis, treated: Treated, rows: IntArray, block: DataBlock
) -> dict[str, Any]:
    xy = treated.xy.astype(np.float64)
    low, high = xy[rows].min(axis=0), xy[rows].max(axis=0)
    axes = [block.add_floats(xy[rows, i], float(low[i]), float(high[i])) for i in (0, 1)]
    return {
        "name": treated.name,
        "title": CURES[treated.name.removesuffix(UNIT)],
        "numbers": [format_optional(getattr(treated, field), 3) for _, field in NUMBERS],
        "exact": [getattr(treated, field) for _, field in NUMBERS],
        "cosines": treated.cosines.tolist(),
        "x": axes[0],
        "y": axes[1],
        "box": list(fit_view(xy).box),
        "mean": xy.mean(axis=0).tolist(),
        "near": pack_near(treated, rows, len(analysis.rows), block),
        "k": treated.neighbors.shape[1],
    }


def pack_near(
    treated: Treated, rows: IntArray, kept: int, block: DataBlock
) -> dict[str, Any] | None:
    """Pack the places on the page of the nearest rows; a missing one has the place of the row."""
    if not treated.neighbors.size:
        return None
    place = np.full(kept, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    near = place[treated.neighbors[rows]]
    near = np.where(near < 0, np.arange(len(rows))[:, None], near)
    return block.add(near.ravel().astype(np.uint16 if len(rows) <= 2**16 else np.uint32))

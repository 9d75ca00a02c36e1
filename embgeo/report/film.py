"""The film of a track, packed for the page."""

from typing import Any

import numpy as np

from embgeo.charts.lookup import find_points
from embgeo.charts.render.view import fit_view, unite
from embgeo.comparison.comparison import Comparison, short_name
from embgeo.comparison.film import Film
from embgeo.core.arrays import IntArray
from embgeo.core.quantities import projection
from embgeo.report.packing import DataBlock
from embgeo.report.payload import pack_reference


def pack_film(
    comparison: Comparison, film: Film, rows: IntArray, block: DataBlock
) -> dict[str, Any]:
    """Get every frame with these tokens; `rows` are their positions in the baseline, ascending."""
    at = np.searchsorted(film.rows[0], rows)
    frames = []
    for place, step, xy, mean, state in zip(
        film.members, film.steps, film.places[:, at], film.means, film.states, strict=True
    ):
        low, high = xy.min(axis=0), xy.max(axis=0)
        axes = [block.add_floats(xy[:, i], float(low[i]), float(high[i])) for i in (0, 1)]
        frames.append(
            {
                "place": place,
                "name": short_name(comparison, place),
                "step": step,
                "x": axes[0],
                "y": axes[1],
                "mean": mean.tolist(),
                "tone": state,
                "isotropic": find_isotropic(comparison, place),
            }
        )
    for frame, move, change, turned in zip(
        frames[1:], film.moves, film.changes, film.list_turns(), strict=True
    ):
        frame |= {"moved": float(move), "changed": change, "turned": turned}
    return {
        "frames": frames,
        "shared": film.shared,
        "box": list(unite([fit_view(xy) for xy in film.places]).box),
        "edges": film.edges.tolist(),
        "densities": film.densities.tolist(),
    }


def find_isotropic(comparison: Comparison, place: int) -> float | None:
    """Find how far about 95% of isotropic rows of these norms reach in any plane."""
    analysis = comparison.members[place].analysis
    points = find_points(analysis, projection.SVD2.name)
    return None if points is None else pack_reference(analysis, points).get("isotropic")

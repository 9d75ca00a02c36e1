"""A ring around rows that form a clump, with a few of their tokens, for maps."""

import numpy as np

from embgeo.charts.lookup import column_of, find_table
from embgeo.charts.specification import Ring
from embgeo.core.arrays import IntArray
from embgeo.core.quantities import clump, cosine, tokens
from embgeo.core.values import Points
from embgeo.diagnosis.blame import show_token
from embgeo.diagnosis.finding import find_scalar
from embgeo.diagnosis.findings.clump import is_one_of_clusters
from embgeo.result.analysis import Analysis

#: Share of the rows inside the ring.
INSIDE = 0.95
#: The radius is larger by this factor.
MARGIN = 1.1
#: Named tokens.
NAMED = 5


def find_ring(analysis: Analysis, points: Points) -> Ring | None:
    """Find the ring in one plane, or None if no rows form a clump, or the others clusters, too."""
    table, rows = find_table(analysis, clump.CLUMP.name), find_scalar(analysis, clump.CLUMP_ROWS)
    if table is None or not rows or is_one_of_clusters(analysis):
        return None
    xy = points.xy[find_members(analysis)]
    if not np.isfinite(xy).all():  # t-SNE left some rows out
        return None
    center = np.median(xy, axis=0)
    radius = float(np.quantile(np.linalg.norm(xy - center, axis=1), INSIDE))
    row_at, token_at = table.columns.index("row"), table.columns.index("token")
    known = analysis.tokens is not None
    named = tuple(
        show_token(row[token_at] if known else None, row[row_at]) for row in table.rows[:NAMED]
    )
    count = f"{int(rows):,}"
    return Ring(
        float(center[0]),
        float(center[1]),
        MARGIN * radius,
        f"clump of {count} tokens",
        named,
        short=count,
    )


def find_members(analysis: Analysis) -> IntArray:
    """Find the rows of the clump: within its angle, with the shorter or the longer norms.

    If the listed rows do not tell which norms, all rows within the angle, which are more than the
    clump has. If no angle is known, the listed rows.
    """
    table, angle = find_table(analysis, clump.CLUMP.name), find_scalar(analysis, clump.CLUMP_ANGLE)
    count = find_scalar(analysis, clump.CLUMP_ROWS)
    columns = {column.name: column.values for column in analysis.columns}
    mean = columns.get(cosine.ANGLE_TO_MEAN.name)
    angles, norms = columns.get(clump.ANGLE_TO_CLUMP.name, mean), columns.get(tokens.NORM.name)
    assert table is not None
    listed = np.flatnonzero(np.isin(analysis.rows, column_of(table, "row")))
    if angles is None or angle is None:
        return listed
    near = np.flatnonzero(angles <= float(angle))
    if norms is None or not count:
        return near
    ordered, size = near[np.argsort(norms[near], kind="stable")], int(count)
    sides = [np.sort(side) for side in (ordered[:size], ordered[-size:])]
    fitting = [side for side in sides if np.isin(listed, side).all()]
    return fitting[0] if fitting and np.array_equal(fitting[0], fitting[-1]) else near

"""Maps of all tokens in the plane of the two strongest directions, and rings around clumps."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from embgeo.charts import lookup
from embgeo.charts import specification as spec
from embgeo.charts.items import ChartItem
from embgeo.charts.lookup import column_of, find_table
from embgeo.charts.specification import Ring
from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import clump, cosine, projection, tokens
from embgeo.core.text import show_token
from embgeo.core.values import Cell, Points
from embgeo.diagnosis.finding import find_scalar
from embgeo.diagnosis.findings.clump import is_one_of_clusters
from embgeo.result.analysis import Analysis

#: Panels of one chart; with more items, the first, the last and some evenly between.
MOST_PANELS = 12
UNCENTERED, CENTERED = projection.SVD2.name, projection.PCA2.name
COLUMNS = ("analysis", "row", "token", "class", "count", "rank", "x", "y")


def refuse_without_points(name: str) -> Callable[[ChartItem, spec.Choices], str]:
    """Explain why an item lacks the projection or the colors, as a function of the item."""

    def refuse(item: ChartItem, choices: spec.Choices) -> str:
        reason = find_planes(name).refuse(item, choices)
        if not reason and choices.color == "frequency":
            return lookup.FREQUENCIES.refuse(item, choices)
        return reason

    return refuse


def find_planes(name: str) -> lookup.Lookup[Points]:
    return lookup.Lookup(
        partial(lookup.find_points, name=name), "its analysis left out the section projection"
    )


def map_panels(
    items: spec.StyledItems, name: str, color: str = "class", annotate: Sequence[str] = ()
) -> tuple[spec.Panel, ...]:
    """Return a map for each item, all of which have the projection."""
    analyses = [item.analysis for item, _ in items if item.analysis is not None]
    clouds = find_planes(name).collect(items)
    frequencies: list[FloatArray] | list[None] = [None] * len(clouds)
    if color == "frequency":
        frequencies = [f.positive for f in lookup.make_alike(lookup.FREQUENCIES.collect(items))]
    several = len(clouds) > 1
    panels: list[spec.Panel] = []
    for (item, style), analysis, points, frequency in zip(
        items, analyses, clouds, frequencies, strict=True
    ):
        popular = analysis.popular if color == "class" else None
        named = name_points(analysis, points, annotate)
        ring = find_ring(analysis, points)
        cloud = spec.Cloud(points.xy, popular, frequency, ring, named, style)
        panels.append(
            spec.Panel(
                spec.Axis(points.x_label),
                spec.Axis(points.y_label),
                cloud=cloud,
                key=str(len(panels)) if several else "",
                member=item.label if several else "",
            )
        )
    return tuple(panels)


def name_points(
    analysis: Analysis, points: Points, tokens: Sequence[str]
) -> tuple[spec.NamedPoint, ...]:
    """Name the tokens that the analysis holds, at their places."""
    known = analysis.tokens or ()
    places = [i for i, token in enumerate(known) if token in tokens]
    return tuple(
        spec.NamedPoint(float(x), float(y), known[i]) for i in places for x, y in [points.xy[i]]
    )


def tabulate(items: spec.StyledItems, name: str) -> spec.FigureTable:
    """Get a row for each point: its token, the class and frequency of the token, and its place."""
    rows: list[tuple[Cell, ...]] = []
    for (item, _), points in zip(items, find_planes(name).collect(items), strict=True):
        if item.analysis is not None:
            places = zip(lookup.list_tokens(item.analysis), points.xy.tolist(), strict=True)
            rows += [(item.label, *cells, x, y) for cells, (x, y) in places]
    return spec.FigureTable(COLUMNS, rows)


def explain_colors(analyses: Sequence[Analysis], color: str) -> str:
    """Write the part of a caption about colors; may be empty."""
    if color == "frequency":
        return " Color: token frequency."
    shares = {
        a.provenance["frequency"]["popular_share"]
        for a in analyses
        if color == "class"
        and a.popular is not None
        and isinstance(a.provenance.get("frequency"), dict)
    }
    text = " and ".join(f"{100 * share:g}%" for share in sorted(shares))
    return f" Frequent: the {text} most frequent tokens; rare: the others." if text else ""


def explain_rings(panels: Sequence[spec.Panel]) -> str:
    """Write the part of a caption about clumps; empty if there are none."""
    said = []
    for panel in panels:
        ring = panel.cloud.ring if panel.cloud else None
        if ring is not None:
            names = f" ({', '.join(ring.examples)}, …)" if ring.examples else ""
            said.append(f"{panel.member + ': ' if panel.member else ''}{ring.label}{names}")
    return f" Ring: {'; '.join(said)}." if said else ""


def builder(
    name: str, one: str, several: str, printed: str
) -> Callable[[spec.StyledItems, spec.Choices], spec.Specification]:
    """Return the function that builds the scatter of this projection, with these captions."""

    def build(items: spec.StyledItems, choices: spec.Choices) -> spec.Specification:
        analyses = [item.analysis for item, _ in items if item.analysis is not None]
        color = choices.color
        label = ""
        if color == "frequency":
            label = lookup.make_alike(lookup.FREQUENCIES.collect(items))[0].positive_label
        elif color == "class" and all(a.popular is None for a in analyses):
            color = "none"
        panels = map_panels(items, name, choices.color, choices.annotate)
        return spec.Specification(
            panels,
            (one if len(items) == 1 else several) + explain_rings(panels),
            printed + explain_colors(analyses, color) + explain_rings(panels),
            shading=color,  # type: ignore[arg-type]
            frequency_label=label,
            free_axes=choices.free_axes,
            table=partial(tabulate, items, name),
        )

    return build


def refuse_mixture(item: ChartItem, choices: spec.Choices) -> str:
    reason = refuse_without_points(UNCENTERED)(item, choices)
    if not reason and item.analysis is not None and item.analysis.popular is None:
        return lookup.NO_FREQUENCIES
    return reason


def build_mixture(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    return spec.Specification(
        map_panels(items, UNCENTERED),
        "The same plane as the map of tokens, shaded by the share of rare tokens. If frequency "
        "played no part, all of it would have the color of the base rate.",
        "The plane of the top two singular directions, shaded by the share of rare tokens in "
        "each hexagon.",
        shading="share",
        table=partial(tabulate, items, UNCENTERED),
    )


PLAIN = spec.Chart(
    "scatter",
    "Map of all tokens in the plane of the top two singular directions",
    refuse_without_points(UNCENTERED),
    builder(
        UNCENTERED,
        "Every token in the plane of the top two singular directions, not centered, with "
        "equal scales; the cross is the origin. Isotropic rows would surround the origin; rows in "
        "a cone lie to one side of it. The axes say how much of the variance this plane carries.",
        "Every token in the plane of the top two singular directions of its own matrix, not "
        "centered; the cross is the origin. Isotropic rows would surround the origin; rows in a "
        "cone lie to one side of it.",
        "Tokens in the plane of the top two singular directions of the embedding matrix, not "
        "centered; the cross is the origin. In brackets: the share of the variance on each axis.",
    ),
    section="maps",
    most=MOST_PANELS,
)
WITHOUT_MEAN = spec.Chart(
    "scatter-centered",
    "Map of all tokens in the plane of the first two principal components",
    refuse_without_points(CENTERED),
    builder(
        CENTERED,
        "The same tokens with the mean row taken off (PCA): what is left of their spread once the "
        "common direction is gone.",
        "The same tokens with the mean row of their matrix taken off (PCA): what is left of their "
        "spread once the common direction is gone.",
        "Tokens in the plane of the first two principal components of the embedding matrix "
        "(centered); the cross is the mean. In brackets: the share of the variance on each axis.",
    ),
    section="plane",
    pages=("analysis",),
    most=MOST_PANELS,
)
MIXTURE = spec.Chart(
    "mixture",
    "Map of the share of rare tokens in the plane of the top two singular directions",
    refuse_mixture,
    build_mixture,
    section="plane",
    pages=("analysis",),
    most=MOST_PANELS,
)


#: Share of the rows inside the ring.
SHARE_IN_RING = 0.95
#: Its radius is larger than theirs by this factor.
RING_FACTOR = 1.1
#: Tokens that its label names, at most.
MOST_NAMED = 5


def find_ring(analysis: Analysis, points: Points) -> Ring | None:
    """Find the ring in one plane, or None if no rows form a clump, or the others clusters, too."""
    table, rows = find_table(analysis, clump.CLUMP.name), find_scalar(analysis, clump.CLUMP_ROWS)
    if table is None or not rows or is_one_of_clusters(analysis):
        return None
    xy = points.xy[find_members(analysis)]
    if not np.isfinite(xy).all():  # t-SNE left some rows out
        return None
    center = np.median(xy, axis=0)
    radius = float(np.quantile(np.linalg.norm(xy - center, axis=1), SHARE_IN_RING))
    row_at, token_at = table.columns.index("row"), table.columns.index("token")
    known = analysis.tokens is not None
    named = tuple(
        show_token(row[token_at] if known else None, row[row_at]) for row in table.rows[:MOST_NAMED]
    )
    count = f"{int(rows):,}"
    return Ring(
        float(center[0]),
        float(center[1]),
        RING_FACTOR * radius,
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

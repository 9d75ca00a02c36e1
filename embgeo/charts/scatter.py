"""Maps of all tokens in the plane of the two strongest directions."""

from collections.abc import Callable, Sequence
from functools import partial

from embgeo.charts import lookup
from embgeo.charts import specification as spec
from embgeo.charts.items import ChartItem
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import projection
from embgeo.core.values import Cell, Points
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
        cloud = spec.Cloud(points.xy, popular, frequency, named, style)
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
            one if len(items) == 1 else several,
            printed + explain_colors(analyses, color),
            shading=color,  # type: ignore[arg-type]
            frequency_label=label,
            free_axes=choices.free_axes,
            table=partial(tabulate, items, name),
        )

    return build


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

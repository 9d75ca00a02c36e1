"""All tokens in the plane of the two strongest directions, a panel an analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from embgeo.charts.lookup import (
    NO_FREQUENCIES,
    collect_stored,
    find_frequencies,
    find_points,
    list_tokens,
    make_alike,
)
from embgeo.charts.ring import find_ring
from embgeo.charts.specification import (
    Axis,
    Chart,
    Choices,
    Cloud,
    FigureTable,
    NamedPoint,
    Panel,
    Specification,
    StyledSubjects,
)
from embgeo.charts.subject import Subject, Unrelated
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import projection
from embgeo.core.values import Cell, Points, format_number
from embgeo.result.analysis import Analysis

#: Panels of one chart; with more, early, late and some evenly between.
MOST_PANELS = 12
UNCENTERED, CENTERED = projection.SVD2.name, projection.PCA2.name
COLUMNS = ("analysis", "row", "token", "class", "count", "rank", "x", "y")


def refuse_without_points(name: str) -> Callable[[Subject, Choices], str]:
    """Why a subject lacks the projection of that name, as a function of the subject."""

    def refuse(subject: Subject, choices: Choices) -> str:
        if subject.analysis is None:
            return Unrelated.NO_ANALYSIS
        if find_points(subject.analysis, name) is None:
            return "its analysis left out the section projection"
        if choices.color == "frequency" and find_frequencies(subject.analysis) is None:
            return NO_FREQUENCIES
        return ""

    return refuse


def axis_names(points: Points) -> tuple[str, str]:
    """The labels of both axes, each with the share of the energy that it holds."""
    first, second = (
        label if "%" in label else f"{label} ({format_number(100 * share, 3)} %)"
        for label, share in zip((points.x_label, points.y_label), points.share, strict=True)
    )
    return first, second


def map_panels(
    subjects: StyledSubjects, name: str, color: str = "class", annotate: Sequence[str] = ()
) -> tuple[Panel, ...]:
    """A map for each subject, all of which have the projection."""
    analyses = [subject.analysis for subject, _ in subjects if subject.analysis is not None]
    clouds = collect_stored(subjects, partial(find_points, name=name))
    frequencies: list[FloatArray] | list[None] = [None] * len(clouds)
    if color == "frequency":
        known = make_alike(collect_stored(subjects, find_frequencies))
        frequencies = [f.positive for f in known]
    panels: list[Panel] = []
    for (subject, _), analysis, points, frequency in zip(
        subjects, analyses, clouds, frequencies, strict=True
    ):
        x, y = axis_names(points)
        popular = analysis.popular if color == "class" else None
        named = name_points(analysis, points, annotate)
        cloud = Cloud(points.xy, popular, frequency, find_ring(analysis, points), named)
        several = len(clouds) > 1
        panels.append(
            Panel(
                Axis(x),
                Axis(y),
                cloud=cloud,
                key=str(len(panels)) if several else "",
                member=subject.label if several else "",
            )
        )
    return tuple(panels)


def name_points(
    analysis: Analysis, points: Points, tokens: Sequence[str]
) -> tuple[NamedPoint, ...]:
    """Those of the tokens that the analysis holds, at their places."""
    known = analysis.tokens or ()
    places = [i for i, token in enumerate(known) if token in tokens]
    return tuple(
        NamedPoint(float(x), float(y), known[i]) for i in places for x, y in [points.xy[i]]
    )


def tabulate(subjects: StyledSubjects, name: str) -> FigureTable:
    """A row for each point: its token, the class and frequency of the token, and its place."""
    rows: list[tuple[Cell, ...]] = []
    for subject, _ in subjects:
        points = subject.analysis and find_points(subject.analysis, name)
        if subject.analysis is not None and points:
            places = zip(list_tokens(subject.analysis), points.xy.tolist(), strict=True)
            rows += [(subject.label, *cells, x, y) for cells, (x, y) in places]
    return FigureTable(COLUMNS, rows)


def explain_colors(analyses: Sequence[Analysis], color: str) -> str:
    """What a caption says of the colors; empty where there is nothing to say."""
    if color == "frequency":
        return " Color: token frequency."
    shares = {
        a.provenance["frequency"]["popular_share"]
        for a in analyses
        if color == "class"
        and a.popular is not None
        and isinstance(a.provenance.get("frequency"), dict)
    }
    text = " and ".join(f"{100 * share:g} %" for share in sorted(shares))
    return f" Popular: the {text} most frequent tokens; rare: the others." if text else ""


def explain_rings(panels: Sequence[Panel]) -> str:
    """What a caption says of rows that lie together; empty where there are none."""
    rings = [panel.cloud.ring for panel in panels if panel.cloud and panel.cloud.ring]
    if not rings:
        return ""
    return " Ring: " + "; ".join(ring.label for ring in rings) + ", apart from the others."


def builder(
    name: str, one: str, several: str, printed: str
) -> Callable[[StyledSubjects, Choices], Specification]:
    """The function that builds the scatter of this projection, with these captions."""

    def build(subjects: StyledSubjects, choices: Choices) -> Specification:
        analyses = [subject.analysis for subject, _ in subjects if subject.analysis is not None]
        color = choices.color
        label = ""
        if color == "frequency":
            known = [f for f in map(find_frequencies, analyses) if f is not None]
            label = make_alike(known)[0].positive_label
        elif color == "class" and all(a.popular is None for a in analyses):
            color = "none"
        panels = map_panels(subjects, name, choices.color, choices.annotate)
        return Specification(
            panels,
            (one if len(subjects) == 1 else several) + explain_rings(panels),
            printed + explain_colors(analyses, color) + explain_rings(panels),
            shading=color,  # type: ignore[arg-type]
            frequency_label=label,
            free_axes=choices.free_axes,
            table=partial(tabulate, subjects, name),
        )

    return build


PLAIN = Chart(
    "scatter",
    "Map of all tokens in the plane of the first two singular directions",
    refuse_without_points(UNCENTERED),
    builder(
        UNCENTERED,
        "Every token in the plane of the two strongest singular directions, not centered, with "
        "equal scales; the cross is the origin. Isotropic rows would surround the origin; rows in "
        "a cone lie to one side of it. The axes say how much of the energy this plane holds.",
        "Every token in the plane of the two strongest singular directions of its own matrix, not "
        "centered; the cross is the origin. Isotropic rows would surround the origin; rows in a "
        "cone lie to one side of it.",
        "Tokens in the plane of the two strongest singular directions of the embedding matrix, not "
        "centered; the cross is the origin. In brackets: the share of the energy on each axis.",
    ),
    section="maps",
    most=MOST_PANELS,
)
WITHOUT_MEAN = Chart(
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

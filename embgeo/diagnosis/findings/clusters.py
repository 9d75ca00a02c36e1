"""Do the rows form clusters? By the silhouette of the best ones."""

from __future__ import annotations

from embgeo.core.quantities import cosine
from embgeo.core.values import format_number
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import Numbers, Part, Quote, State, Undecided, need, value_of
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    clusters, silhouette = need(a, cosine.CLUSTERS), need(a, cosine.SILHOUETTE)
    count, score = int(value_of(clusters)), value_of(silhouette)
    if count < 2:
        raise Undecided("no clusters were found")
    state: State = limits.CLUSTERS.state(score)
    parts: list[Part] = [
        "The rows form ",
        Quote(clusters.name, f"{count:,}"),
        " clusters (silhouette ",
        Quote(silhouette.name, format_number(score, 2)),
        ")",
    ]
    within = a.scalar(cosine.MEAN_WITHIN_CLUSTERS)
    if within is not None and within.value is not None:
        parts += [
            ": once the mean of its cluster is subtracted from every row, the mean cosine is ",
            Quote(within.name, format_number(within.value, 2)),
        ]
    i1 = a.scalar(cosine.I1_WITHIN_CLUSTERS)
    if i1 is not None and i1.value is not None:
        parts += [" and I1 of unit rows ", Quote(i1.name, format_number(i1.value, 2))]
    tight = "tight " if state == "degenerate" else ""
    return state, (*parts, "."), f"{count:,} {tight}clusters"


QUESTION = Question(
    "clusters",
    "Do the rows form clusters?",
    answer,
    geometry=True,
    is_cause=True,
    shown="fault",
    why="Clusters raise the mean cosine and lower isotropy without a cone. They are not a fault "
    "by themselves: a linear classifier needs them (Mickus et al. 2024).",
    advice="See on the map what the clusters are (languages, scripts, added tokens, two matrices "
    "in one file), and read the numbers with the cluster means subtracted. For "
    "similarities, center every cluster by itself (Rajaee and Pilehvar 2021).",
)

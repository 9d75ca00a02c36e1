"""Do the rows form clusters? By the silhouette of the best ones."""

from embgeo.core.quantities import cosine
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question

TWO_GROUPS = (
    " Two groups often are two modalities, or the input and output vectors of a model in one "
    "matrix, which is usual for such models."
)

IN_A_PLANE = (
    " In a plane, as on a map by t-SNE or UMAP, groups that lie one behind another as seen from "
    "the origin count once."
)


def answer(a: finding.Numbers) -> Answer:
    clusters, silhouette = finding.need(a, cosine.CLUSTERS), finding.need(a, cosine.SILHOUETTE)
    count = int(clusters)
    if count < 2:
        raise finding.Undecided("no clusters were found")
    state = limits.CLUSTERS.state(float(silhouette))
    parts: list[finding.Part] = [
        "The rows form ",
        finding.quote(clusters, f"{count:,}"),
        " clusters (silhouette ",
        finding.quote_short(silhouette, digits=2),
        ")",
    ]
    between = finding.find_scalar(a, cosine.MEAN_BETWEEN_CLUSTERS)
    inside = is_inside_cone(a)
    is_line = is_one_line(a)
    if between is not None:
        parts += ["; the mean cosine between clusters is ", finding.quote(between)]
        parts.append(
            ": they lie inside one cone."
            if inside
            else ": they are the two ends of one line."
            if is_line
            else "."
        )
    if count == 2 and not is_line:
        parts.append(TWO_GROUPS)
    if finding.dimensions(a) == 2:
        parts.append(IN_A_PLANE)
    return finding.milder(state, "mild") if inside or is_line else state, parts


def is_inside_cone(a: finding.Numbers) -> bool:
    """Tell whether pairs of rows of different clusters have the mean cosine of a cone."""
    between = finding.find_scalar(a, cosine.MEAN_BETWEEN_CLUSTERS)
    return between is not None and limits.CONE.state(float(between)) != "healthy"


def is_one_line(a: finding.Numbers) -> bool:
    """Tell whether two clusters point in opposite directions: the collapse on both sides says
    it.
    """
    between = finding.find_scalar(a, cosine.MEAN_BETWEEN_CLUSTERS)
    count = finding.need(a, cosine.CLUSTERS)
    return int(count) == 2 and between is not None and float(between) < limits.OPPOSITE


QUESTION = Question(
    "clusters",
    "Do the rows form clusters?",
    answer,
    geometry=True,
    fault="separate clusters",
    shown="fault",
    why="Clusters raise the mean cosine and lower isotropy without a cone. They are not a fault "
    "by themselves: a linear classifier needs them (Mickus et al. 2024).",
    advice="See on the map what the clusters are (languages, scripts, added tokens, two matrices "
    "in one file), and measure each of them alone. For "
    "similarities, center every cluster by itself (Rajaee and Pilehvar 2021).",
)

"""Do some rows form a clump? By a second mode of angles and norms."""

from embgeo.core.quantities import clump, cosine
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question

#: Kinds of token that the sentence names, at most.
NAMED = 4


def answer(a: finding.Numbers) -> Answer:
    found = finding.need(a, clump.CLUMP_ROWS)
    rows = int(found)
    if not rows:
        raise finding.Undecided("no rows form a clump")
    if is_one_of_clusters(a):
        raise finding.Undecided("the rows form clusters, of which these rows are one")
    parts: list[finding.Part] = [
        finding.quote(found, _count(rows, "token")),
        " (",
        finding.format_percent(rows / max(rows, finding.count_kept(a))),
        f") {'forms' if rows == 1 else 'form'} a clump ",
        *_quote_place(a),
    ]
    kinds = _list_kinds(a)
    why = _quote_training(a)
    if why:
        parts += ["; training barely touched them (", *why, ")."]
    else:
        parts.append(". They are similar tokens: nothing says that training missed them.")
    if kinds:
        parts.append(f" By kind: {kinds}.")
    if why:
        return "mild", parts, _count(rows, "under-trained token")
    return "healthy", parts, f"a clump of {_count(rows, 'similar token')}"


def _quote_training(a: finding.Numbers) -> list[finding.Part]:
    """Quote what says that training hardly touched the rows: unused tokens or counts; may be empty.

    Such rows may as well be those of a script or of numbers.
    """
    unused = finding.find_scalar(a, clump.CLUMP_UNUSED_SHARE)
    if unused is not None and unused >= limits.UNUSED:
        return [
            finding.quote_percent(unused),
            " of the tokens known to be unused are among them",
        ]
    rarity = finding.find_scalar(a, clump.CLUMP_RARITY)
    if rarity is not None and rarity >= limits.RARER:
        return [
            "a token outside is more frequent in ",
            finding.quote_percent(rarity),
            " of the pairs",
        ]
    return []


def _quote_place(a: finding.Numbers) -> list[finding.Part]:
    """Say which direction the rows lie around, and how near."""
    angle = finding.quote_short(finding.need(a, clump.CLUMP_ANGLE), "°")
    tilt = finding.find_scalar(a, clump.CLUMP_TILT)
    if tilt:
        tilted = finding.quote_short(tilt, "°")
        return ["around a direction ", tilted, " away from the mean direction (within ", angle, ")"]
    return ["near the mean direction (within ", angle, ")"]


def is_one_of_clusters(a: finding.Numbers) -> bool:
    """Tell whether the other rows form clusters as well, which is another question."""
    silhouette = finding.find_scalar(a, cosine.SILHOUETTE)
    return silhouette is not None and limits.CLUSTERS.state(float(silhouette)) != "healthy"


def _list_kinds(a: finding.Numbers) -> str:
    table = finding.find_table(a, clump.CLUMP_KINDS)
    if table is None or a.tokens is None:
        return ""
    kind, count = table.columns.index("kind"), table.columns.index("rows")
    named = [f"{row[count]:,} {row[kind]}" for row in table.rows[:NAMED]]
    return ", ".join(named) + (" and others" if len(table.rows) > NAMED else "")


def _count(rows: int, noun: str) -> str:
    return f"{rows:,} {noun}{'' if rows == 1 else 's'}"


QUESTION = Question(
    "clump",
    "Do some rows form a clump?",
    answer,
    geometry=True,
    shown="decided",
    why="Training pushes the tokens that it hardly ever produces in one direction (Gao et al. "
    "2019). Prompts with such tokens mislead a model (Land and Bartolo 2024).",
    advice="See in the table and on the map which tokens they are. Unused ones can stay; train "
    "those that prompts contain. In training, cosine regularization keeps rows apart "
    "(Gao et al. 2019): embgeo train --data TEXT --compare mle,cosreg.",
)

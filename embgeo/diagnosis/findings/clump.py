"""Do some rows lie together, apart from all others? By a second mode of angles and norms."""

from embgeo.core.quantities import clump, cosine
from embgeo.core.values import Quantity
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question

#: Kinds of token that the sentence names, at most.
NAMED = 4


def answer(a: finding.Numbers) -> Answer:
    found = finding.need(a, clump.CLUMP_ROWS)
    rows = int(found)
    if not rows:
        raise finding.Undecided("no rows lie together apart from the others")
    if _is_one_of_clusters(a):
        raise finding.Undecided("the rows form clusters, of which these rows are one")
    parts: list[finding.Part] = [
        finding.quote(found, _count(rows, "row")),
        " (",
        finding.format_percent(rows / max(rows, finding.count_kept(a))),
        f") {'lies' if rows == 1 else 'lie together'} within ",
        finding.quote_short(finding.need(a, clump.CLUMP_ANGLE), "°"),
        *_quote_place(a),
    ]
    kinds = _list_kinds(a)
    parts.append(f": {kinds}." if kinds else ".")
    why = _quote_training(a)
    if why:
        return "mild", [*parts, *why], _count(rows, "under-trained token")
    parts.append(" They are a group of similar tokens: nothing says that training missed them.")
    return "healthy", parts, ""


def _quote_training(a: finding.Numbers) -> list[finding.Part]:
    """What says that training hardly touched the rows: unused tokens or counts; empty if nothing.

    Rows that lie together are as well those of a script or of numbers.
    """
    unused = finding.find_scalar(a, clump.CLUMP_UNUSED_SHARE)
    if unused is not None and unused >= limits.UNUSED:
        return [
            " ",
            finding.quote_percent(unused),
            " of the tokens known to be unused are among them: training hardly touched these rows.",
        ]
    rarity = finding.find_scalar(a, clump.CLUMP_RARITY)
    if rarity is not None and rarity >= limits.RARER:
        return [
            " Other tokens are more frequent with a chance of ",
            finding.quote_percent(rarity),
            ": training hardly touched these rows.",
        ]
    return []


def _quote_place(a: finding.Numbers) -> list[finding.Part]:
    """The direction that the rows lie around, and the tests."""
    parts: list[finding.Part] = [" of the mean direction"]
    tests: list[tuple[str, Quantity]] = [
        ("angles ", clump.ANGLE_EXCESS),
        (", norms ", clump.NORM_EXCESS),
    ]
    tilt = finding.find_scalar(a, clump.CLUMP_TILT)
    if tilt:
        parts = [
            " of a direction ",
            finding.quote_short(tilt, "°"),
            " away from the mean direction",
        ]
        tests = [("angles ", clump.DENSE_EXCESS)]
    parts.append(", apart from all others (excess mass of a second mode: ")
    chance = None
    for lead, quantity in tests:
        scalar = finding.need(a, quantity)
        parts += [lead, finding.quote_short(scalar)]
        chance = scalar.reference
    return [*parts, f"; chance stays below {finding.format_short(chance)})" if chance else ")"]


def _is_one_of_clusters(a: finding.Numbers) -> bool:
    """Whether the other rows form clusters as well, which is another question."""
    silhouette = finding.find_scalar(a, cosine.SILHOUETTE)
    if not finding.find_scalar(a, clump.CLUMP_TILT) or silhouette is None:
        return False
    return limits.CLUSTERS.state(float(silhouette)) != "healthy"


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
    "Do some rows lie together, apart from the others?",
    answer,
    geometry=True,
    shown="decided",
    why="Tokens that training hardly ever produced are pushed the same way, together (Gao et al. "
    "2019); prompts with such tokens mislead a model (Land and Bartolo 2024).",
    advice="See in the table and on the map which tokens they are. Unused ones can stay; any that "
    "prompts contain should be trained. In training, cosine regularization keeps rows apart "
    "(Gao et al. 2019): embgeo train --data TEXT --compare mle,cosreg.",
)

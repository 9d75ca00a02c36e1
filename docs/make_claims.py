"""Write the tables of claims from ``benchmarks/results/claims.csv``.

    python docs/make_claims.py

In docs/science.md a table stands behind each line ``<!-- claims: PAPER -->``: the claims that some
campaign decides, or decides nominally, by row, and a campaign by column. Checks are left out.
Behind ``<!-- variants: CAMPAIGN -->`` stand those of a campaign and of its variants.
``benchmarks/results/claims.md`` has everything that is known of each claim.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parent
TARGET = DOCS / "science.md"
RESULTS = DOCS.parent / "benchmarks" / "results"
PLACE = re.compile(r"^<!-- (claims|variants): (.+) -->\n(?:\|.*\n)*", re.MULTILINE)
HEADS = (
    "campaign",
    "claim",
    "here",
    "difference (95% over seeds)",
    "95% over the text",
    "seeds",
    "of the published",
    "tried",
    "p",
    "p, Holm",
    "detectable",
)
OPENING = """# Claims of the papers, over all campaigns

<!-- Made by docs/make_claims.py from claims.csv. -->

Holm's correction is over all {tested} claims of this page that have a p-value. Checks are not among
them: numbers that a method minimizes, or nearly so. Tried: from how many settings validation chose,
for the method and for its control. *Not decidable* has its reason.
[What this means](../../docs/science.md).
"""


def read_rows(name: str = "claims.csv") -> list[dict[str, str]]:
    with (RESULTS / name).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def write_number(row: Mapping[str, str], *names: str) -> str:
    """Numbers of a row with their signs; those of logarithms in percent."""
    if not all(row[name] for name in names):
        return ""
    values = [float(row[name]) for name in names]
    if not row["relative"]:
        return " … ".join(f"{v:+.3g}".replace("-", "−") for v in values)
    shares = (100.0 * math.expm1(v) for v in values)
    return " … ".join(f"{v:+.3g}".replace("-", "−") for v in shares) + "%"


#: The mark of a verdict in a cell of a table of campaigns.
MARKS = {"reproduced": "✓ ", "not reproduced": "✗ ", "nominal": "~ "}


def describe_claim(row: Mapping[str, str]) -> str:
    """Name a claim with its two methods and, in models with two, the matrix."""
    text = re.sub(r" \(against (?:the plain|its factors)[^)]*\)", "", row["claim"])
    return f"{text} ({row['method']} against {row['control']})"


def render_table(paper: str, rows: list[dict[str, str]]) -> str:
    """Make the table of a paper's claims over all campaigns that say something of one."""
    own = [
        row
        for row in rows
        if row["source"].partition(",")[0] == paper and row["difference"] and not row["check"]
    ]
    said = dict.fromkeys(describe_claim(row) for row in own if row["verdict"] in MARKS)
    campaigns = dict.fromkeys(row["campaign"] for row in own if describe_claim(row) in said)
    lines = [
        f"| claim | published | {' | '.join(f'`{name}`' for name in campaigns)} |",
        "|---" * (2 + len(campaigns)) + "|",
    ]
    for claim in said:
        held = {row["campaign"]: row for row in own if describe_claim(row) == claim}
        parts = next(iter(held.values()))["published"].split("; ")
        published = "; ".join(part.partition(" (")[0] for part in parts if "→" in part)
        cells = (
            f"{MARKS.get(held[name]['verdict'], '')}{write_number(held[name], 'difference')}"
            if name in held
            else ""
            for name in campaigns
        )
        lines.append(f"| {claim} | {published} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n" if said else ""


def render_variants(campaign: str, rows: list[dict[str, str]]) -> str:
    """Make the table of the claims of a campaign and its variants, with p after Holm."""
    own = [row for row in read_rows("variants.csv") if row["campaign"] == campaign]
    keys = {(row["key"], row["method"]) for row in own}
    recorded = [
        {"variant": "recorded", **row}
        for row in rows
        if row["campaign"] == campaign and (row["key"], row["method"]) in keys
    ]
    found = {
        (row["variant"], describe_claim(row)): row for row in (*recorded, *own) if not row["check"]
    }
    variants = dict.fromkeys(variant for variant, _ in found)
    said = dict.fromkeys(claim for (_, claim), row in found.items() if row["verdict"] in MARKS)
    lines = [f"| claim | {' | '.join(variants)} |", "|---" * (1 + len(variants)) + "|"]
    for claim in said:
        cells = [describe_variant(found.get((variant, claim))) for variant in variants]
        lines.append(f"| {claim} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def describe_variant(row: Mapping[str, str] | None) -> str:
    if row is None:
        return ""
    p = f", p {float(row['p_holm']):.2g}" if row["p_holm"] else ""
    return f"{MARKS.get(row['verdict'], '')}{write_number(row, 'difference')}{p}"


def describe_row(row: Mapping[str, str]) -> str:
    """A line of the page of all claims."""
    verdict = f"**{row['verdict']}**{' (a check)' if row['check'] else ''}"
    if row["cause"]:
        verdict += f": {row['reason']}"
    difference = write_number(row, "difference")
    if interval := write_number(row, "low", "high"):
        difference += f" ({interval})"
    matrix = f", {row['matrix']}" if row["matrix"] else ""
    share = f"{100.0 * float(row['share']):.2g}%" if row["share"] else ""
    cells = (
        f"`{row['campaign']}`",
        f"{describe_claim(row)}{matrix}",
        verdict,
        difference,
        write_number(row, "text_low", "text_high"),
        row["seeds"],
        share,
        f"{row['tried']} : {row['tried_control']}",
        *(f"{float(row[name]):.2g}" if row[name] else "" for name in ("p", "p_holm")),
        write_number(row, "detectable").removeprefix("+"),
    )
    return f"| {' | '.join(cells)} |"


def render_page(rows: list[dict[str, str]]) -> Iterator[str]:
    """Yield the lines of the page of all claims, a paper after the other."""
    tested = sum(bool(row["p_holm"]) for row in rows)
    yield OPENING.format(tested=tested)
    for paper in dict.fromkeys(row["source"].partition(",")[0] for row in rows):
        yield f"## {paper}\n"
        yield f"| {' | '.join(HEADS)} |"
        yield "|---" * len(HEADS) + "|"
        yield from (describe_row(r) for r in rows if r["source"].partition(",")[0] == paper)
        yield ""


def document() -> str:
    """Make docs/science.md: its text as it is, its tables from the results."""
    rows, text = read_rows(), TARGET.read_text("utf-8")
    render = {"claims": render_table, "variants": render_variants}
    return PLACE.sub(
        lambda found: f"<!-- {found[1]}: {found[2]} -->\n{render[found[1]](found[2], rows)}", text
    )


if __name__ == "__main__":
    TARGET.write_text(document(), "utf-8", newline="\n")
    page = "\n".join(render_page(read_rows()))
    (RESULTS / "claims.md").write_text(page, "utf-8", newline="\n")

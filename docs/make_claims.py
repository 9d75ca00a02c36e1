"""Write the tables of claims in docs/science.md from the results of the campaigns.

    python docs/make_claims.py

A table stands behind each line ``<!-- claims: PAPER -->``, where PAPER is a heading of
``benchmarks/results/campaign-NAME.md``: a claim by row, a campaign by column, the verdict and the
difference in its cells.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent
TARGET = DOCS / "science.md"
RESULTS = DOCS.parent / "benchmarks" / "results"
#: The campaigns in the order of their columns.
CAMPAIGNS = (
    "cone",
    "cone-untied",
    "cone-vaswani",
    "overfit",
    "overfit-tuned",
    "ptb",
    "multi30k",
    "skipgram",
    "newsgroups",
    "newsgroups-20",
    "imdb",
    "wt2",
    "tiny-llama",
    "tiny-llama-untied",
)
PLACE = re.compile(r"^<!-- claims: (.+) -->\n(?:\|.*\n)*", re.MULTILINE)
VERDICT = re.compile(r"\*\*(.+?)\*\*")
#: The brackets behind it name the control.
CONTROL = re.compile(r" \(against (?:the plain model, as published|its factors alone)\)")


def read_claims(campaign: str) -> dict[str, dict[str, list[str]]]:
    """Read the rows of a campaign's tables of claims: by paper and claim, the cells."""
    found: dict[str, dict[str, list[str]]] = {}
    paper = ""
    for line in (RESULTS / f"campaign-{campaign}.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            paper = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if paper and len(cells) == 9 and VERDICT.search(cells[2]):
            found.setdefault(paper, {})[cells[0]] = cells
    return found


def shorten(cells: list[str]) -> str:
    """The verdict and the difference of a row, for a cell."""
    verdict = VERDICT.findall(cells[2])[0].replace("not decidable", "undecided")
    if "(a check)" in cells[2]:
        verdict += ", a check"
    difference = cells[3].partition(" (")[0].strip("–")
    return f"{verdict} {difference}".strip()


def render_table(paper: str) -> str:
    """Make the table of a paper's claims over all campaigns that decide one."""
    by_campaign = {name: read_claims(name).get(paper, {}) for name in CAMPAIGNS}
    shown = {name: claims for name, claims in by_campaign.items() if claims}
    claims = {claim: cells for found in reversed(shown.values()) for claim, cells in found.items()}
    order = list(dict.fromkeys(claim for found in shown.values() for claim in found))
    heads = " | ".join(f"`{name}`" for name in shown)
    lines = [f"| claim | published | {heads} |", "|---" * (2 + len(shown)) + "|"]
    for claim in order:
        parts = [part for part in claims[claim][1].split("; ") if "→" in part]
        published = "; ".join(part.partition(" (")[0] for part in parts)
        found = [shorten(own[claim]) if claim in own else "" for own in shown.values()]
        lines.append(f"| {CONTROL.sub('', claim)} | {published} | {' | '.join(found)} |")
    return "\n".join(lines) + "\n"


def document() -> str:
    """Make the page: its text as it is, its tables from the results."""
    text = TARGET.read_text("utf-8")
    return PLACE.sub(lambda found: f"<!-- claims: {found[1]} -->\n{render_table(found[1])}", text)


if __name__ == "__main__":
    TARGET.write_text(document(), "utf-8", newline="\n")

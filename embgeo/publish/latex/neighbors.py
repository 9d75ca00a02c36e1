"""Neighbors of chosen words by method, after Table 5 of Gong et al. 2018 (FRAGE)."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from embgeo.charts.render.paper import Venue
from embgeo.core.quantities import frequency
from embgeo.core.values import Cell, Table
from embgeo.publish.latex.latex_table import (
    BETWEEN,
    Latex,
    LatexTable,
    TableColumn,
    TableContent,
    choose_environment,
    latex_text,
    measure,
)
from embgeo.result.analysis import Analysis

NEIGHBORS = frequency.NEIGHBORS.name
RANKS = frequency.NEIGHBOR_RANKS.name
#: Neighbors of a word, and words next to each other, as in the paper.
LISTED = 4
ACROSS = 4
#: Longest token, so that four stand next to each other in every venue.
LONGEST = 18


def list_asked(analysis: Analysis) -> list[str]:
    """List the words that --show-neighbors named."""
    options = analysis.provenance.get("options")
    found = options.get("show_neighbors") if isinstance(options, dict) else None
    return [str(token) for token, _ in found] if found else []


def table(analysis: Analysis, name: str) -> Table | None:
    return next((t for t in analysis.tables if t.name == name), None)


def missing(analysis: Analysis) -> str:
    if not list_asked(analysis) or table(analysis, NEIGHBORS) is None:
        return (
            "its analysis lists no neighbors of given words; analyze with --show-neighbors WORD=A,B"
        )
    return ""


def fill(methods: Sequence[TableColumn], _signs: str, page: Venue) -> TableContent:
    words = list(dict.fromkeys(word for method in methods for word in list_asked(method.analysis)))
    found = [WordLists(method.analysis) for method in methods]
    rows: list[tuple[Cell, ...]] = []
    for method, lists in zip(methods, found, strict=True):
        for word in words:
            rows += [(method.label, word, *row) for row in lists.data(word)]
    blocks: list[dict[str, Any]] = []
    for start in range(0, len(words), ACROSS):
        chunk = words[start : start + ACROSS]
        for method, lists in zip(methods, found, strict=True):
            blocks.append({"label": method.label, **lists.block(chunk)})
    cells = [row for block in blocks for row in (block["words"], *block["near"], *block["ranks"])]
    widths = [max(map(measure, column)) + BETWEEN for column in zip_longest(*cells, fillvalue="")]
    values = {
        "environment": choose_environment(sum(widths), page),
        "across": min(ACROSS, len(words)),
        "blocks": blocks,
        "named": len(methods) > 1,
        "ranked": any(block["ranks"] for block in blocks),
    }
    columns = ("analysis", "word", "kind", "place", "neighbor", "rare")
    return TableContent(values, columns, rows)


class WordLists:
    """Neighbors and ranks of the words of an analysis, each with whether it is rare."""

    def __init__(self, analysis: Analysis) -> None:
        self.near: dict[str, list[tuple[str, bool]]] = {}
        self.is_rare: dict[str, bool] = {}
        listed = table(analysis, NEIGHBORS)
        before = listed.find_column("neighbor 1") if listed else 0
        for row, rare in list_rows(analysis, NEIGHBORS):
            word = str(row[0])
            self.is_rare[word] = before > 1 and row[1] == "rare"
            near = zip(row[before:], rare[before:], strict=True)
            self.near[word] = [
                (str(token), is_rare) for token, is_rare in near if token is not None
            ]
        self.ranks: dict[str, list[tuple[str, bool, int]]] = {}
        for row, rare in list_rows(analysis, RANKS):
            found = (str(row[1]), rare[1], int(row[3] or 0))
            self.ranks.setdefault(str(row[0]), []).append(found)

    def data(self, word: str) -> list[tuple[Cell, ...]]:
        """Return rows of kind, place, token and rarity for all that is known of `word`."""
        near = enumerate(self.near.get(word, []), 1)
        rows: list[tuple[Cell, ...]] = [
            ("neighbor", place, token, str(rare).lower()) for place, (token, rare) in near
        ]
        for token, rare, rank in self.ranks.get(word, []):
            rows.append(("semantic", rank, token, str(rare).lower()))
        return rows

    def block(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the columns of the words as rows of LaTeX cells."""
        near = [[add_star(*cell) for cell in self.near.get(w, [])[:LISTED]] for w in words]
        ranks = [
            [f"{add_star(token, rare)}: {rank:,}" for token, rare, rank in self.ranks.get(w, [])]
            for w in words
        ]
        return {
            "words": [
                Latex(rf"\textbf{{{add_star(w, self.is_rare.get(w, False))}}}") for w in words
            ],
            "near": transpose(near),
            "ranks": transpose(ranks),
        }


def add_star(token: str, rare: bool) -> str:
    """Return a token in LaTeX, with a star if it is rare."""
    return latex_text(token, LONGEST) + ("*" if rare else "")


def list_rows(analysis: Analysis, name: str) -> list[tuple[tuple[Cell, ...], list[bool]]]:
    """List the rows of a table, each with whether its cells are rare tokens."""
    found = table(analysis, name)
    if found is None:
        return []
    rare = frozenset(found.rare)
    return [(row, [(i, j) in rare for j in range(len(row))]) for i, row in enumerate(found.rows)]


def transpose(columns: Sequence[Sequence[str]]) -> list[list[Latex]]:
    """Turn columns of unequal length into rows."""
    return [[Latex(cell) for cell in row] for row in zip_longest(*columns, fillvalue="")]


TABLE = LatexTable("neighbors", missing, fill)

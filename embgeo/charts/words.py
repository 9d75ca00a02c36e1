"""Words among their nearest neighbors, as in Gong et al. 2018 (Fig. 1a and 1b)."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from embgeo.charts import specification as spec
from embgeo.charts.items import ChartItem
from embgeo.charts.lookup import find_table
from embgeo.charts.scatter import PLAIN, UNCENTERED, find_planes, map_panels
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import frequency
from embgeo.core.values import Cell
from embgeo.result.analysis import Analysis

NAME = frequency.NEIGHBORS.name
#: Neighbors of a word, and words of an analysis.
LISTED, MOST_WORDS = 8, 3
CAPTION = (
    "Words (bold) and their nearest neighbors by cosine over all dimensions, at their places in "
    "the plane of the top two singular directions, each on scales of its own. An orange mark "
    "is a rare token. A neighbor that lies far off in this plane is near in the others."
)


def find_words(analysis: Analysis) -> dict[str, list[tuple[str, bool]]]:
    """Find the words of ``--show-neighbors``: each with its neighbors, and which are rare."""
    table = find_table(analysis, NAME)
    options = analysis.provenance.get("options")
    asked = options.get("show_neighbors") if isinstance(options, dict) else None
    if table is None or not asked:
        return {}
    start, rare = table.find_column("neighbor 1"), frozenset(table.rare)
    words = [str(word) for word, _ in asked]
    found = {}
    for i, row in enumerate(table.rows):
        if row[0] in words:
            places = [0, *range(start, min(len(row), start + LISTED))]
            near = [(str(row[j]), (i, j) in rare) for j in places if row[j] is not None]
            found[str(row[0])] = [(near[0][0], start > 1 and row[1] == "rare"), *near[1:]]
    return dict(list(found.items())[:MOST_WORDS])


def refuse(item: ChartItem, choices: spec.Choices) -> str:
    reason = PLAIN.refuse(item, choices)
    if not reason and item.analysis is not None and not find_words(item.analysis):
        return "its analysis lists no neighbors of given words; analyze with --show-neighbors WORD"
    return reason


def place_words(
    item: ChartItem, xy: FloatArray
) -> Iterator[tuple[str, tuple[spec.NamedPoint, ...]]]:
    """Place each word and its neighbors."""
    assert item.analysis is not None
    where = {token: i for i, token in reversed(list(enumerate(item.analysis.tokens or ())))}
    for word, near in find_words(item.analysis).items():
        yield (
            word,
            tuple(
                spec.NamedPoint(float(x), float(y), token, token == word, rare)
                for token, rare in near
                if token in where
                for x, y in [xy[where[token]]]
            ),
        )


def build(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    """Build a row of panels for each word, a panel for each analysis."""
    planes = find_planes(UNCENTERED).collect(items)
    maps = map_panels(items, UNCENTERED)
    rows: dict[str, list[spec.Panel]] = {}
    cells: list[tuple[Cell, ...]] = []
    for (item, _), points, panel in zip(items, planes, maps, strict=True):
        for word, named in place_words(item, points.xy):
            if not named:
                continue
            focus = np.array([(point.x, point.y) for point in named])
            assert panel.cloud is not None
            cloud = replace(panel.cloud, named=named, focus=focus)
            title = f"{item.label}: {word}" if len(items) > 1 else word
            own = replace(panel, cloud=cloud, key=f"{word}-{item.label}", member=title)
            rows.setdefault(word, []).append(own)
            cells += [
                (item.label, word, place, p.name, str(p.rare).lower(), p.x, p.y)
                for place, p in enumerate(named)
            ]
    # A word before and after stands side by side; panels of four in a row would crowd the names.
    n = len(items)
    whole = n > 1 and all(len(row) == n for row in rows.values())
    across = (2 if n == 4 else n) if whole else 0
    colored = any(panel.cloud and panel.cloud.popular is not None for panel in maps)
    columns = ("analysis", "word", "place", "token", "rare", "x", "y")
    return spec.Specification(
        tuple(panel for word in rows for panel in rows[word]),
        CAPTION,
        shading="class" if colored else "none",
        free_axes=True,
        across=across,
        table=spec.FigureTable(columns, cells),
    )


CHART = spec.Chart(
    "gong-figure-1",
    "Words and their nearest neighbors on the map of tokens",
    refuse,
    build,
    pages=(),
    most=4,
    one_row=True,
)

"""Figures of several charts in one row, as papers on degeneration open with.

`figure1` follows Gao et al. 2019 (Fig. 1 and 2) and Wang et al. 2020 (Fig. 1), `gao-figure-1`
Gao et al. 2019 (Fig. 1 and 2b).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from embgeo.charts import histograms, scatter, specification, spectrum
from embgeo.charts.items import ChartItem
from embgeo.core.values import Cell

FIRST_PARTS = (scatter.PLAIN, spectrum.LINEAR, histograms.COSINES)
GAO_PARTS = FIRST_PARTS[:2]
#: Of the panels after the maps.
KEYS, TITLES = ("spectrum", "cosines"), ("Spectrum", "Cosines")
#: For each part the column of its table along x, and the columns along y.
COLUMNS = {
    scatter.PLAIN.name: ("x", ("y",)),
    spectrum.LINEAR.name: ("k", ("normalized singular value", "isotropic rows")),
    histograms.COSINES.name: ("from", ("density",)),
}
#: Maps of at most this many rows name them: they are classes, not words.
MOST_NAMES = 20
GAO_CAPTION = (
    "Rank-2 approximation (SVD) of each matrix, not centered, each on scales of its own; the cross "
    "is the origin. Rows around the origin point in all directions; rows to one side of it lie in "
    "a cone. In brackets: the share of the variance on each axis. Right: the singular values, "
    "divided by the largest."
)


def refuse_without_parts(
    parts: Sequence[specification.Chart],
) -> Callable[[ChartItem, specification.Choices], str]:
    """Explain why one of the parts cannot show an item, as a function of the item."""

    def refuse(item: ChartItem, choices: specification.Choices) -> str:
        return next(filter(None, (part.refuse(item, choices) for part in parts)), "")

    return refuse


def build_first(
    items: specification.StyledItems, choices: specification.Choices
) -> specification.Specification:
    maps, *_ = specs = [part.build(items, choices) for part in FIRST_PARTS]
    tokens = [panel if panel.member else replace(panel, title="Tokens") for panel in maps.panels]
    lines = (
        replace(spec.panels[0], key=key, title=title)
        for spec, key, title in zip(specs[1:], KEYS, TITLES, strict=True)
    )
    letters = [f"({chr(ord('a') + place)})" for place in range(len(tokens) + len(KEYS))]
    which = (", ".join(letters[: len(tokens)]), *letters[len(tokens) :])
    captions = zip(which, (spec.print_caption for spec in specs), strict=True)
    caption = " ".join(f"{panels} {said}" for panels, said in captions)
    return replace(
        maps,
        panels=(*tokens, *lines),
        caption=caption,
        print_caption=caption,
        table=lambda: tabulate(FIRST_PARTS, specs),
    )


def build_gao(
    items: specification.StyledItems, choices: specification.Choices
) -> specification.Specification:
    tokens = [s.analysis.tokens or () for s, _ in items if s.analysis is not None]
    few = tuple(token for names in tokens if len(names) <= MOST_NAMES for token in names)
    plain = replace(choices, color="none", annotate=few, free_axes=True)
    specs = [part.build(items, plain) for part in GAO_PARTS]
    maps, values = (spec.panels for spec in specs)
    named = [
        panel
        if len(names) <= MOST_NAMES or panel.cloud is None
        else replace(panel, cloud=replace(panel.cloud, named=()))
        for panel, names in zip(maps, tokens, strict=True)
    ]
    lines = tuple(
        line
        for line in values[0].lines
        if isinstance(line, specification.Line) and line.style.scale != "guide"
    )
    return replace(
        specs[0],
        panels=(*named, replace(values[0], lines=lines, key=KEYS[0], title=TITLES[0])),
        caption=GAO_CAPTION,
        print_caption=GAO_CAPTION,
        table=lambda: tabulate(GAO_PARTS, specs),
    )


def tabulate(
    parts: Sequence[specification.Chart], specs: Sequence[specification.Specification]
) -> specification.FigureTable:
    """Return places of tokens, singular values by index, and densities by the start of each bin."""
    rows: list[tuple[Cell, ...]] = []
    for part, spec in zip(parts, specs, strict=True):
        across, upward = COLUMNS[part.name]
        table = spec.table() if callable(spec.table) else spec.table
        assert table is not None
        named = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        rows += [
            (part.name, row["analysis"], row.get("token", up), row[across], row[up])
            for up in upward
            for row in named
        ]
    return specification.FigureTable(("part", "analysis", "token or line", "x", "y"), rows)


FIRST_FIGURE = specification.Chart(
    "figure1",
    "Maps of the tokens, singular values and cosines in one row",
    refuse_without_parts(FIRST_PARTS),
    build_first,
    pages=(),
    most=3,
    one_row=True,
)
GAO_FIGURE = specification.Chart(
    "gao-figure-1",
    "Maps of the rows of each matrix around the origin, and their singular values",
    refuse_without_parts(GAO_PARTS),
    build_gao,
    pages=(),
    least=2,
    most=3,
    one_row=True,
)

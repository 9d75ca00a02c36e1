"""The numbers behind a chart, as a table next to each figure."""

from embgeo.charts.panels import empty_cells
from embgeo.charts.render.drawing import line_x, line_y
from embgeo.charts.specification import FigureTable, Specification
from embgeo.core.values import Cell
from embgeo.files.saved import csv_lines


def render_csv(spec: Specification) -> bytes:
    table = find_table(spec)
    return b"".join(csv_lines(table.columns, table.rows))


def find_table(spec: Specification) -> FigureTable:
    return spec.table() if callable(spec.table) else spec.table or tabulate(spec)


def tabulate(spec: Specification) -> FigureTable:
    """Return a row for each point of each line: member, panel, line, x and y."""
    first = spec.panels[0]
    alone = spec.members[0] if len(spec.members) == 1 else ""
    rows: list[tuple[Cell, ...]] = [
        (line.member or panel.member or alone, panel.title, line.part, *cells)
        for panel in spec.panels
        for line in panel.lines
        # Of a histogram the left ends of its bins.
        for cells in zip(line_x(line).tolist(), empty_cells(line_y(line)), strict=False)
    ]
    several = len({panel.y.label for panel in spec.panels}) > 1
    y = "value" if several else first.y.label or "value"
    columns = ("analysis", "panel", "line", first.x.label, y)
    # A single panel and a single line per member need no name.
    used = [i for i in range(len(columns)) if i not in (1, 2) or any(row[i] for row in rows)]
    return FigureTable(
        tuple(columns[i] for i in used), [tuple(row[i] for i in used) for row in rows]
    )

"""What each chart says and draws, on paper and on pages, recorded in drawings.txt, to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.text import Text

from embgeo.charts import CHARTS, theme
from embgeo.charts.render import paper
from embgeo.charts.render.drawing import draw
from embgeo.charts.render.interactive import render_interactive
from embgeo.charts.render.svg import render_svg
from embgeo.charts.render.table import find_table
from embgeo.charts.specification import Chart, Choices, Specification
from tests.support.chart_samples import every_subject, specification
from tests.support.record import check_record, drawn_by_pinned

RECORD = Path(__file__).with_name("drawings.txt")
COLORS = {color.light: color.name for color in (*theme.DRAWN, theme.GRAY)}
COLORS |= {color: name for name, color in theme.TONES.items()}
#: Of a paper of two columns, in inches.
COLUMN, TEXT = 3.25, 6.75
#: Charts that take longer to draw than a fast test.
MAPS = ("scatter", "scatter-centered", "figure1", "gao-figure-1", "gong-figure-1")


@drawn_by_pinned
@pytest.mark.parametrize(
    "chart",
    [pytest.param(c, marks=pytest.mark.slow if c.name in MAPS else ()) for c in CHARTS],
    ids=lambda chart: chart.name,
)
def test_a_chart_is_the_one_that_was_read(chart: Chart) -> None:
    """What is off by a fiftieth of an inch is a matter of fonts."""
    spec = specification(chart.name, choices=Choices(annotate=("tok0", "tok7")))
    with paper.settings():
        width = TEXT if spec.one_row else COLUMN
        figure, notes = draw(spec, paper.output(width, paper.plain_text))
        figure.draw_without_rendering()
    lines = [f"{chart.least} to {chart.most}, in {chart.section!r} of {', '.join(chart.pages)}"]
    lines += [*describe_words(spec, notes), *describe_figure(figure), *describe_page(spec)]
    alone = chart.specify(every_subject()[:1])
    if alone is not None:
        more = [*describe_words(alone, ()), *describe_data(alone)]
        lines += ["alone:", *(line for line in more if line not in lines)]
    check_record(RECORD, chart.name, lines, apart=0.02)


def describe_words(spec: Specification, notes: tuple[str, ...]) -> Iterator[str]:
    yield f"{', '.join(spec.members)} of {spec.total}"
    yield from filter(None, (spec.alternative, spec.caption, spec.print_caption))
    yield from (f"note: {note}" for note in (*spec.notes, *notes))
    table = find_table(spec)
    yield f"{len(table.rows)} rows of {', '.join(table.columns)}"
    yield from (" | ".join(map(show, table.rows[place])) for place in (0, -1))


def describe_page(spec: Specification) -> Iterator[str]:
    """The picture of a page, and what scripts draw."""
    svg = render_svg(spec)
    root = ElementTree.fromstring(svg)
    size = f"{root.get('width')} × {root.get('height')}, {float(len(svg))} characters"
    names = Counter(f"{one.tag} {one.get('class', '')}".strip() for one in root.iter())
    yield f"svg {size}: {', '.join(f'{times} {name}' for name, times in sorted(names.items()))}"
    yield f"attributes: {' '.join(sorted({key for one in root.iter() for key in one.attrib}))}"
    yield f"texts: {' | '.join(one.text or '' for one in root.iter() if one.tag == 'text')}"
    yield from describe_data(spec)


def describe_data(spec: Specification) -> Iterator[str]:
    for name, chart in render_interactive(spec).items():
        lines = chart.pop("lines")
        for title, held in ((name, chart), *(("  line", line) for line in lines)):
            yield f"{title}: {', '.join(f'{key} {show(value)}' for key, value in held.items())}"


def describe_figure(figure: Figure) -> Iterator[str]:
    """Its size, legends and panels, each without the lines that the first one has as well."""
    yield f"figure {show(figure.get_size_inches())}"
    for legend in figure.legends:
        names = [text.get_text() for text in legend.get_texts()]
        looks = [look(handle) for handle in legend.legend_handles]
        entries = map(": ".join, zip(names, looks, strict=True))
        yield f"legend {inches(legend, figure)}: {'; '.join(entries)}"
    usual: set[str] = set()
    for ax in figure.axes:
        title = ax.get_title("left") or ax.get_title()
        artists = [*ax.lines, *ax.patches, *ax.collections, *ax.images, *ax.texts]
        yield f"panel {inches(ax, figure)}: {title}, {len(artists)} drawn"
        lines = [describe_axis(axis) for axis in (ax.xaxis, ax.yaxis)]
        for text, same in groupby(describe_artist(one, ax) for one in artists):
            lines.append(text if (times := len(list(same))) == 1 else f"{times} times {text}")
        yield from (f"  {line}" for line in lines if line not in usual)
        usual = usual or set(lines)


def describe_axis(axis: Any) -> str:
    labels = [tick.label1 for tick in axis.get_major_ticks()]
    ticks = " ".join(label.get_text() for label in labels if label.get_visible())
    ends = show(axis.get_view_interval())
    return f"{axis.axis_name} {axis.get_label_text()!r} {axis.get_scale()} {ends}: {ticks}"


def describe_artist(artist: Any, ax: Any) -> str:
    if isinstance(artist, Line2D):
        xy = np.stack(artist.get_data(), axis=1).astype(float)
        return f"line {look(artist)}" + f", {len(xy)} points {show(xy)}" * (len(xy) > 1)
    if isinstance(artist, Text):
        place = artist.get_window_extent().transformed(ax.transAxes.inverted())
        words = artist.get_text(), artist.get_ha(), artist.get_va(), artist.get_weight()
        return f"text {show((place.x0, place.y0))} {' '.join(map(str, words))}"
    if isinstance(artist, AxesImage):
        return f"image {show(artist.get_extent())} {artist.get_array().shape}"
    name = type(artist).__name__
    if name == "PathCollection":
        colors = Counter(map(color_name, artist.get_facecolor()))
        return f"dots {show(artist.get_sizes())} {dict(colors.most_common(3))}"
    collection = hasattr(artist, "get_datalim")
    box = artist.get_datalim(ax.transData) if collection else artist.get_path().get_extents()
    return f"{name} {look(artist)} {show(box.extents)}"


def look(artist: Any) -> str:
    """Colors, dashes, and widths and sizes in points."""
    if not isinstance(artist, Line2D):
        ends = artist.get_facecolor(), artist.get_edgecolor()
        colors = [color_name(np.atleast_2d(c)[0]) if len(c) else "none" for c in ends]
        return " ".join([*colors, show(np.atleast_1d(artist.get_linewidth())[0])])
    parts = []
    if len(artist.get_xdata()) > 1:
        dashes = artist._dash_pattern[1]  # type: ignore[attr-defined]
        parts += [color_name(artist.get_color()), show(dashes), show(artist.get_linewidth())]
    if artist.get_marker() not in ("", "None"):
        colors = map(color_name, (artist.get_markeredgecolor(), artist.get_markerfacecolor()))
        parts += [artist.get_marker(), show(artist.get_markersize()), *colors]
    return " ".join(parts)


def color_name(color: Any) -> str:
    found = to_hex(color, keep_alpha=True)
    opaque = "none" if found.endswith("00") else COLORS.get(found[:7], found[:7])
    return opaque if found[7:] in ("ff", "00") else f"{opaque} {int(found[7:], 16) / 255:.2f}"


def inches(artist: Any, figure: Figure) -> str:
    return show(artist.get_window_extent().extents / figure.dpi)


def show(value: Any) -> str:
    """Three digits of numbers; of many only how many they are, both ends and the middle."""
    if isinstance(value, float | np.floating):
        return f"{value:#.3g}"
    if isinstance(value, list | tuple | np.ndarray):
        kept = value if len(value) <= 4 else [value[0], value[len(value) // 2], value[-1]]
        text = " ".join(map(show, kept))
        return text if len(value) <= 4 else f"{len(value)} of {text}"
    return str(value)

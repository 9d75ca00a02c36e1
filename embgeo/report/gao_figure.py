"""The report of Figure 1 of Gao et al. 2019: picture, table and claims."""

from __future__ import annotations

from markupsafe import Markup

from embgeo.charts.render.svg import render_svg
from embgeo.charts.specification import Specification
from embgeo.core.version import VERSION
from embgeo.report.page import TRAINING, code, environment
from embgeo.training.study.gao_figure import GaoFigure, tabulate_panels

_SECTIONS = (("verdict", "Figure"), ("claims", "Claims"), ("deviations", "How it was made"))


def render(record: GaoFigure, chart: Specification) -> str:
    """The whole page as text; equal results give equal text."""
    head, *rows = tabulate_panels(record.matrices)
    return (
        environment()
        .get_template("gao_figure.html.j2")
        .render(
            title="Figure 1 of Gao et al. 2019 – embgeo train",
            record=record,
            head=head,
            rows=rows,
            svg=Markup(render_svg(chart)),
            caption=chart.caption,
            sections=[{"id": key, "title": title} for key, title in _SECTIONS],
            version=VERSION,
            **code(TRAINING, {}, None),
        )
    )

"""Charts of one analysis: ``analysis.plot.spectrum()``."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from embgeo.charts import CHARTS
from embgeo.charts.items import ChartItem
from embgeo.charts.render.svg import render_svg
from embgeo.charts.render.table import render_csv
from embgeo.charts.specification import Chart, Choices, Specification
from embgeo.core.errors import BadOption, EmbgeoError
from embgeo.result.analysis import Analysis
from embgeo.workflows.folders import write_output


@dataclass(frozen=True, slots=True, repr=False)
class Plot:
    """A chart, which a notebook shows as a picture; for papers see :func:`embgeo.figures`."""

    specification: Specification

    @property
    def svg(self) -> str:
        return render_svg(self.specification)

    @property
    def csv(self) -> str:
        """The numbers behind the chart."""
        return render_csv(self.specification).decode()

    def save(self, path: Path | str) -> Path:
        """Write the picture (``.svg``) or its numbers (``.csv``).

        Raises
        ------
        BadOption
            For another suffix.
        EmbgeoError
            If the file cannot be written.
        """
        path = Path(path)
        if path.suffix not in (".svg", ".csv"):
            way_out = "name it .svg or .csv, or use embgeo.figures for PDF, PNG and PGF"
            cause = f"{path.suffix or 'no suffix'} is not drawn here"
            raise BadOption(cause, where=path, way_out=way_out)
        write_output(path, self.svg if path.suffix == ".svg" else self.csv)
        return path

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Plot {self.specification.name}: {self.specification.caption}>"


class Plots:
    """One method for each chart, named as in ``embgeo figures`` with ``_`` for ``-``."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    def __getattr__(self, name: str) -> Callable[[], Plot]:
        chart = _CHARTS.get(name)
        if chart is None:
            raise AttributeError(f"unknown chart {name!r}; choose from {', '.join(_CHARTS)}")
        return partial(self._plot, chart)

    def __repr__(self) -> str:
        return f"<Plots: {', '.join(_CHARTS)}>"

    def __dir__(self) -> list[str]:
        return list(_CHARTS)

    def _plot(self, chart: Chart) -> Plot:
        item = ChartItem("", self._analysis)
        specification = chart.specify([item])
        if specification is None:
            reason = chart.refuse(item, Choices())
            raise EmbgeoError(f"{chart.name} cannot be drawn: {reason}")
        return Plot(specification)


#: The charts of a single analysis.
_CHARTS = {
    chart.name.replace("-", "_"): chart
    for chart in CHARTS
    if "analysis" in chart.pages and chart.least == 1
}

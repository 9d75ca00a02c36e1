"""Stored curves: laws of decay and principal angles of two spaces."""

from dataclasses import replace
from functools import partial

from embgeo.charts import specification as spec
from embgeo.charts.items import Unrelated
from embgeo.charts.lookup import Lookup, find_series, find_singular_values
from embgeo.charts.panels import first_line, series_lines, series_panel
from embgeo.core.quantities import compare, spectrum, subspace

_DECAY = Lookup(
    partial(find_singular_values, name=spectrum.DECAY_FIT.name),
    "its analysis left out the section spectrum",
)
_SUBSPACES = Lookup(partial(find_series, name=subspace.PRINCIPAL_ANGLES.name), Unrelated.NO_OUTPUT)
_ANGLES = Lookup(
    partial(find_series, name=compare.PRINCIPAL_ANGLES.name), Unrelated.NO_PAIR, of_pair=True
)


def build_decay(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    """Build a panel for each matrix."""
    panels: list[spec.Panel] = []
    for (item, _), curve in zip(items, _DECAY.collect(items), strict=True):
        panel = series_panel(curve, series_lines([(item, spec.MemberStyle())], [curve]))
        if len(items) > 1:
            panel = replace(panel, key=str(len(panels)), member=item.label)
        panels.append(panel)
    return spec.Specification(
        tuple(panels),
        "The singular values and the two laws of decay that spectrum control uses as priors, "
        "fitted by least squares; the table says which fits better.",
        "The singular values and the two laws of decay that spectrum control uses as priors "
        "(Wang et al. 2020), fitted by least squares.",
        spectrum.DECAY_FIT.name,
    )


def build_subspaces(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    curves = _SUBSPACES.collect(items)
    return spec.Specification(
        (series_panel(curves[0], series_lines(items, curves)),),
        "Principal angles between the spaces that the columns of the input and of the output "
        "matrix span, smallest first: 0° where they share a direction, 90° where they do not.",
        quantity=subspace.PRINCIPAL_ANGLES.name,
    )


def build_angles(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    # One line per pair, whatever its label.
    curves = [replace(curve, y={"": first_line(curve)}) for curve in _ANGLES.collect(items)]
    panel = series_panel(curves[0], series_lines(items, curves))
    angle = replace(panel.y, low=0.0, high=90.0, ticks=tuple(range(0, 91, 15)))
    return spec.Specification(
        (replace(panel, y=angle),),
        "Principal angles between the spaces that the columns of the baseline and of the other "
        "matrix span over their shared tokens, smallest first: 0° where they share a direction, "
        "90° where they do not. A rotation of the rows changes none of them.",
        quantity=compare.PRINCIPAL_ANGLES.name,
    )


DECAY = spec.Chart(
    "decay",
    "Line chart of the singular values with two fitted curves",
    _DECAY.refuse,
    build_decay,
    section="spectrum",
    pages=("analysis",),
    most=12,
)
SUBSPACES = spec.Chart(
    "subspaces",
    "Line chart of the principal angles between input and output space",
    _SUBSPACES.refuse,
    build_subspaces,
    section="subspace",
    pages=("analysis",),
)
ANGLES = spec.Chart(
    "angles",
    "Line chart of the principal angles between the baseline and every other matrix",
    _ANGLES.refuse,
    build_angles,
    section="together",
)

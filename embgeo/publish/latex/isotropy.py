"""I1 and I2 by method, after Table 3 of Wang et al. 2020."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from embgeo.charts.render.paper import Venue
from embgeo.core.quantities import isotropy
from embgeo.core.values import Cell, Quantity, Scalar, format_number
from embgeo.publish.latex.latex_table import (
    BETWEEN,
    LETTER,
    Latex,
    LatexTable,
    TableColumn,
    TableContent,
    choose_environment,
    latex_number,
    latex_text,
    measure,
)
from embgeo.result.analysis import Analysis

#: Most decimals.
MOST_DECIMALS = 4
#: Longest label of a method.
LABEL = 20
CONVENTIONS = {
    "both": r"$Z$ is taken at both signs, $v$ and $-v$, of each eigenvector $v$ of "
    r"$W^\top W$, so that the values depend on no sign that a library happens to give",
    "one": r"$Z$ is taken at one sign of each eigenvector $v$ of $W^\top W$, the one with "
    r"$\langle\bar{w}, v\rangle \geq 0$ for the mean row $\bar{w}$, as published tables take one",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Columns of one scale: I1, and I2 where there is one."""

    title: str
    quantities: tuple[Quantity, ...]


SAMPLED = Group("as stored, samples", (isotropy.I1_SAMPLED, isotropy.I2_SAMPLED))
#: The groups over both signs of the eigenvectors and over one, as published tables have it.
GROUPS = {
    "both": (
        Group("as stored", (isotropy.I1, isotropy.I2)),
        Group("at mean norm 1", (isotropy.I1_UNIT,)),
        SAMPLED,
    ),
    "one": (Group("as stored", (isotropy.I1_MEAN_SIGN, isotropy.I2_MEAN_SIGN)),),
}


def missing(analysis: Analysis) -> str:
    if analysis.find_scalar(isotropy.I1.name) is None:
        return "its analysis left out the section isotropy"
    return ""


def find(analysis: Analysis, group: Group) -> list[Scalar | None]:
    return [analysis.find_scalar(quantity) for quantity in group.quantities]


def fill(methods: Sequence[TableColumn], signs: str, page: Venue) -> TableContent:
    sampled = all(None not in find(method.analysis, SAMPLED) for method in methods)
    groups = [group for group in GROUPS[signs] if group is not SAMPLED or sampled]
    table = [[s for g in groups for s in find(method.analysis, g)] for method in methods]
    # Most isotropic are the largest I1 and the smallest I2 of a group.
    columns_of_scalars = list(zip(*table, strict=True))
    quantities = [quantity for group in groups for quantity in group.quantities]
    best = [
        find_best(column, max if quantity.name.startswith(isotropy.I1.name) else min)
        for quantity, column in zip(quantities, columns_of_scalars, strict=True)
    ]
    columns_of_cells = list(map(write_column, columns_of_scalars, best))
    widths = [max(map(measure, column)) + BETWEEN for column in columns_of_cells]
    # The columns of a group have at least the width of the title above them.
    rest, width = iter(widths), 0.0
    for group in groups:
        own = sum(next(rest) for _ in group.quantities)
        width += max(own, LETTER * len(group.title) + BETWEEN)
    width += max(LETTER * min(len(method.label), LABEL) for method in methods) + BETWEEN
    body = [
        {"label": Latex(latex_text(method.label, LABEL)), "cells": cells}
        for method, cells in zip(methods, zip(*columns_of_cells, strict=True), strict=True)
    ]
    rows: list[tuple[Cell, ...]] = [
        (method.label, s.name, s.value, s.standard_error, s.convention, s.undefined)
        for method, scalars in zip(methods, table, strict=True)
        for s in scalars
        if s is not None
    ]
    samples = {
        s.sample.partition(";")[0]
        for m in methods
        if SAMPLED in groups and (s := find(m.analysis, SAMPLED)[0]) is not None
    }
    values = {
        "environment": choose_environment(width, page),
        "groups": groups,
        "body": body,
        "convention": Latex(CONVENTIONS[signs]),
        "samples": sorted(samples),
        "dagger": any(map(is_marked, (s for scalars in table for s in scalars))),
        "bold": any(value is not None for value in best),
    }
    columns = ("analysis", "name", "value", "standard error", "convention", "undefined")
    return TableContent(values, columns, rows)


def find_best(
    scalars: Sequence[Scalar | None], choose: Callable[[list[float]], float]
) -> float | None:
    """Find the most isotropic value of a column; None if all are equal."""
    values = [s.value for s in scalars if s is not None and s.value is not None]
    return choose(values) if len(set(values)) > 1 else None


def is_marked(scalar: Scalar | None) -> bool:
    """Tell whether a value depends on the choice of basis."""
    return scalar is not None and scalar.value is not None and "basis_dependent" in scalar.caveats


def write_column(scalars: Sequence[Scalar | None], bold: float | None) -> list[Latex]:
    """Write the cells of a column, with their decimal points aligned."""
    texts = [format_number(s.value, 3) for s in scalars if s is not None and s.value is not None]
    found = [0 if "e" in text else len(text.partition(".")[2]) for text in texts]
    decimals = min(MOST_DECIMALS, max(found, default=0))
    return [Latex(write_cell(scalar, decimals, bold)) for scalar in scalars]


def write_cell(scalar: Scalar | None, decimals: int, bold: float | None) -> str:
    """Write the value, the standard error if sampled, and a dagger if it depends on the basis."""
    if scalar is None or scalar.value is None:
        return "--"
    text = latex_number(write_number(scalar.value, decimals))
    if scalar.value == bold:
        text = rf"$\mathbf{{{text.strip('$')}}}$"
    if scalar.standard_error is not None:
        text += rf" $\pm$ {latex_number(write_number(scalar.standard_error, decimals))}"
    # The mark takes no room, so that points stay aligned.
    return text + r"\rlap{$^\dagger$}" if is_marked(scalar) else text


def write_number(value: float, decimals: int) -> str:
    """Write a number with these decimals, or three digits and an exponent if it is too small."""
    short = format_number(value, 3)
    if "e" in short or abs(value) < 10.0 ** (1 - decimals):
        return short
    return f"{value:,.{decimals}f}"


TABLE = LatexTable("isotropy", missing, fill)

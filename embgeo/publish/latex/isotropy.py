"""I1 and I2 by method, in the shape of Wang et al. 2020, Table 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embgeo.core.quantities import isotropy
from embgeo.core.values import Cell, Quantity, Scalar, format_number
from embgeo.publish.latex.latex_table import Content, Latex, LatexTable, TableColumn
from embgeo.publish.latex.latex_text import latex_number
from embgeo.result.analysis import Analysis

CONVENTIONS = {
    "both": r"$Z$ is taken at both signs, $v$ and $-v$, of each eigenvector $v$ of "
    r"$W^\top W$, so that the values depend on no sign that a library happens to give",
    "one": r"$Z$ is taken at one sign of each eigenvector $v$ of $W^\top W$, the one with "
    r"$\langle\bar{w}, v\rangle \geq 0$ for the mean row $\bar{w}$, as published tables take one",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Two columns, I1 and I2, of one scale: over both signs of the eigenvectors, or over one."""

    title: str
    both: tuple[Quantity, Quantity]
    one: tuple[Quantity, Quantity]


RAW = Group(
    "raw scale",
    both=(isotropy.I1, isotropy.I2),
    one=(isotropy.I1_MEAN_SIGN, isotropy.I2_MEAN_SIGN),
)
UNIT = Group(
    "unit scale",
    both=(isotropy.I1_UNIT, isotropy.I2_UNIT),
    one=(isotropy.I1_UNIT_MEAN_SIGN, isotropy.I2_UNIT_MEAN_SIGN),
)
SAMPLED = Group(
    "raw scale, samples",
    both=(isotropy.I1_SAMPLED, isotropy.I2_SAMPLED),
    one=(isotropy.I1_SAMPLED_MEAN_SIGN, isotropy.I2_SAMPLED_MEAN_SIGN),
)


def missing(analysis: Analysis) -> str:
    if analysis.scalar(isotropy.I1.name) is None:
        return "its analysis left out the section isotropy"
    return ""


def pair(analysis: Analysis, group: Group, signs: str) -> tuple[Scalar | None, Scalar | None]:
    """I1 and I2 of this scale and convention."""
    first, second = group.both if signs == "both" else group.one
    return analysis.scalar(first), analysis.scalar(second)


def fill(methods: Sequence[TableColumn], signs: str) -> Content:
    groups = [RAW, UNIT]
    if all(None not in pair(method.analysis, SAMPLED, signs) for method in methods):
        groups.append(SAMPLED)
    body = []
    rows: list[tuple[Cell, ...]] = []
    for method in methods:
        cells = []
        for group in groups:
            for scalar in pair(method.analysis, group, signs):
                cells.append(Latex(number(scalar)))
                if scalar is not None:
                    rows.append(
                        (method.label, scalar.name, scalar.value, scalar.standard_error,
                         scalar.convention, scalar.undefined)
                    )  # fmt: skip
        body.append({"label": method.label, "cells": cells})
    samples = {
        s.sample.partition(";")[0]
        for m in methods
        if SAMPLED in groups and (s := pair(m.analysis, SAMPLED, signs)[0]) is not None
    }
    values = {
        "groups": groups,
        "body": body,
        "convention": Latex(CONVENTIONS[signs]),
        "samples": sorted(samples),
        "dagger": any(r"\dagger" in cell for row in body for cell in row["cells"]),
    }
    columns = ("analysis", "name", "value", "standard error", "convention", "undefined")
    return Content(values, columns, rows)


def number(scalar: Scalar | None) -> str:
    """Three digits, the standard error where sampled, and a dagger where the basis decides."""
    if scalar is None or scalar.value is None:
        return "---"
    text = latex_number(format_number(scalar.value, 3))
    if scalar.standard_error is not None:
        text += rf" $\pm$ {latex_number(format_number(scalar.standard_error, 1))}"
    return text + r"$^\dagger$" if "basis_dependent" in scalar.caveats else text


TABLE = LatexTable("isotropy", missing, fill)

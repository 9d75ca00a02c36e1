"""What an analysis consists of: numbers that know what they mean and how they are shown.

A :class:`Quantity` holds the fixed facts (name, meaning, formula, source); a value is a quantity
with what was measured. Report, comparison, gate and figures need nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from embgeo.core.arrays import FloatArray

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Quantity:
    """The facts about a value that do not depend on the matrix.

    Attributes
    ----------
    name : str
        ``family.name``, the key in JSON, gates and comparisons.
    title : str
        What a table or an axis calls it.
    meaning : str
        One or two plain sentences for a reader who does not know the papers.
    formula : str
        The definition, in Unicode mathematics.
    source : str
        Paper and section, or the usual name of the quantity.
    unit : str
        ``""`` for pure numbers.
    better : {"higher", "lower"} or None
        None where neither direction is good in itself.
    """

    name: str
    title: str
    meaning: str
    formula: str = ""
    source: str = ""
    unit: str = ""
    better: Literal["higher", "lower"] | None = None

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    def measured(
        self,
        value: float,
        *,
        standard_error: float | None = None,
        sample: str = "",
        convention: str = "",
        reference: float | None = None,
        reference_note: str = "",
    ) -> Scalar:
        """A scalar with this value; a non-finite one becomes undefined, never NaN in silence."""
        if not math.isfinite(value):
            return self.undefined("the computation gave no finite number", convention=convention)
        if standard_error is not None and not math.isfinite(standard_error):
            standard_error = None
        return Scalar(
            self,
            float(value),
            standard_error=None if standard_error is None else float(standard_error),
            sample=sample,
            convention=convention,
            reference=None if reference is None else float(reference),
            reference_note=reference_note,
        )

    def undefined(self, reason: str, *, convention: str = "") -> Scalar:
        """A scalar that has no value, and why."""
        return Scalar(self, None, undefined=reason, convention=convention)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number.

    Attributes
    ----------
    quantity : Quantity
    value : float or None
        None exactly if `undefined` gives a reason.
    standard_error : float or None
        One standard error, where the value was sampled.
    sample : str
        What was sampled, in words, e.g. ``"200,000 pairs"``; empty where exact.
    convention : str
        Which of the literature's conventions was used, where there are several.
    undefined : str
        Why there is no value.
    reference : float or None
        What the value is to be compared with (isotropic Gaussian rows, or chance).
    reference_note : str
        Where `reference` comes from.
    """

    quantity: Quantity
    value: float | None
    standard_error: float | None = None
    sample: str = ""
    convention: str = ""
    undefined: str = ""
    reference: float | None = None
    reference_note: str = ""

    @property
    def name(self) -> str:
        return self.quantity.name

    @property
    def text(self) -> str:
        """The value as people read it, with its standard error."""
        if self.value is None:
            return f"not defined: {self.undefined}"
        shown = format_number(self.value)
        if self.quantity.unit:
            shown = f"{shown} {self.quantity.unit}"
        if self.standard_error is not None:
            shown = f"{shown} ± {format_number(self.standard_error, 2)}"
        return shown

    @property
    def reference_text(self) -> str:
        return "" if self.reference is None else format_number(self.reference)


@dataclass(frozen=True, slots=True)
class Series:
    """A curve: one or several y over a common x.

    Attributes
    ----------
    x : FloatArray
        Shape (m,).
    y : dict of str to FloatArray
        Lines by label, each of shape (m,).
    log_x, log_y : bool
        How the axes are best drawn.
    """

    quantity: Quantity
    x: FloatArray
    y: dict[str, FloatArray]
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    note: str = ""

    @property
    def name(self) -> str:
        return self.quantity.name


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts between edges; `edges` has one entry more than `counts`."""

    quantity: Quantity
    edges: FloatArray
    counts: FloatArray
    x_label: str
    y_label: str
    note: str = ""

    @property
    def name(self) -> str:
        return self.quantity.name


@dataclass(frozen=True, slots=True)
class Points:
    """A place in the plane for each kept row.

    Attributes
    ----------
    xy : FloatArray
        Shape (M, 2), in the order of the analysis' kept rows.
    share : tuple of two floats
        Share of the energy (sum of squares) that each axis holds, in [0, 1].
    """

    quantity: Quantity
    xy: FloatArray
    x_label: str
    y_label: str
    share: tuple[float, float]
    note: str = ""

    @property
    def name(self) -> str:
        return self.quantity.name


@dataclass(frozen=True, slots=True)
class Column:
    """One number for each kept row (norm, angle, …), shape (M,); `label` is short."""

    quantity: Quantity
    values: FloatArray
    label: str

    @property
    def name(self) -> str:
        return self.quantity.name


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns and rows of cells; token strings in it are hostile text."""

    quantity: Quantity
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @property
    def name(self) -> str:
        return self.quantity.name


Value = Scalar | Series | Histogram | Points | Column | Table


def format_number(value: float, digits: int = 4) -> str:
    """`value` with `digits` significant digits; 0 and ±1 are printed only when exact.

    >>> format_number(0.99999999), format_number(1.0), format_number(12345678.0)
    ('1 − 1e-08', '1', '12,345,678')
    """
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace("-", "−")
    text = f"{value:.{digits}g}"
    if float(text) == 1.0:
        gap = 1.0 - value
        return f"1 {'−' if gap > 0 else '+'} {abs(gap):.2g}"
    if float(text) == -1.0:
        gap = value + 1.0
        return f"−1 {'+' if gap > 0 else '−'} {abs(gap):.2g}"
    whole = math.floor(math.log10(abs(float(text))))
    if digits <= whole + 1 < 16:
        text = f"{value:,.0f}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def scalar_to_json(scalar: Scalar) -> dict[str, Any]:
    """Every field, the quantity's facts included, so that a saved result explains itself."""
    q = scalar.quantity
    return {
        "name": q.name,
        "title": q.title,
        "value": scalar.value,
        "undefined": scalar.undefined,
        "standard_error": scalar.standard_error,
        "sample": scalar.sample,
        "convention": scalar.convention,
        "reference": scalar.reference,
        "reference_note": scalar.reference_note,
        "unit": q.unit,
        "better": q.better,
        "meaning": q.meaning,
        "formula": q.formula,
        "source": q.source,
    }


def quantity_to_json(q: Quantity) -> dict[str, Any]:
    return {
        "name": q.name,
        "title": q.title,
        "meaning": q.meaning,
        "formula": q.formula,
        "source": q.source,
        "unit": q.unit,
    }


def quantity_from_json(d: dict[str, Any]) -> Quantity:
    return Quantity(
        name=d["name"],
        title=d["title"],
        meaning=d["meaning"],
        formula=d["formula"],
        source=d["source"],
        unit=d.get("unit", ""),
        better=d.get("better"),
    )

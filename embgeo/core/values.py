"""The values of an analysis, with their meaning and their text.

A :class:`Quantity` holds the fixed facts (name, meaning, formula, source); a value is a quantity
with a measurement. Reports, comparisons, gates and figures need nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Literal

from embgeo.core.arrays import FloatArray
from embgeo.core.errors import UnreadableFile
from embgeo.core.numbers import NumberLike, join_unit
from embgeo.core.numbers import format_number as format_number
from embgeo.core.text import lower_title

Cell = str | int | float | None

#: Metadata of a dataclass whose fields are saved in its place, and of one that is not saved.
INLINE, UNSAVED = {"inline": True}, {"saved": False}
#: Metadata of an array with an entry for each row, which is saved next to the JSON file.
IN_ARCHIVE = {"archive": "", "key": "array"}

#: How well a number is known: exactly, estimated by a sample, or bounded from one side.
Known = Literal["exact", "sampled", "at_least", "at_most"]
#: Source of a standard error: random choices of the analysis, or the choice of the tokens.
ErrorKind = Literal["monte_carlo", "population"]
#: Short names of these kinds.
ERROR_WORDS: dict[ErrorKind, str] = {
    "monte_carlo": "sampling",
    "population": "tokens",
}
#: A reference is the value of isotropic rows or the value by chance.
ReferenceKind = Literal["isotropic", "chance", "none"]
#: A number depends on the choice or the signs of eigenvectors, or its computation did not converge;
#: one row holds much of an eigenvalue; or why a number has no error over tokens: too few rows or
#: stems, halves that show another number, or eigenvectors that turn.
Caveat = Literal[
    "basis_dependent", "not_converged", "sign_dependent", "dominant_row",
    "few_rows", "size_dependent", "turning"]  # fmt: skip

#: Subject of a note: the file and its labels, rows that were left out, or a matrix in parts.
NoteCode = Literal[
    "tied", "output", "loading", "masked", "zero", "nonfinite", "damaged", "listed", "hidden",
    "parts"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for readers, with a code for programs."""

    code: NoteCode
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Quantity:
    """The facts about a value that do not depend on the matrix.

    Attributes
    ----------
    name : str
        ``family.name``, the key in JSON, gates and comparisons.
    title : str
        Label in tables and on axes.
    meaning : str
        One or two plain sentences for readers who do not know the papers.
    formula : str
        The definition, in Unicode mathematics.
    source : str
        Paper and section, or the usual name of the quantity.
    unit : str
        ``""`` for pure numbers.
    better : {"higher", "lower"} or None
        None if neither direction is better.
    why : str
        Of a scalar: who reads it, or which question it answers.
    """

    name: str
    title: str
    meaning: str
    formula: str = ""
    source: str = ""
    unit: str = ""
    better: Literal["higher", "lower"] | None = None
    why: str = field(default="", compare=False, metadata=UNSAVED)

    @property
    def label(self) -> str:
        """The title as it stands in a sentence or at an axis."""
        return lower_title(self.title)

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    def measured(
        self,
        value: float,
        *,
        standard_error: float | None = None,
        error_kind: ErrorKind | None = None,
        population_error: float | None = None,
        freedom: int | None = None,
        size: int | None = None,
        known: Known | None = None,
        sample: str = "",
        convention: str = "",
        caveats: tuple[Caveat, ...] = (),
        reference: float | None = None,
        reference_kind: ReferenceKind = "chance",
        reference_note: str = "",
    ) -> Scalar:
        """Return a scalar with this value, or an undefined one if the value is not finite.

        `known` follows from `sample` and `standard_error` unless it is given.
        """
        if not math.isfinite(value):
            return self.undefined("the computation gave no finite number", convention=convention)
        standard_error, population_error = map(_finite_error, (standard_error, population_error))
        if error_kind == "population":
            population_error = standard_error
        if known is None:
            known = "sampled" if sample or standard_error is not None else "exact"
        return Scalar(
            self,
            float(value),
            known=known,
            standard_error=standard_error,
            error_kind=None if standard_error is None else error_kind,
            population_error=population_error,
            freedom=None if standard_error is None else freedom,
            size=size,
            sample=sample,
            convention=convention,
            caveats=caveats,
            reference=None if reference is None else float(reference),
            reference_kind="none" if reference is None else reference_kind,
            reference_note=reference_note,
        )

    def undefined(self, reason: str, *, convention: str = "") -> Scalar:
        """Return a scalar that has no value, and why."""
        return Scalar(self, None, undefined=reason, convention=convention)


def _finite_error(error: float | None) -> float | None:
    return None if error is None or not math.isfinite(error) else float(error)


class Named:
    """A value with the name of its quantity and a repr of one line."""

    __slots__ = ()
    quantity: Quantity

    @property
    def name(self) -> str:
        return self.quantity.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self._content()}>"

    def _content(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scalar(Named, NumberLike):
    """A number, which compares, formats and converts like a float.

    In a condition it is its value, like a number of NumPy: 0 is false, and an undefined scalar
    raises ValueError. Test with ``is None`` whether there is a scalar.

    Attributes
    ----------
    quantity : Quantity
    value : float or None
        None exactly if `undefined` gives a reason.
    standard_error : float or None
        Standard error of a sampled value as a number of this matrix. If only the tokens are a
        sample, the error over tokens.
    sample : str
        Description of the sample, e.g. ``"200,000 pairs"``; empty for exact values.
    convention : str
        The convention used, if the literature has several.
    undefined : str
        Why there is no value.
    reference : float or None
        Value to compare with (isotropic Gaussian rows, or chance).
    reference_note : str
        Origin of `reference`.
    known : {"exact", "sampled", "at_least", "at_most"}
        Whether the value is exact, an estimate, or a bound from a sample.
    error_kind : {"monte_carlo", "population"} or None
        Kind of the standard error; None exactly if there is none.
    population_error : float or None
        Standard error of the value as an estimate for the population that the tokens are a sample
        of. It includes sampling errors, and also exists for exact values.
    freedom : int or None
        Degrees of freedom of a standard error from few draws; None for a normal one.
    size : int or None
        Number of rows, if the value depends on it: values of different sizes are not compared.
    reference_kind : {"isotropic", "chance", "none"}
    caveats : tuple of Caveat
    """

    quantity: Quantity = field(metadata=INLINE)
    value: float | None
    standard_error: float | None = None
    sample: str = ""
    convention: str = ""
    undefined: str = ""
    reference: float | None = None
    reference_note: str = ""
    known: Known = "exact"
    error_kind: ErrorKind | None = None
    population_error: float | None = None
    freedom: int | None = None
    size: int | None = None
    reference_kind: ReferenceKind = "none"
    caveats: tuple[Caveat, ...] = ()

    @property
    def errors(self) -> dict[ErrorKind, float]:
        """All standard errors by kind; the first is printed."""
        found: dict[ErrorKind, float] = {}
        if self.standard_error is not None and self.error_kind is not None:
            found[self.error_kind] = self.standard_error
        if self.population_error is not None:
            found["population"] = self.population_error
        return found

    @property
    def text(self) -> str:
        """The value with unit, one standard error and the kind of the error."""
        if self.value is None:
            return f"not defined: {self.undefined}"
        shown = join_unit(format_number(self.value), self.quantity.unit)
        return " ".join([shown, *self.errors_text.split("; ")[:1]]).rstrip()

    @property
    def errors_text(self) -> str:
        """``"± 0.0021 (sampling); ± 0.011 (tokens)"``; empty without an error."""
        shown = (f"± {format_number(e, 2)} ({ERROR_WORDS[k]})" for k, e in self.errors.items())
        return "; ".join(shown)

    @property
    def reference_text(self) -> str:
        return "" if self.reference is None else format_number(self.reference)

    def __str__(self) -> str:
        return self.text

    _content = __str__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else self.text

    def __eq__(self, other: object) -> bool:
        """Compare with a number of the same value, or with a scalar with equal fields."""
        if isinstance(other, Scalar):
            return all(getattr(self, f.name) == getattr(other, f.name) for f in fields(self))
        if isinstance(other, int | float):
            return self.value is not None and self.value == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True, repr=False)
class Series(Named):
    """One or several curves over a common x."""

    quantity: Quantity = field(metadata=INLINE)
    #: Shape (m,).
    x: FloatArray
    #: Curves by label, each of shape (m,).
    y: dict[str, FloatArray]
    x_label: str
    y_label: str
    #: Whether to draw logarithmic axes.
    log_x: bool = False
    log_y: bool = False
    note: str = ""

    def _content(self) -> str:
        return f"{len(self.x):,} points, {', '.join(self.y)}"


@dataclass(frozen=True, slots=True, repr=False)
class Histogram(Named):
    """Counts between edges, of which there is one more than counts."""

    quantity: Quantity = field(metadata=INLINE)
    edges: FloatArray
    counts: FloatArray
    x_label: str
    y_label: str
    note: str = ""

    def _content(self) -> str:
        return f"{len(self.counts):,} bins from {self.edges[0]:.4g} to {self.edges[-1]:.4g}"


@dataclass(frozen=True, slots=True, repr=False)
class Points(Named):
    """A point in the plane for each kept row.

    `xy` has shape (M, 2), `share` is the variance (uncentered) along each axis, in [0, 1].
    """

    quantity: Quantity = field(metadata=INLINE)
    xy: FloatArray = field(metadata=IN_ARCHIVE)
    x_label: str
    y_label: str
    share: tuple[float, float]
    note: str = ""

    def _content(self) -> str:
        return f"{len(self.xy):,} rows"


@dataclass(frozen=True, slots=True, repr=False)
class Column(Named):
    """One number for each kept row (norm, angle, …), shape (M,); `label` is short."""

    quantity: Quantity = field(metadata=INLINE)
    values: FloatArray = field(metadata=IN_ARCHIVE)
    label: str

    def _content(self) -> str:
        return f"{self.label} of {len(self.values):,} rows"


@dataclass(frozen=True, slots=True, repr=False)
class Table(Named):
    """Named columns and rows of cells; tokens in cells are untrusted text.

    `rare` holds the row and column of each cell that names a rare token, counted from 0.
    """

    quantity: Quantity = field(metadata=INLINE)
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    rare: tuple[tuple[int, int], ...] = ()

    def find_column(self, name: str) -> int:
        """Return the place of a column; UnreadableFile where a saved table lacks it."""
        if name not in self.columns:
            cause = f"the analysis has no column {name} in its table {self.name}"
            raise UnreadableFile(cause, way_out="analyze the checkpoint again")
        return self.columns.index(name)

    def _content(self) -> str:
        return f"{len(self.rows):,} rows of {', '.join(self.columns)}"


#: Degrees of freedom of an error over tokens: contrasts of 16 groups of them.
FREEDOM = 15


@dataclass(frozen=True, slots=True, repr=False)
class Halves(Named):
    """A scalar measured on 30 halves of the tokens (:mod:`embgeo.numerics.halves`).

    Their spread is the scalar's error over tokens. Two matrices of the same tokens have the same
    halves: the spread of the differences is the error of the difference.
    """

    quantity: Quantity = field(metadata=INLINE)
    #: Shape (30,).
    values: FloatArray = field(metadata=IN_ARCHIVE)

    def _content(self) -> str:
        return f"{len(self.values)} halves"


Value = Scalar | Series | Histogram | Points | Column | Table | Halves

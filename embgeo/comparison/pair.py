"""Values of two matrices, and differences of numbers from the baseline."""

from dataclasses import dataclass, field
from typing import Literal

from embgeo.comparison.matching import Matching
from embgeo.core import values as v
from embgeo.core.numbers import format_signed, join_unit

#: What is known about a difference. "significant": other tokens of the same population would
#: hardly ever make it that large (by its error over tokens, after Holm's correction for all judged
#: differences); "not significant": they may; "not judged": its error over tokens is not known;
#: "equal": within rounding, whatever the error; "undefined": one side has no value, or the two
#: cannot be compared.
Change = Literal["significant", "not significant", "not judged", "equal", "undefined"]
Direction = Literal["better", "worse"] | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Values of two matrices, over their shared tokens."""

    #: Places among the members; `first` is the baseline, or in a track also the previous member.
    first: int
    second: int
    matching: Matching
    #: ``compare.subspace_distance``, ``compare.cka``, ``compare.cka_debiased``, ``compare.cka_p``,
    #: ``compare.procrustes``, ``compare.neighbor_overlap`` and the scalars of the change;
    #: undefined with the reason if a matrix is not available. `reference` is the chance level.
    scalars: tuple[v.Scalar, ...] = ()
    #: ``compare.principal_angles`` (degrees, smallest first).
    series: tuple[v.Series, ...] = ()
    #: ``compare.moved``: tokens whose neighborhood changed most, the most changed first. Columns:
    #: ``token``, ``overlap`` (Jaccard), ``before 1`` … ``before k`` (nearest in `first`), ``after
    #: 1`` … ``after k`` (nearest in `second`); a cell is None if there are fewer than k neighbors.
    tables: tuple[v.Table, ...] = ()
    #: Whether rows that were matched by number are the same ones in another order.
    reordered: bool = False

    @property
    def name(self) -> str:
        """``"0-1"``."""
        return f"{self.first}-{self.second}"

    def __getitem__(self, name: str) -> v.Value:
        """Return the value with this name; KeyError if there is none."""
        return {value.name: value for value in self.values()}[name]

    def __contains__(self, name: object) -> bool:
        return any(value.name == name for value in self.values())

    def scalar(self, quantity: v.Quantity) -> v.Scalar | None:
        """Return the scalar of a quantity, or None."""
        return next((one for one in self.scalars if one.name == quantity.name), None)

    def values(self) -> tuple[v.Value, ...]:
        return (*self.scalars, *self.series, *self.tables)


@dataclass(frozen=True, slots=True, repr=False)
class Difference:
    """The difference of a scalar of a member from that of the baseline."""

    quantity: v.Quantity = field(metadata=v.INLINE)
    #: Place of the member; the baseline is 0.
    member: int
    baseline: float | None
    value: float | None
    #: ``value − baseline``; None exactly if `undefined` gives a reason.
    difference: float | None
    #: One standard error of the difference, if known.
    standard_error: float | None = None
    #: What the standard error is about; "monte_carlo" if the error over tokens is not known.
    error_kind: v.ErrorKind | None = None
    #: 95% interval of the difference, if its standard error is known.
    interval: tuple[float, float] | None = None
    #: The probability of a difference of at least this size if the populations do not differ; and
    #: after Holm's correction. Only for judged differences.
    p_value: float | None = None
    p_adjusted: float | None = None
    #: How error and interval were computed; empty without them.
    error_note: str = ""
    change: Change = "not judged"
    #: None if neither direction is good in itself (nearly always), or nothing changed.
    direction: Direction = None
    undefined: str = ""
    #: How the two measurements differ (other conventions, other options).
    note: str = ""

    @property
    def name(self) -> str:
        return self.quantity.name

    @property
    def text(self) -> str:
        """The difference with its sign and unit; empty if there is none."""
        return self._write(4)

    @property
    def brief(self) -> str:
        """The same in three digits."""
        return self._write(3)

    def _write(self, digits: int) -> str:
        if self.difference is None:
            return ""
        if self.change == "equal" and self.difference:
            return "≈ 0"
        return join_unit(format_signed(self.difference, digits), self.quantity.unit)

    @property
    def error_text(self) -> str:
        return "" if self.standard_error is None else f"± {v.format_number(self.standard_error, 2)}"

    @property
    def interval_text(self) -> str:
        return "" if self.interval is None else " … ".join(map(format_signed, self.interval))

    @property
    def remarks(self) -> str:
        """Why there is no difference, or how its error was found; empty without either."""
        return "; ".join(filter(None, (self.undefined, self.note, self.error_note)))

    def __repr__(self) -> str:
        shown = self.undefined if self.difference is None else v.format_number(self.difference)
        return f"<Difference {self.name}: {shown}>"

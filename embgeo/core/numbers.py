"""Numbers as text, values that act as numbers, and the width of their intervals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

#: Rounding of sums of float64 near ±1.
ROUNDING = 1e-12


def format_number(value: float, digits: int = 4) -> str:
    """Return `value` with `digits` significant digits; 0 and ±1 are printed only if exact.

    A distance of less than 1e-12 from ±1 counts as exact.

    >>> format_number(0.99999999), format_number(1.0), format_number(math.nan)
    ('1 − 1e-08', '1', 'NaN')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if abs(abs(value) - 1.0) < ROUNDING:
        value = math.copysign(1.0, value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace("-", "−")
    text = f"{value:.{digits}g}"
    if abs(float(text)) == 1.0:
        gap = value - float(text)
        return f"{'−' if value < 0 else ''}1 {'+' if gap > 0 else '−'} {abs(gap):.2g}"
    whole = math.floor(math.log10(abs(float(text))))
    if digits <= whole + 1 < 16:
        text = f"{value:,.0f}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def format_optional(value: float | None, digits: int = 4) -> str:
    """Return `value` as :func:`format_number` writes it; a dash if there is none."""
    return "–" if value is None else format_number(value, digits)


#: Below this a p-value says how good the approximation of its law is, nothing about the data.
LEAST_P = 1e-15


def format_p(value: float | None) -> str:
    """Write a p-value in two digits, or as less than the least; a dash if there is none.

    >>> format_p(0.0123), format_p(1e-60), format_p(None)
    ('0.012', '<1e-15', '–')
    """
    if value is not None and value < LEAST_P:
        return f"<{LEAST_P:g}"
    return format_optional(value, 2)


def join_unit(text: str, unit: str) -> str:
    """Write a number with its unit: ``3 decades``, ``41°``."""
    return text + unit if unit in ("", "°") else f"{text} {unit}"


#: Of smaller numbers one digit is enough where three are shown.
LEAST_BRIEF = 1e-3


def format_brief(value: float | None, unit: str = "") -> str:
    """Write `value` in three digits with its unit, without an error.

    >>> format_brief(0.46731), format_brief(-3.97e-5), format_brief(None)
    ('0.467', '−4e-05', 'not defined')
    """
    if value is None:
        return "not defined"
    return join_unit(format_number(value, 3 if abs(value) >= LEAST_BRIEF else 1), unit)


def format_signed(value: float, digits: int = 4) -> str:
    """Return `value` with its sign, also if it is positive."""
    return f"{'+' if value > 0 else ''}{format_number(value, digits)}"


class NumberLike:
    """Base of classes with a `value`, or a reason why it is `undefined`."""

    __slots__ = ()
    value: float | None
    undefined: str

    def __float__(self) -> float:
        """Return the value; ValueError with the reason if it is undefined."""
        if self.value is None:
            raise ValueError(
                f"{getattr(self, 'name', 'the value')} is not defined: {self.undefined}"
            )
        return self.value

    def __bool__(self) -> bool:
        """Tell whether the value is not 0; ValueError if it is undefined."""
        return bool(float(self))

    def __int__(self) -> int:
        return int(float(self))

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self), digits)

    def __lt__(self, other: NumberLike | float) -> bool:
        return self._ordered(operator.lt, other)

    def __le__(self, other: NumberLike | float) -> bool:
        return self._ordered(operator.le, other)

    def __gt__(self, other: NumberLike | float) -> bool:
        return self._ordered(operator.gt, other)

    def __ge__(self, other: NumberLike | float) -> bool:
        return self._ordered(operator.ge, other)

    def _ordered(self, compare: Callable[[float, float], bool], other: NumberLike | float) -> bool:
        if not isinstance(other, NumberLike | int | float):
            return NotImplemented
        return compare(float(self), float(other))


#: Standard errors on either side of an estimate in a 95% interval.
Z_95 = 1.96


def student_z(z: float, freedom: int | None) -> float:
    """Return how many standard errors cover as much of Student's t as `z` of a normal law.

    `freedom` is the degrees of freedom; None means infinitely many.

    >>> round(student_z(1.959964, 9), 4), student_z(1.96, None)
    (2.2622, 1.96)
    """
    if freedom is None or z == 0.0:
        return z
    if freedom < 1:
        return math.inf
    from scipy.special import ndtr, stdtrit

    return float(-stdtrit(freedom, ndtr(-z)))

"""Conversion and order of values that act as numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable


class NumberLike:
    """Base of classes with a `value`, or a reason why it is `undefined`."""

    __slots__ = ()
    value: float | None
    undefined: str

    def __float__(self) -> float:
        """The value; ValueError with the reason if it is undefined."""
        if self.value is None:
            raise ValueError(
                f"{getattr(self, 'name', 'the value')} is not defined: {self.undefined}"
            )
        return self.value

    def __bool__(self) -> bool:
        """Whether the value is not 0; ValueError if it is undefined."""
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

"""Means over seeds, and differences between methods trained with the same seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from embgeo.core.values import format_number

#: Where the whole 95% interval of a difference lies; "open" where it holds the limit.
Direction = Literal["lower", "higher", "open"]

#: Level of the intervals that decide.
CONFIDENCE = 0.95
#: Fewer seeds have no interval: of two, it would reach 12.7 standard errors to either side.
LEAST_SEEDS = 3


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation over seeds."""

    mean: float
    #: Standard deviation over seeds (of a sample: n − 1); None for one seed.
    deviation: float | None
    n: int

    @property
    def parts(self) -> tuple[str, str]:
        """Mean and deviation as text, to the same decimal; the deviation may be empty.

        Two significant digits of the deviation decide, and at most four of the mean.
        """
        if self.deviation is None:
            return format_number(self.mean), ""
        decimals = min(last_decimal(self.mean, 4), last_decimal(self.deviation, 2))
        rounded = round(self.deviation, decimals)
        if self.deviation == 0.0 or rounded == 0.0:
            return format_number(self.mean), format_number(self.deviation, 1)
        return fixed(self.mean, decimals), fixed(self.deviation, decimals)

    @property
    def text(self) -> str:
        """``"312.4 ± 1.2"``."""
        mean, deviation = self.parts
        return f"{mean} ± {deviation}" if deviation else mean


def last_decimal(value: float, digits: int) -> int:
    """Return the decimal place of the last significant digit; negative before the point."""
    return digits - 1 - math.floor(math.log10(abs(value))) if value else 15


def fixed(value: float, decimals: int) -> str:
    """Round to a decimal place, with commas between thousands."""
    return f"{round(value, decimals):,.{max(decimals, 0)}f}".replace("-", "−")


def spread(values: Sequence[float]) -> Spread | None:
    """Return the mean and standard deviation; None without values."""
    if not values:
        return None
    array = np.asarray(values, dtype=np.float64)
    deviation = float(array.std(ddof=1)) if len(array) > 1 else None
    return Spread(float(array.mean()), deviation, len(array))


@dataclass(frozen=True, slots=True)
class Paired:
    """Difference of two methods over the seeds that both have."""

    #: Means over these seeds.
    before: float
    after: float
    #: Mean of after − before; of their logarithms if `relative`.
    difference: float
    #: Standard error of the difference; None for one seed.
    standard_error: float | None
    #: 95% interval by Student's t with n − 1 degrees of freedom; None below `LEAST_SEEDS`.
    interval: tuple[float, float] | None
    seeds: int
    #: Whether differences are taken of logarithms.
    relative: bool

    def side(self, limit: float = 0.0) -> Direction:
        """Return where the interval lies in relation to a limit; "open" without an interval."""
        low, high = self.interval or (limit, limit)
        return "lower" if high < limit else "higher" if low > limit else "open"

    @property
    def change(self) -> str:
        """The difference as text, in percent if `relative`."""
        return percent_text(self.difference) if self.relative else signed(self.difference)

    @property
    def text(self) -> str:
        """``"−1.3% (95%: −1.9 to −0.7)"``."""
        unit = "%" if self.relative else ""
        values = [self.difference, *(self.interval or ())]
        first, *ends = (signed(in_percent(v) if self.relative else v) for v in values)
        return f"{first}{unit} (95%: {ends[0]} to {ends[1]})" if ends else f"{first}{unit}"


def paired(
    before: Mapping[int, float], after: Mapping[int, float], *, relative: bool = False
) -> Paired | None:
    """Return `after` − `before` over shared seeds; None without any.

    `relative`: take the differences of logarithms. None, then, if a value is not positive.
    """
    seeds = sorted(before.keys() & after.keys())
    old = np.array([before[seed] for seed in seeds], dtype=np.float64)
    new = np.array([after[seed] for seed in seeds], dtype=np.float64)
    if not seeds or (relative and not (np.all(old > 0) and np.all(new > 0))):
        return None
    steps = np.log(new) - np.log(old) if relative else new - old
    mean, n = float(steps.mean()), len(seeds)
    error = float(steps.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    interval = None
    if n >= LEAST_SEEDS and error is not None:
        reach = student(n - 1) * error
        interval = (mean - reach, mean + reach)
    return Paired(float(old.mean()), float(new.mean()), mean, error, interval, n, relative)


def take_percentiles(draws: npt.ArrayLike) -> tuple[float, float]:
    """Return the 95% interval of the draws of a bootstrap."""
    low, high = np.quantile(np.asarray(draws, dtype=np.float64), [0.025, 0.975])
    return float(low), float(high)


def student(freedom: int) -> float:
    """Return the half width of a two-sided 95% interval in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2.0))


def in_percent(log_ratio: float) -> float:
    """Convert a difference of logarithms to percent: −0.0101 to −1.0."""
    return 100.0 * math.expm1(log_ratio)


def percent_text(log_ratio: float) -> str:
    """Return ``"−1.4%"``, ``"−0.04%"``; 0 only if exact."""
    change = in_percent(log_ratio)
    if change == 0.0:
        return "0%"
    decimals = 1 if abs(change) >= 1.0 else max(2, last_decimal(change, 1))
    return f"{change:+,.{decimals}f}%".replace("-", "−")


def signed(value: float) -> str:
    """Write three digits with the sign; unlike `format_number`, without a special form near 1."""
    rounded = f"{abs(value):.2f}"
    near = rounded == "1.00" and abs(value) != 1.0
    text = rounded if near else format_number(abs(value), 3)
    if value < 0:
        return f"−{text}"
    return f"+{text}" if value else text

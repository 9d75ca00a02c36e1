"""Means over seeds, and differences between groups of runs, such as methods with the same seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from embgeo.core.values import format_number
from embgeo.numerics.scores import two_sided

#: Where the whole 95% interval of a difference lies; "open" where it holds the limit.
Direction = Literal["lower", "higher", "open"]

#: Level of the intervals that decide.
CONFIDENCE = 0.95
#: Power of the minimum detectable effect.
POWER = 0.8
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
        if round(self.deviation, decimals) == 0.0:
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
class SeedDifference:
    """Difference of two groups of runs, over the seeds that both have or without such pairs."""

    #: Means over these seeds.
    before: float
    after: float
    #: Mean of after − before; of their logarithms if `relative`.
    difference: float
    #: Standard error of the difference; None for one seed.
    standard_error: float | None
    #: 95% interval by Student's t; None below `LEAST_SEEDS`.
    interval: tuple[float, float] | None
    #: Seeds that both have; of groups without pairs, those of the smaller one.
    seeds: int
    #: Whether differences are taken of logarithms.
    relative: bool
    #: Degrees of freedom: n − 1, or by Welch and Satterthwaite without pairs.
    freedom: float

    def side(self, limit: float = 0.0) -> Direction:
        """Return where the interval lies in relation to a limit; "open" without an interval."""
        low, high = self.interval or (limit, limit)
        return "lower" if high < limit else "higher" if low > limit else "open"

    def p_value(self, limit: float = 0.0) -> float | None:
        """Return the two-sided p of Student's t for a difference at the limit."""
        if self.interval is None or self.standard_error is None:
            return None
        distance = abs(self.difference - limit)
        if self.standard_error == 0.0:
            return two_sided(math.inf if distance else 0.0, self.freedom)
        return two_sided(distance / self.standard_error, self.freedom)

    @property
    def detectable(self) -> float | None:
        """The minimum detectable effect: the sum of two quantiles times the error (Bloom 1995).

        The quantiles are those of a level of 5% (two-sided) and a power of 80%.
        """
        if self.interval is None or self.standard_error is None:
            return None
        from scipy.special import stdtrit

        return (student(self.freedom) + float(stdtrit(self.freedom, POWER))) * self.standard_error

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


def compare_seeds(
    before: Mapping[int, float],
    after: Mapping[int, float],
    *,
    relative: bool = False,
    paired: bool = True,
) -> SeedDifference | None:
    """Return `after` − `before` over the seeds that both have; None without any.

    `relative`: take the differences of logarithms. None, then, if a value is not positive.
    `paired`: whether a seed means the same start in both. If not, all runs count, and the interval
    is that of Welch's t.
    """
    if paired:
        seeds = sorted(before.keys() & after.keys())
        sides = [[one[seed] for seed in seeds] for one in (before, after)]
    else:
        sides = [list(before.values()), list(after.values())]
    old, new = (np.array(values, dtype=np.float64) for values in sides)
    n = min(len(old), len(new))
    if not n or (relative and not (np.all(old > 0) and np.all(new > 0))):
        return None
    a, b = (np.log(old), np.log(new)) if relative else (old, new)
    error, freedom = None, float(n - 1)
    if paired:
        steps = b - a
        mean = float(steps.mean())
        error = float(steps.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    else:
        mean = float(b.mean() - a.mean())
        if n > 1:
            parts = [float(values.var(ddof=1)) / len(values) for values in (a, b)]
            error = math.sqrt(sum(parts))
            if error:
                shares = zip(parts, (len(a), len(b)), strict=True)
                freedom = sum(parts) ** 2 / sum(part**2 / (size - 1) for part, size in shares)
    interval = None
    if n >= LEAST_SEEDS and error is not None:
        reach = student(freedom) * error
        interval = (mean - reach, mean + reach)
    means = float(old.mean()), float(new.mean())
    return SeedDifference(*means, mean, error, interval, n, relative, freedom)


def take_percentiles(draws: npt.ArrayLike) -> tuple[float, float]:
    """Return the 95% interval of the draws of a bootstrap."""
    low, high = np.quantile(np.asarray(draws, dtype=np.float64), [0.025, 0.975])
    return float(low), float(high)


def student(freedom: float) -> float:
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

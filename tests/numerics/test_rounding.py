"""Rounding to narrow types against a search through all their numbers, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np

from embgeo.row_repair.methods import round_to

NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def finite_numbers(dtype: np.dtype) -> np.ndarray:
    """All finite numbers of a type, ascending, each once (of both zeros the positive one)."""
    patterns = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)
    with np.errstate(invalid="ignore"):
        wide = patterns.astype(np.float64)
    return np.unique(wide[np.isfinite(wide)]) + 0.0


def slow_round(value: float, numbers: np.ndarray, dtype: np.dtype) -> float:
    """The nearest number; of two that are as near that with the last bit 0."""
    at = int(np.clip(np.searchsorted(numbers, value), 1, len(numbers) - 1))
    low, high = numbers[at - 1], numbers[at]
    below, above = Fraction(value) - Fraction(low), Fraction(high) - Fraction(value)
    if below != above:
        return float(low if below < above else high)
    last = np.array([low]).astype(dtype).view(f"u{dtype.itemsize}")[0] & 1
    return float(high if last else low)


def test_rounds_to_nearest_even() -> None:
    for name in NARROW:
        dtype = dtype_of(name)
        numbers = finite_numbers(dtype)
        generator = np.random.default_rng(0)
        at = generator.integers(0, len(numbers) - 1, 300)
        halves = (numbers[at] + numbers[at + 1]) / 2
        # Next to a tie by less than float32 holds: rounded twice, these would go astray.
        values = np.concatenate(
            [halves, np.nextafter(halves, np.inf), np.nextafter(halves, -np.inf)]
        )
        inside = values[np.abs(values) < numbers[-1]]
        want = [slow_round(float(value), numbers, dtype) for value in inside]
        assert np.array_equal(round_to(inside, dtype).astype(np.float64), want)


def test_near_ties_need_one_rounding() -> None:
    value = np.array([1 + 2.0**-8 + 2.0**-40])
    assert value.astype(ml_dtypes.bfloat16)[0] == 1
    assert round_to(value, dtype_of("bfloat16"))[0] == 1 + 2.0**-7


def test_numbers_of_the_type_stay() -> None:
    for name in ("float32", "float64", *NARROW):
        values = np.array([0.0, 1.0, -1.5, 2.0**-5])
        assert np.array_equal(round_to(values, dtype_of(name)).astype(np.float64), values)


def test_too_large_is_not_finite() -> None:
    for name in NARROW:
        assert not np.isfinite(round_to(np.array([1e39]), dtype_of(name)).astype(float)).any()

"""How numbers are shown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from embgeo.core.values import Quantity, format_number
from tests.support.matrices import analysis
from tests.support.refusals import refusal

#: Rounding up to two digits must not lead out of the floats.
finite = st.floats(min_value=-1e308, max_value=1e308)
QUANTITY = Quantity("family.name", "Title", "Meaning.", "formula", "source")


# Numbers in print -------------------------------------------------------------------------------


def read_back(text):
    """The number that a reader takes from the text."""
    plain = text.replace("−", "-").replace(",", "").rstrip("°")
    for sign in (" - ", " + "):
        if sign in plain:
            whole, _, gap = plain.partition(sign)
            return float(whole) + float(sign.strip() + gap)
    return float(plain)


@given(finite)
@example(0.99999999)
@example(1.0000001)
@example(-0.9999999999999999)
@example(1.0000000000000002)
@example(1 + 2e-12)
@example(5e-324)
@example(-0.0)
@example(999.99999)
@example(9999.9999)
@example(999999.99)
@example(1e15 - 0.125)
@example(-1e308)
@pytest.mark.slow
def test_printed_numbers_are_near_and_never_falsely_exact(value):
    for digits in (2, 4, 7):
        text = format_number(value, digits)
        for whole in (0.0, 1.0, -1.0):
            if text.replace("−", "-") in (f"{whole:g}", f"{whole:.1f}", f"{whole:.2f}"):
                assert value == whole or 0 < abs(value - whole) < 1e-12 * abs(whole)
        assert read_back(text) == pytest.approx(value, rel=10.0 ** (1 - digits))


@given(st.floats(min_value=0.9, max_value=1.1) | st.floats(min_value=-1.1, max_value=-0.9))
@pytest.mark.slow
def test_distance_from_one_is_printed(value):
    text = format_number(value)
    if 1e-12 <= abs(abs(value) - 1) < 1e-5:
        gap = float(text.split()[-1])
        assert gap == pytest.approx(abs(abs(value) - 1), rel=0.06)


@given(st.integers(-(10**14), 10**14))
def test_whole_numbers_are_printed_whole(number):
    text = format_number(float(number))
    assert text.replace("−", "-") == f"{number:,}"


def test_printed_numbers():
    for value, text in (
        (0.0, "0"),
        (1.0, "1"),
        (0.99999999, "1 − 1e-08"),
        (1 + 1e-9, "1 + 1e-09"),
        (-0.9999999, "−1 + 1e-07"),
        (12345678.0, "12,345,678"),
        (1234.5678, "1,235"),
        (-0.25, "−0.25"),
        (0.00012345, "0.0001234"),
        (123.456, "123.5"),
    ):
        assert format_number(value) == text


@pytest.mark.slow
def test_every_printed_scalar_can_be_read_back():
    for name in ("gaussian", "narrow cone, long", "dirty", "wide"):
        for scalar in analysis(name).scalars:
            if scalar.value is not None:
                number = scalar.text.partition(" ±")[0].removesuffix(f" {scalar.quantity.unit}")
                assert read_back(number) == pytest.approx(scalar.value, rel=1e-3), scalar.name


# Scalars ----------------------------------------------------------------------------------------


def test_scalar_text():
    angle = Quantity("cosine.cone", "Cone", "", unit="°")
    assert angle.measured(12.3456).text == "12.35°"
    sampled = angle.measured(12.3456, standard_error=0.0123, error_kind="monte_carlo")
    assert sampled.text == "12.35° ± 0.012 (sampling)"
    assert angle.undefined("a single row").text == "not defined: a single row"
    assert angle.measured(1.0, reference=0.5).reference_text == "0.5"
    assert angle.measured(1.0).reference_text == ""
    assert (angle.family, angle.measured(1.0).name) == ("cosine", "cosine.cone")


def test_errors_have_kinds():
    exact = QUANTITY.measured(1.5, population_error=0.25)
    assert (exact.known, exact.standard_error, exact.errors) == (
        "exact",
        None,
        {"population": 0.25},
    )
    assert exact.text == exact.errors_text.join(["1.5 ", ""]) == "1.5 ± 0.25 (tokens)"
    both = QUANTITY.measured(
        1.5, standard_error=0.1, error_kind="monte_carlo", population_error=0.25
    )
    assert both.text == "1.5 ± 0.1 (sampling)"
    assert both.errors_text == "± 0.1 (sampling); ± 0.25 (tokens)"
    tokens = QUANTITY.measured(1.5, standard_error=0.1, error_kind="population")
    assert tokens.population_error == tokens.standard_error == 0.1
    assert QUANTITY.measured(1.5, population_error=math.nan).errors == {}


def test_a_number_that_is_none_becomes_undefined():
    for value in (math.nan, math.inf, -math.inf, np.float64("nan")):
        scalar = QUANTITY.measured(value, standard_error=0.1)
        assert scalar.value is None
        assert scalar.undefined
        assert QUANTITY.measured(1.0, standard_error=value).standard_error is None


def test_numpy_numbers_become_plain_ones():
    scalar = QUANTITY.measured(
        np.float32(0.5), standard_error=np.float64(0.1), reference=np.float64(2)
    )
    assert {type(x) for x in (scalar.value, scalar.standard_error, scalar.reference)} == {float}


def test_a_scalar_behaves_like_its_number() -> None:
    quantity = Quantity("family.name", "Title", "Meaning.", unit="°")
    one = quantity.measured(0.25, standard_error=0.01, error_kind="monte_carlo", sample="9 pairs")
    assert (float(one), one == 0.25, one != 0.5) == (0.25, True, True)
    assert one < 0.5 <= quantity.measured(0.5)
    assert one >= 0.25 > quantity.measured(0.1)
    assert sorted([quantity.measured(2), one])[0] is one
    assert (f"{one:.3f}", f"{one}", str(one)) == ("0.250", *["0.25° ± 0.01 (sampling)"] * 2)
    assert repr(one) == "<Scalar family.name: 0.25° ± 0.01 (sampling)>"
    assert one == quantity.measured(
        0.25, standard_error=0.01, error_kind="monte_carlo", sample="9 pairs"
    )
    assert one != quantity.measured(0.25)
    assert {one: 1}[0.25] == 1  # type: ignore[index]
    assert (one == "0.25") is False
    assert one
    assert not quantity.measured(0.0)
    with pytest.raises(TypeError):
        assert one < "1"  # type: ignore[operator]


def test_a_scalar_without_a_value_says_so() -> None:
    none = Quantity("family.name", "Title", "Meaning.").undefined("too few rows")
    assert none != 0.0
    for use in (float, bool, lambda scalar: scalar < 1.0, lambda scalar: f"{scalar:.2f}"):
        with refusal(ValueError):
            use(none)
    assert f"{none}" == "not defined: too few rows"


def test_how_a_number_is_known() -> None:
    for facts, known, kind in (
        ({}, "exact", None),
        ({"sample": "9 pairs"}, "sampled", None),
        ({"standard_error": 0.1, "error_kind": "population"}, "sampled", "population"),
        ({"standard_error": math.inf, "error_kind": "population"}, "exact", None),
        ({"sample": "9 pairs", "known": "at_least"}, "at_least", None),
    ):
        scalar = Quantity("family.name", "Title", "Meaning.").measured(1.0, **facts)
        assert (scalar.known, scalar.error_kind, scalar.reference_kind) == (known, kind, "none")

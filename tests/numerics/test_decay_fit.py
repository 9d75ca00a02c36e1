"""Decays fitted to spectra, beside other searches; and bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from embgeo.numerics import decay_fit
from embgeo.numerics.decay_fit import fit_exponential, fit_polynomial

factor, fit = decay_fit._factor, decay_fit._minimize

K = np.arange(1.0, 65.0)


def bump(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    phi = np.exp(-((K - p[0]) ** 2) / p[1] ** 2)
    return phi, np.stack(
        [phi * 2 * (K - p[0]) / p[1] ** 2, phi * 2 * (K - p[0]) ** 2 / p[1] ** 3], 1
    )


def test_the_curve_itself_is_found() -> None:
    y = 3.0 * bump(np.array([20.0, 7.0]))[0]
    p, loss = fit(bump, y, np.array([25.0, 5.0]), np.array([0.0, 1.0]), np.array([60.0, 30.0]))
    np.testing.assert_allclose(p, [20.0, 7.0], rtol=1e-9)
    assert loss < 1e-18
    assert factor(bump(p)[0], y)[0] == pytest.approx(3.0, rel=1e-9)


@pytest.mark.slow
def test_a_bound_holds_and_the_rest_is_at_its_best() -> None:
    y = 3.0 * bump(np.array([20.0, 7.0]))[0]
    p, _ = fit(bump, y, np.array([30.0, 5.0]), np.array([24.0, 1.0]), np.array([60.0, 30.0]))
    assert p[0] == 24.0
    widths = np.linspace(1.0, 30.0, 29_001)
    losses = [factor(bump(np.array([24.0, w]))[0], y)[1] for w in widths]
    assert p[1] == pytest.approx(widths[int(np.argmin(losses))], abs=1e-3)


def test_nothing_to_fit() -> None:
    p, loss = fit(bump, np.zeros(64), np.array([5.0, 2.0]), np.zeros(2), np.full(2, 60.0))
    assert loss == 0.0
    assert np.isfinite(p).all()


SPECTRA = {
    "power": K**-0.35,
    "cone": np.r_[1.0, 1e-6 * np.ones(63)],
    "step": np.where(K < 32, 1.0, 1e-8),
    "one direction": np.r_[1.0, np.zeros(63)],
    "flat": np.ones(64),
    "noise": np.sort(np.random.default_rng(5).random(64))[::-1],
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.slow
def test_no_other_start_of_another_search_ends_lower(name: str) -> None:
    y = SPECTRA[name] / SPECTRA[name][0]
    exponential = fit_exponential(y)
    found = np.square(exponential.curve - y).sum()
    assert found == pytest.approx(64 * exponential.residual**2)

    def rest(p: np.ndarray) -> np.ndarray:
        phi = np.exp(-np.minimum(np.exp(p[0]) * np.expm1(np.exp(p[1]) * np.log(K)), 700.0))
        return np.asarray(factor(phi, y)[0] * phi - y)

    box = (np.log([1e-260, 1e-3]), np.log([20.0, 20.0]))
    for start in np.random.default_rng(6).uniform([-8.0, -3.0], [2.0, 2.0], (12, 2)):
        other = least_squares(rest, start, bounds=box, xtol=1e-12, ftol=1e-12)
        assert found <= 2.0 * other.cost * (1 + 1e-6) + 1e-12

    polynomial = fit_polynomial(y)
    found = np.square(polynomial.c1 * K**-polynomial.gamma - y).sum()
    for other_gamma in np.linspace(0.0, 60.0, 6001):
        assert found <= factor(K**-other_gamma, y)[1] * (1 + 1e-6) + 1e-20


def test_a_fit_at_its_bound_says_so() -> None:
    for y, bound in (
        (K**-0.35, "c₂ = 20"),
        (SPECTRA["cone"], "c₂ = 20"),
        (SPECTRA["step"], "γ = 20"),
        (np.exp(-0.3 * K**0.8), ""),
        (2.0 * np.exp(-1e-4 * K**2.5), ""),
    ):
        found = fit_exponential(y)
        assert found.bound == bound
        if not bound:
            assert found.c2 is not None
            fitted = found.c1 * np.exp(-found.c2 * K**found.gamma)
            np.testing.assert_allclose(fitted, y, rtol=1e-6)


def test_the_polynomial_fit_has_a_bound_too() -> None:
    assert fit_polynomial(SPECTRA["one direction"]).bound == "γ = 60"
    assert fit_polynomial(SPECTRA["cone"]).bound == ""
    assert fit_polynomial(SPECTRA["flat"]).bound == ""

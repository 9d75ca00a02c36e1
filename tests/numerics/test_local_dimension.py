"""Dimensions of points whose dimension is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import KDTree

from embgeo.numerics.local_dimension import compute_inverse_dimensions, fit_two_nn
from tests.support.matrices import rng


def distances(points, k):
    return KDTree(points).query(points, k + 1)[0][:, 1:]


@pytest.mark.parametrize("d", [1, 2, 5])
def test_points_in_a_box_have_its_dimension(d):
    """Little of the box is near its border, which lowers the dimension."""
    near = distances(rng(950).random((2000, d)), 20)
    assert fit_two_nn(np.log(near[:, 1] / near[:, 0])) == pytest.approx(d, rel=0.15)
    assert 1.0 / compute_inverse_dimensions(near).mean() == pytest.approx(d, rel=0.15)


def test_outliers_do_not_move_the_trimmed_form():
    near = distances(rng(951).random((1000, 3)), 2)
    ratios = np.log(near[:, 1] / near[:, 0])
    spoiled = np.concatenate([ratios, np.full(20, 10.0)])
    assert fit_two_nn(spoiled) == pytest.approx(fit_two_nn(ratios), rel=0.05)
    assert len(spoiled) / spoiled.sum() < 0.7 * len(ratios) / ratios.sum()


def test_rings_have_one_dimension_at_every_radius():
    angle = 2 * np.pi * (np.arange(500) + rng(952).random(500) * 0.9) / 500
    near = distances(np.column_stack([np.cos(angle), np.sin(angle)]), 20)
    assert 1.0 / compute_inverse_dimensions(near).mean() == pytest.approx(1.0, rel=0.15)

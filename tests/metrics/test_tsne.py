"""A further plane by t-SNE: the places of scikit-learn, of rows of all frequencies."""

import numpy as np
import pytest

import embgeo
from embgeo.core.matrix import Frequency, Matrix
from embgeo.metrics import projection
from embgeo.report.analysis import render
from embgeo.report.payload import build
from tests.support.outlined import outline_figures

N, D, PLACED = 90, 5, 60


def make_matrix() -> Matrix:
    rows = np.random.default_rng(8).standard_normal((N, D)) + 0.3
    counts = np.random.default_rng(9).permutation(np.arange(1.0, N + 1.0))
    return Matrix(rows, frequency=Frequency("counts", counts, "made"))


@pytest.fixture(scope="module")
def analysis() -> embgeo.Analysis:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "MOST_PLACED", PLACED)
        return embgeo.analyze(
            make_matrix(), plane="tsne", seed=3, sections=["projection"], reference=False
        )


def test_places_are_those_of_scikit_learn(analysis: embgeo.Analysis) -> None:
    from sklearn.manifold import TSNE

    points = analysis["projection.tsne"]
    placed = np.flatnonzero(np.isfinite(points.xy).all(axis=1))
    assert len(placed) == PLACED
    assert points.note == f"{PLACED} of {N} rows"
    rows = np.asarray(make_matrix().data)[placed]
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    tsne = TSNE(init="pca", perplexity=(PLACED - 1) / 3.0, random_state=3, n_jobs=1)
    assert np.allclose(points.xy[placed], tsne.fit_transform(unit), rtol=1e-4, atol=1e-3)


def test_placed_rows_are_spread_over_frequencies(analysis: embgeo.Analysis) -> None:
    xy, counts = analysis["projection.tsne"].xy, analysis.counts
    assert counts is not None
    placed = np.sort(counts[np.isfinite(xy).all(axis=1)])
    assert np.abs(placed - np.linspace(1.0, N, PLACED)).max() <= N / PLACED


def test_the_page_holds_the_plane_and_says_what_it_does_not_mean(
    analysis: embgeo.Analysis,
) -> None:
    payload = build(analysis)
    assert payload is not None
    view = payload.meta["views"][-1]
    assert view["key"] == "projection.tsne"
    assert view["labels"] == ["t-SNE 1", "t-SNE 2"]
    assert "distances between groups mean nothing" in view["caption"]
    assert np.isfinite(view["box"]).all()
    with outline_figures():
        assert "t-SNE" in render(analysis)


def test_without_the_option_there_is_no_such_plane() -> None:
    found = embgeo.analyze(make_matrix(), sections=["projection"], reference=False)
    assert "projection.tsne" not in found

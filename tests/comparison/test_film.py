"""Frames of a film: turned planes, common bins, verdicts, and what has no film."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.comparison.comparison import Comparison, load_comparison
from embgeo.comparison.film import align, bin_jointly, make_film
from embgeo.core.quantities import cosine
from embgeo.core.values import Histogram
from embgeo.diagnosis.verdict import judge
from tests.support.sample_comparison import sample_comparison


def turn(angle: float, mirror: bool = False) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]]) @ np.diag([1.0, -1.0 if mirror else 1.0])


@pytest.mark.parametrize("mirror", [False, True])
def test_turned_frames_fit_the_last(mirror: bool) -> None:
    last = np.random.default_rng(0).standard_normal((40, 2)) + np.array([2.0, 0.5])
    frames = align([last @ turn(1.1, mirror), 0.5 * last @ turn(-2.0), last])
    assert np.allclose(frames[0], last)
    # A scale is never changed.
    assert np.allclose(frames[1], 0.5 * last)
    assert np.array_equal(frames[2], last)


def each_on_its_plane() -> Comparison:
    comparison = sample_comparison(members=4, track=True)
    assert comparison.track is not None
    return replace(comparison, track=replace(comparison.track, places=()))


def test_the_last_frame_is_the_map_of_the_last_checkpoint() -> None:
    comparison = each_on_its_plane()
    film = make_film(comparison)
    assert film is not None
    last = comparison.members[-1].analysis
    assert np.array_equal(film.places[-1], last.points[0].xy[film.rows[-1]])
    assert np.allclose(film.means[-1], last.points[0].xy[film.rows[-1]].mean(axis=0))
    assert film.states == tuple(judge(m.analysis).state for m in comparison.members)
    assert film.steps == (500.0, 1000.0, 1500.0, 2000.0)
    for frame, place in zip(film.places, film.members, strict=True):
        xy = comparison.members[place].analysis.points[0].xy[film.rows[place]]
        assert np.allclose(np.linalg.norm(frame, axis=1), np.linalg.norm(xy, axis=1))


def test_a_plane_turned_where_places_change_much_more_than_rows() -> None:
    film = make_film(each_on_its_plane())
    assert film is not None
    before, after = film.places[1], film.places[2]
    assert film.moves[1] == pytest.approx(np.linalg.norm(after - before) / np.linalg.norm(before))
    changes = (film.moves[0] / 2.99, film.moves[1] / 3.01, None)
    assert replace(film, changes=changes).list_turns() == [False, True, False]


def test_the_change_of_rows_is_that_of_successive_checkpoints() -> None:
    comparison = sample_comparison(members=4, track=True)
    film = make_film(comparison)
    assert film is not None
    pairs = [comparison.pair(k, k + 1) for k in range(3)]
    known = [None if pair is None else pair["compare.relative_change"].value for pair in pairs]
    assert list(film.changes) == known
    assert known[0] is not None


def test_densities_share_bins_and_sum_to_one() -> None:
    def make(low: float, high: float, counts: list[float]) -> Histogram:
        edges = np.linspace(low, high, len(counts) + 1)
        return Histogram(cosine.HISTOGRAM, edges, np.array(counts), "cosine", "pairs")

    edges, densities = bin_jointly([make(0.0, 0.5, [3.0, 1.0]), make(-1.0, 1.0, [1.0, 1.0])])
    assert (edges[0], edges[-1]) == (-1.0, 1.0)
    assert np.allclose((densities * np.diff(edges)).sum(axis=1), 1.0)
    assert np.allclose(densities[1], 0.5)
    inside = (edges[:-1] > 0.0) & (edges[1:] < 0.25)
    assert np.allclose(densities[0][inside], 0.75 / 0.25)
    assert bin_jointly([None, make(0.0, 1.0, [1.0])])[0].size == 0


def test_what_has_no_film() -> None:
    assert make_film(sample_comparison(members=4)) is None
    track = sample_comparison(members=4, track=True)
    bare = replace(track.members[0], analysis=replace(track.members[0].analysis, points=()))
    assert make_film(replace(track, members=(bare, *track.members[1:]))) is None


def test_a_checkpoint_that_repeats_another_is_no_frame() -> None:
    comparison = sample_comparison(members=4, track=True)
    assert comparison.track is not None
    track = replace(comparison.track, same_as=(None, None, 1, None))
    film = make_film(replace(comparison, track=track))
    assert film is not None
    assert film.members == (0, 1, 3)


def test_checkpoints_share_the_plane_of_the_last(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    matrices = [rng.standard_normal((60, 5)) + k * np.arange(5.0) for k in range(3)]
    paths = []
    for k, rows in enumerate(matrices):
        rows[7] = np.nan  # left out everywhere
        paths.append(tmp_path / f"step-{k}.npy")
        np.save(paths[-1], rows)
    comparison = embgeo.diff(*paths, track=True, sections=["projection"])
    comparison.save(tmp_path / "saved")
    for one in (comparison, load_comparison(tmp_path / "saved")):
        film = make_film(one)
        assert film is not None
        assert film.shared
        kept = [np.delete(rows, 7, axis=0) for rows in matrices]
        top = np.linalg.svd(kept[-1])[2][:2].T
        own = one.members[-1].analysis.points[0].xy
        assert np.array_equal(film.places[-1], own)
        expected = align([*(rows @ top * np.sign((kept[-1] @ top)[0] * own[0]) for rows in kept)])
        assert np.abs(film.places - expected).max() < 1e-5
        assert not any(replace(film, changes=(1e-9, 1e-9)).list_turns())


def test_another_width_or_no_matrix_is_a_plane_of_its_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    paths = [tmp_path / f"step-{k}.npy" for k in range(3)]
    for path, d in zip(paths, (5, 4, 5), strict=True):
        np.save(path, rng.standard_normal((60, d)))
    film = make_film(embgeo.diff(*paths, track=True, sections=["projection"]))
    assert film is not None
    assert not film.shared
    assert film.list_turns() == [False, False]  # unknown changes of rows name no turn
    comparison = embgeo.diff(paths[0], paths[2], track=True, sections=["projection"])
    assert comparison.track is not None
    assert len(comparison.track.places) == 1
    cut = replace(comparison.track, places=())
    film = make_film(replace(comparison, track=cut))
    assert film is not None
    assert not film.shared

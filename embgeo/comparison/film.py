"""Frames of a track: the same tokens at every checkpoint, in one plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.track import Places
from embgeo.core.arrays import FloatArray, IntArray, SingleArray
from embgeo.core.quantities import compare, cosine, projection
from embgeo.core.values import Histogram
from embgeo.diagnosis.thresholds import State
from embgeo.diagnosis.verdict import judge

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix

#: Bins of the cosines, the same in all frames.
BINS = 60
#: A map that changes by more than this multiple of the change of the rows has turned its plane.
TURNED = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Film:
    """What a film of a track shows, frame by frame."""

    #: Places of the shown checkpoints.
    members: tuple[int, ...]
    steps: tuple[float, ...]
    #: For each frame, positions of the shared tokens in its analysis; shape (n,).
    rows: tuple[IntArray, ...]
    #: In the plane of the top two singular directions of the last checkpoint, or of each its own if
    #: `shared` is false; turned and mirrored about the origin so that its tokens fit those of the
    #: next frame best. The last frame is as it is; shape (k, n, 2).
    places: FloatArray
    #: How far tokens move from each frame to the next: ‖Y − X‖ / ‖X‖ of their places. Part of it
    #: may be a change of the plane, if that is not shared; shape (k - 1,).
    moves: FloatArray
    #: The same of their rows in all dimensions; None if it was not measured.
    changes: tuple[float | None, ...]
    #: The mean row in each frame, over the shared tokens; shape (k, 2).
    means: FloatArray
    #: Bins of the cosines; empty if a checkpoint has no histogram; shape (b + 1,).
    edges: FloatArray
    #: Share of the pairs in each bin, divided by its width; shape (k, b).
    densities: FloatArray
    #: Of the geometry, by the verdict on each checkpoint.
    states: tuple[State, ...]
    #: Whether all frames have one plane.
    shared: bool = False

    def list_turns(self) -> list[bool]:
        """List the steps in which the plane turned, so that movement on the map means nothing."""
        return [
            not self.shared and change is not None and bool(move > TURNED * change)
            for move, change in zip(self.moves, self.changes, strict=True)
        ]


def make_film(comparison: Comparison) -> Film | None:
    """Make the film of a track, without its duplicates; None without two maps that share tokens."""
    track = comparison.track
    if track is None:
        return None
    planes = {
        at: plane
        for at in track.distinct
        if (plane := find_plane(comparison.members[at])) is not None
    }
    members = list(planes)
    if members[:1] != [0] or len(members) < 2:
        return None
    rows = share_rows(comparison, members)
    if not len(rows[0]):
        return None
    known = {found.member: found.xy for found in track.places}
    shared = members[-1] == track.distinct[-1] and all(place in known for place in members[:-1])
    frames = planes | known if shared else planes
    places = align([frames[at][rows[at]].astype(np.float64) for at in members])
    edges, densities = bin_jointly([find_cosines(comparison, place) for place in members])
    return Film(
        tuple(members),
        tuple(track.steps[place] for place in members),
        tuple(rows[place] for place in members),
        places,
        measure_moves(places),
        tuple(find_change(comparison, *both) for both in pairwise(members)),
        places.mean(axis=1),
        edges,
        densities,
        tuple(judge(comparison.members[place].analysis).state for place in members),
        shared,
    )


def share_plane(checkpoints: Sequence[tuple[int, Member, Matrix | None]]) -> tuple[Places, ...]:
    """Place the rows of checkpoints in the plane of the top two directions of the last one.

    Empty where a matrix is not available, has another width or more rows than an analysis lists.
    With X = USVᵀ, its top directions are V = XᵀXV/S², and XV are its places on the map.
    """
    _, last, goal = checkpoints[-1]
    plane = find_plane(last)
    squares = 0.0 if plane is None else np.square(plane).sum(axis=0)
    if plane is None or goal is None or not np.all(squares):
        return ()
    if any(
        matrix is None or matrix.d != goal.d or len(one.analysis.rows) != one.analysis.kept
        for _, one, matrix in checkpoints
    ):
        return ()
    directions, at = np.zeros((goal.d, 2)), 0
    for _, rows in goal.blocks(last.analysis.rows):
        directions += rows.T.astype(np.float64) @ plane[at : at + len(rows)]
        at += len(rows)
    directions /= squares
    return tuple(
        Places(place, project(matrix, one.analysis.rows, directions))
        for place, one, matrix in checkpoints[:-1]
        if matrix is not None
    )


def project(matrix: Matrix, rows: IntArray, directions: FloatArray) -> SingleArray:
    """Project these rows on directions, the columns of an array, block by block."""
    parts = [(block @ directions).astype(np.float32) for _, block in matrix.blocks(rows)]
    return np.concatenate(parts)


def find_plane(member: Member) -> FloatArray | None:
    """Find the coordinates of all listed rows in the plane of the top two directions."""
    points = member.analysis.points
    return next((p.xy for p in points if p.name == projection.SVD2.name), None)


def find_cosines(comparison: Comparison, place: int) -> Histogram | None:
    histograms = comparison.members[place].analysis.histograms
    return next((h for h in histograms if h.name == cosine.HISTOGRAM.name), None)


def share_rows(comparison: Comparison, places: Sequence[int]) -> dict[int, IntArray]:
    """Return the positions, in each of these members, of the tokens that all of them hold.

    The first of the places is the baseline, 0.
    """
    n = len(comparison.baseline.analysis.rows)
    where = {0: np.arange(n, dtype=np.int64)}
    for place in places[1:]:
        pair = comparison.pair(0, place)
        where[place] = np.full(n, -1, dtype=np.int64)
        if pair is not None:
            where[place][pair.matching.first] = pair.matching.second
    everywhere = np.all([where[place] >= 0 for place in places], axis=0)
    return {place: where[place][everywhere] for place in places}


def align(planes: Sequence[FloatArray]) -> FloatArray:
    """Turn and mirror each plane about the origin to fit the next; the last stays.

    Orthogonal Procrustes: the turn R that minimizes ‖XR − Y‖ is UVᵀ of the SVD of XᵀY.

    >>> x = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    >>> float(np.abs(align([x @ np.array([[0.0, 1.0], [1.0, 0.0]]), x])[0] - x).max()) < 1e-12
    True
    """
    turned = [planes[-1]]
    for plane in reversed(planes[:-1]):
        u, _, vt = np.linalg.svd(plane.T @ turned[0])
        turned.insert(0, plane @ (u @ vt))
    return np.stack(turned)


def measure_moves(places: FloatArray) -> FloatArray:
    """Return how far tokens move from each frame to the next, next to the size of the first.

    >>> measure_moves(np.array([[[3.0, 4.0]], [[3.0, 4.0]], [[0.0, 0.0]]]))
    array([0., 1.])
    """
    sizes = np.linalg.norm(places[:-1], axis=(1, 2))
    moves = np.linalg.norm(np.diff(places, axis=0), axis=(1, 2))
    return np.asarray(moves / np.where(sizes > 0, sizes, 1.0))


def find_change(comparison: Comparison, first: int, second: int) -> float | None:
    """Find how much the rows of one member differ from those of another."""
    pair = comparison.pair(first, second)
    found = None if pair is None else pair.scalar(compare.RELATIVE_CHANGE)
    return None if found is None else found.value


def bin_jointly(histograms: Sequence[Histogram | None]) -> tuple[FloatArray, FloatArray]:
    """Return the edges of common bins, and the density of each histogram in them.

    Inside a bin of its own a histogram counts as uniform.
    """
    known = [h for h in histograms if h is not None and h.counts.sum() > 0]
    if len(known) < len(histograms):
        return np.zeros(0), np.zeros((len(histograms), 0))
    low, high = min(h.edges[0] for h in known), max(h.edges[-1] for h in known)
    edges = np.linspace(float(low), float(high), BINS + 1)
    densities = []
    for h in known:
        below = np.concatenate([[0.0], np.cumsum(h.counts)]) / h.counts.sum()
        densities.append(np.diff(np.interp(edges, h.edges, below)) / np.diff(edges))
    return edges, np.stack(densities)

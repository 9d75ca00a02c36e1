"""A complete comparison of small made-up matrices, for tests of whatever reads a saved one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from embgeo.comparison.compare import compare
from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.track import ChangePoint, Track
from tests.support.sample_analysis import HOSTILE, sample, sample_matrix

NO_MATRIX = "matrix.npy, the checkpoint of the saved analysis, was not found"


@cache
def sample_comparison(
    *, members: int = 2, hostile: bool = False, track: bool = False, matrices: bool = True
) -> Comparison:
    """A baseline in a cone and other members closer to isotropy.

    Parameters
    ----------
    members : int
    hostile : bool
        Whether tokens and names try to break out of what they are printed in.
    track : bool
        Whether the members are checkpoints of one run.
    matrices : bool
        Whether what takes two matrices is there; otherwise it is undefined, with a reason.
    """
    names = ["baseline", *(f"other-{i}" for i in range(1, members))]
    if track:
        names = [f"ckpt-{500 * (i + 1):05d}" for i in range(members)]
    if hostile:
        names[1] = HOSTILE[0]
    inputs = []
    for i, name in enumerate(names):
        shape, is_lost = "isotropic" if i else "cone", not matrices and i > 0
        member = Member(
            name,
            f"runs/{name}.pt",
            sample(shape, hostile=hostile, seed=i),
            from_saved=is_lost,
            matrix_absent=NO_MATRIX if is_lost else "",
            step=500.0 * (i + 1) if track else None,
        )
        matrix = None if is_lost else sample_matrix(shape, hostile=hostile, seed=i)
        inputs.append((member, matrix))
    found = compare(
        inputs,
        steps_source="the number in the names" if track else "",
        command="embgeo diff baseline.pt other-1.pt",
        timing={"analysis of baseline": 0.1},
    )
    return found if found.track is None else replace(found, track=bend_i1(found.track))


def bend_i1(track: Track) -> Track:
    """The same with a bend, which takes more checkpoints than most tests need."""
    bend = ChangePoint(track.steps[1], 0.01, 0.001, 0.05)
    curves = (
        replace(c, change_point=bend) if c.quantity.name == "isotropy.i1" else c
        for c in track.curves
    )
    return replace(track, curves=tuple(curves))

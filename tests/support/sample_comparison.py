"""A complete comparison of small made-up analyses, for tests of whatever reads a saved one.

The numbers that take two matrices are made up; their names, facts and shapes are the real ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.matching import LeftOut, Matching
from embgeo.comparison.pair import Difference, Pair
from embgeo.comparison.track import ChangePoint, Curve, Track
from embgeo.core.quantities import compare as quantities
from embgeo.core.values import Cell, Scalar, Series, Table
from embgeo.result.analysis import Analysis
from tests.support.sample_analysis import HOSTILE, sample

NEIGHBORS = 10
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
    people = tuple(
        Member(
            name,
            f"runs/{name}.pt",
            sample("cone" if i == 0 else "isotropic", hostile=hostile, seed=i),
            from_saved=not matrices and i > 0,
            matrix_absent="" if matrices else NO_MATRIX,
            step=500.0 * (i + 1) if track else None,
        )
        for i, name in enumerate(names)
    )
    places = [(0, i) for i in range(1, members)]
    if track:
        places += [(i, i + 1) for i in range(1, members - 1)]
    pairs = tuple(pair(people, *place, matrices) for place in places)
    return Comparison(
        provenance={"command": "embgeo diff baseline.pt other-1.pt", "seed": 0, "versions": {}},
        members=people,
        pairs=pairs,
        differences=differences(people),
        sentences=("I1 rose from 0.09 to 0.77 (0.25 to 0.85 at mean norm 1).",),
        notes=("tokens are matched by their string: 590 shared",),
        track=curves(people, pairs) if track else None,
        timing={"analysis of baseline": 0.1},
    )


def pair(people: tuple[Member, ...], first: int, second: int, matrices: bool) -> Pair:
    one = people[first].analysis
    shared = len(one.rows) - 10
    rng = np.random.default_rng([first, second])
    matching = Matching(
        "token",
        "both have tokens",
        np.arange(shared, dtype=np.int64),
        np.arange(shared, dtype=np.int64),
        (LeftOut(8, ("tok590", "tok591"), 2, ("tok598",)), LeftOut(10, ("tok590",))),
    )
    if not matrices:
        undefined = tuple(q.undefined(NO_MATRIX) for q in quantities.SCALARS)
        return Pair(first, second, matching, undefined)
    angles = np.sort(rng.uniform(3.0, 80.0, 16))
    overlaps = np.sort(rng.beta(2.0, 5.0, 300))
    return Pair(
        first,
        second,
        matching,
        scalars(angles, overlaps, shared),
        (
            Series(
                quantities.PRINCIPAL_ANGLES,
                np.arange(1.0, 17.0),
                {"principal angle": angles},
                "index i",
                "θ_i (°)",
            ),
        ),
        tables=(make_moved_table(one, overlaps),),
    )


def scalars(angles: Any, overlaps: Any, shared: int) -> tuple[Scalar, ...]:
    distance = float(np.sqrt(np.mean(np.sin(np.radians(angles)) ** 2)))
    return (
        quantities.SUBSPACE_DISTANCE.measured(
            distance, reference=float(np.sqrt(1 - 16 / shared)), reference_note="chance"
        ),
        quantities.CKA.measured(0.61, reference=0.027, reference_note="chance"),
        quantities.CKA_DEBIASED.measured(0.59, reference=0.0, reference_note="chance"),
        quantities.CKA_P.measured(0.002, standard_error=0.002, sample="499 permutations"),
        quantities.PROCRUSTES.measured(0.74, convention="rows as they are, not centered"),
        quantities.NEIGHBOR_OVERLAP.measured(
            float(overlaps.mean()),
            standard_error=float(overlaps.std() / np.sqrt(300)),
            sample="300 of 590 queries",
            reference=0.0085,
            reference_note="chance",
        ),
        quantities.RELATIVE_CHANGE.measured(0.96),
        quantities.MATRIX_COSINE.measured(0.5),
        quantities.TOKEN_COSINE.measured(0.48),
        quantities.CHANGE_EFFECTIVE_RANK.measured(12.4),
    )


def make_moved_table(analysis: Analysis, overlaps: Any) -> Table:
    tokens = analysis.tokens or ()
    columns = ("token", "cosine lost", "overlap", *(f"before {i}" for i in range(1, NEIGHBORS + 1)))
    columns += tuple(f"after {i}" for i in range(1, NEIGHBORS + 1))
    rows: list[tuple[Cell, ...]] = []
    for i in range(20):
        near = [tokens[(i * 7 + j) % 580] for j in range(1, 2 * NEIGHBORS + 1)]
        rows.append((tokens[i], 0.6 - 0.02 * i, float(overlaps[i]), *near))
    return Table(quantities.MOVED, columns, tuple(rows), note="300 of 590 queries")


def differences(people: tuple[Member, ...]) -> tuple[Difference, ...]:
    return tuple(
        difference(s, people[i].analysis.find_scalar(s.name), i)
        for s in people[0].analysis.scalars
        for i in range(1, len(people))
    )


def difference(old: Scalar, new: Scalar | None, member: int) -> Difference:
    if new is None or old.value is None or new.value is None:
        reason = "not measured on one side"
        return Difference(
            old.quantity, member, old.value, None, None, change="undefined", undefined=reason
        )
    step = new.value - old.value
    row = Difference(old.quantity, member, old.value, new.value, step)
    if old.standard_error is None:
        return row if step else replace(row, change="equal")
    error = float(np.hypot(old.standard_error, new.standard_error or 0.0))
    beyond = abs(step) > 1.96 * error
    return replace(
        row,
        standard_error=error,
        interval=(step - 1.96 * error, step + 1.96 * error),
        error_note="independent errors, added in squares",
        change="significant" if beyond else "not significant",
    )


def curves(people: tuple[Member, ...], pairs: tuple[Pair, ...]) -> Track:
    steps = tuple(float(m.step or 0.0) for m in people)
    found = []
    for old in people[0].analysis.scalars:
        values = tuple(
            None if (s := m.analysis.find_scalar(old.name)) is None else s.value for m in people
        )
        bend = ChangePoint(steps[1], 0.01, 0.001, 0.05) if old.name == "isotropy.i1" else None
        reason = "" if bend else "its slopes may be in random order"
        found.append(Curve(old.quantity, "", values, (None,) * len(people), bend, reason))
    few = f"{len(people) - 1} points, a bend takes 6"
    for quantity in quantities.SCALARS:
        for against in ("first", "previous"):
            places = [(0 if against == "first" else i - 1, i) for i in range(1, len(people))]
            by_place = {(p.first, p.second): p for p in pairs}
            measured = [by_place[place][quantity.name] for place in places]
            points = tuple(s.value for s in measured if isinstance(s, Scalar))
            errors = tuple(s.standard_error for s in measured if isinstance(s, Scalar))
            found.append(
                Curve(quantity, against, (None, *points), (None, *errors), None, few)  # type: ignore[arg-type]
            )
    return Track(steps, "the number in the file name", tuple(found))

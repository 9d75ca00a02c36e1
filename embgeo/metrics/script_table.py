"""A table of the scripts that tokens are written in."""

from __future__ import annotations

from collections import Counter

import numpy as np

from embgeo.core.arrays import FloatArray, Mask
from embgeo.core.quantities import clump as q
from embgeo.core.values import Cell, Table
from embgeo.metrics.facts import Facts
from embgeo.metrics.token_kinds import find_kinds

SHOWN = 40
COLUMNS = (
    "script",
    "tokens",
    "share",
    "median ‖w‖",
    "mean cosine to the mean direction",
    "share in the clump",
    "share damaged",
)


def tabulate_scripts(
    facts: Facts, kinds: list[str], norms: FloatArray, angles: FloatArray, clump: Mask | None
) -> Table:
    """A line for each script or other kind of token, the largest first.

    All arguments have an entry for each kept row; `angles` are in radians to the mean direction.
    """
    damaged = Counter(find_kinds(facts, facts.damaged))
    every = Counter(kinds) + damaged
    names, inverse = np.unique(np.array(kinds), return_inverse=True)
    members = np.split(np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse))[:-1])
    positions = dict(zip(names.tolist(), members, strict=True))
    total = sum(every.values())
    rows: list[tuple[Cell, ...]] = []
    for kind, count in sorted(every.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]:
        own = positions.get(kind)
        measured: tuple[Cell, ...] = (None, None, None)
        if own is not None:
            inside = None if clump is None else float(clump[own].mean())
            measured = (float(np.median(norms[own])), float(np.cos(angles[own]).mean()), inside)
        rows.append((kind, count, count / total, *measured, damaged[kind] / count))
    note = f"{len(every):,} scripts, {SHOWN} are shown" if len(every) > SHOWN else ""
    return Table(q.BY_SCRIPT, COLUMNS, tuple(rows), note=note)

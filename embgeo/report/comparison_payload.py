"""The data block of the report of a comparison: what its scripts need of every shared token."""

from typing import Any

import numpy as np

from embgeo.charts.lookup import find_points
from embgeo.charts.render.view import fit_view, share_scale, unite
from embgeo.charts.scatter import MOST_PANELS
from embgeo.charts.specification import spread
from embgeo.comparison.comparison import Comparison, Member, member_name, short_name
from embgeo.comparison.film import Film, make_film, share_rows
from embgeo.comparison.moved import map_moved_rows
from embgeo.core.arrays import IntArray
from embgeo.core.quantities import frequency, projection
from embgeo.report import payload
from embgeo.report.payload import DataBlock, pack_reference
from embgeo.report.token_states import list_findings

#: The plane that every map starts with; the only one if there are more than two maps.
FIRST_VIEW = projection.SVD2.name

#: Numbers of a token, not of its row in one of the matrices.
OF_TOKENS = (frequency.LOG_COUNT.name, frequency.RANK.name)


def build(comparison: Comparison, most: int = payload.MOST_ROWS) -> payload.Payload | None:
    """Build the block of a comparison, or None if fewer than two members can be shown together.

    With more than `most` points, tokens are thinned by frequency.
    """
    places = choose_mapped(comparison)
    if len(places) < 2:
        return None
    film = make_film(comparison)
    kept = share_rows(comparison, sorted({*places, *(film.members if film else ())}))
    baseline = comparison.baseline.analysis
    counts = None if baseline.counts is None else baseline.counts[kept[0]]
    chosen = payload.thin(counts, len(kept[0]), max(1, most // len(places)))
    rows = {place: kept[place][chosen] for place in places}
    block = DataBlock()
    keys = common_views(comparison, places)
    columns = common_columns(comparison, places)
    of_tokens = [c for c in baseline.columns if c.name in OF_TOKENS]
    meta: dict[str, Any] = {
        "rows": len(chosen),
        "total": len(kept[0]),
        "tokens": payload.pack_tokens(baseline.tokens, rows[0], block),
        "count": payload.pack_counts(baseline, rows[0], block),
        "popular": payload.pack_classes(baseline, rows[0], block),
        "columns": payload.pack_columns(of_tokens, rows[0], block),
        "members": [
            {
                "place": place,
                "name": member_name(comparison, place),
                **pack_member(comparison.members[place], rows[place], keys, columns, block),
            }
            for place in places
        ],
        "search": {
            **payload.explain_search(baseline),
            "way": "embgeo analyze --neighbors-of page does it for a matrix; then compare the "
            "analyses.",
        },
        "boxes": boxes(comparison, places, keys),
        "moved": map_moved_rows(comparison, rows[0]),
        "film": pack_film(comparison, film, rows[0], block) if film else None,
        **payload.SPELLING,
    }
    return payload.Payload(meta, block.text(), rows[0])


def choose_mapped(comparison: Comparison) -> list[int]:
    """Choose places of the members with a map: the baseline, and members with matched rows."""
    if not find_points(comparison.baseline.analysis, FIRST_VIEW):
        return []
    able = [0]
    for place in range(1, len(comparison.members)):
        pair = comparison.pair(0, place)
        shown = find_points(comparison.members[place].analysis, FIRST_VIEW)
        if shown and pair is not None and pair.matching.by and pair.matching.shared:
            able.append(place)
    return [able[i] for i in spread(len(able), MOST_PANELS)]


def common_views(comparison: Comparison, places: list[int]) -> list[str]:
    """Get planes that all of these members have; with more than two members the first one only."""
    keys = [p.name for p in comparison.baseline.analysis.points]
    if len(places) > 2:
        keys = [FIRST_VIEW]
    analyses = [comparison.members[place].analysis for place in places]
    shown = [key for key in keys if all(find_points(a, key) for a in analyses)]
    return sorted(shown, key=lambda key: key != FIRST_VIEW)


def common_columns(comparison: Comparison, places: list[int]) -> list[str]:
    """Return the numbers of a row that all of these members have."""
    held = [{c.name for c in comparison.members[place].analysis.columns} for place in places]
    everywhere = set.intersection(*held) - set(OF_TOKENS)
    return [c.name for c in comparison.baseline.analysis.columns if c.name in everywhere]


def pack_member(
    member: Member, rows: IntArray, keys: list[str], columns: list[str], block: DataBlock
) -> dict[str, Any]:
    """Return the places of these rows in one matrix, and their numbers there."""
    analysis = member.analysis
    planes = [p for key in keys for p in analysis.points if p.name == key]
    own = [c for name in columns for c in analysis.columns if c.name == name]
    return {
        "number": block.add(analysis.rows[rows].astype(np.uint32)),
        "views": payload.pack_views(analysis, planes, rows, block),
        "columns": payload.pack_columns(own, rows, block),
        "nearest": payload.pack_nearest(analysis, rows, block),
        "listed": list_findings(analysis, rows),
        "states": payload.pack_states(analysis, rows, block),
    }


def boxes(comparison: Comparison, places: list[int], keys: list[str]) -> dict[str, Any]:
    """Return, by plane, the box of all maps at one scale, and whether they start with it."""
    out = {}
    for key in keys:
        shown = [p for i in places if (p := find_points(comparison.members[i].analysis, key))]
        views = [fit_view(points.xy) for points in shown]
        out[key] = {"box": list(unite(views).box), "same": share_scale(views)}
    return out


def pack_film(
    comparison: Comparison, film: Film, rows: IntArray, block: DataBlock
) -> dict[str, Any]:
    """Get every frame with these tokens; `rows` are their positions in the baseline, ascending."""
    at = np.searchsorted(film.rows[0], rows)
    frames = []
    for place, step, xy, mean, state in zip(
        film.members, film.steps, film.places[:, at], film.means, film.states, strict=True
    ):
        low, high = xy.min(axis=0), xy.max(axis=0)
        axes = [block.add_floats(xy[:, i], float(low[i]), float(high[i])) for i in (0, 1)]
        analysis = comparison.members[place].analysis
        points = find_points(analysis, projection.SVD2.name)
        frames.append(
            {
                "place": place,
                "name": short_name(comparison, place),
                "step": step,
                "x": axes[0],
                "y": axes[1],
                "mean": mean.tolist(),
                "tone": state,
                # The same in any plane.
                "isotropic": points and pack_reference(analysis, points).get("isotropic"),
            }
        )
    for frame, move, change, turned in zip(
        frames[1:], film.moves, film.changes, film.list_turns(), strict=True
    ):
        frame |= {"moved": float(move), "changed": change, "turned": turned}
    return {
        "frames": frames,
        "shared": film.shared,
        "box": list(unite([fit_view(xy) for xy in film.places]).box),
        "edges": film.edges.tolist(),
        "densities": film.densities.tolist(),
    }

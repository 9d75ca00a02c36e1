"""The film of a run: its tokens along the checkpoints, the mean row, cosines and verdicts."""

from dataclasses import replace

import numpy as np

from embgeo.charts import specification as spec
from embgeo.charts.items import ChartItem, Unrelated
from embgeo.comparison.film import make_film, measure_moves
from embgeo.core.arrays import FloatArray
from embgeo.core.values import Cell

#: Checkpoints of a strip of panels, and tokens of a film at most.
SHOWN, MOST_TOKENS = 5, 1500
#: Heights below this share of the peak count as empty.
NEGLIGIBLE = 1e-3
CAPTION = (
    "Tokens along the checkpoints of a run, in the plane of the top two singular directions of {}, "
    "turned from checkpoint to checkpoint to fit the next one (orthogonal Procrustes); scales are "
    "the same in all maps. The arrow is the mean row. Below: the cosines between pairs of rows, "
    "each histogram in units of its peak. "
    "The color of a frame is the state of the geometry."
)


def refuse(item: ChartItem, _choices: spec.Choices) -> str:
    if item.track is None:
        return Unrelated.NO_TRACK
    return "" if make_film(item.track) else "its checkpoints share no tokens on a map"


def make_reel(item: ChartItem) -> spec.Reel:
    assert item.track is not None
    film = make_film(item.track)
    assert film is not None
    # A film of all tokens of a large vocabulary would be a large file.
    kept = np.sort(np.random.default_rng(0).permutation(film.places.shape[1])[:MOST_TOKENS])
    rows = tuple(of_frame[kept] for of_frame in film.rows)
    popular = item.track.members[film.members[-1]].analysis.popular
    return spec.Reel(
        item.label,
        replace(film, rows=rows, places=film.places[:, kept]),
        None if popular is None else popular[rows[-1]],
    )


def build(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    """Build a strip for each run: maps with the cosines below them."""
    reels = tuple(make_reel(item) for item, _ in items)
    panels: list[spec.Panel] = []
    across = max(min(SHOWN, len(reel.film.steps)) for reel in reels)
    focus = find_limits(reels)
    for reel in reels:
        shown = spec.spread(len(reel.film.steps), across)
        named = len(reels) > 1
        panels += [map_panel(reel, k, focus, reel.label * (named and not k)) for k in shown]
        if len(reel.film.edges):
            panels += [
                cosine_panel(reel, k, reels, named=k == shown[len(shown) // 2]) for k in shown
            ]
    return spec.Specification(
        tuple(panels),
        describe(reels),
        shading="none" if any(reel.popular is None for reel in reels) else "class",
        table=lambda: tabulate(reels),
        across=across,
        film=reels,
    )


def describe(reels: tuple[spec.Reel, ...]) -> str:
    """Write the caption: whose plane it is, and how much successive maps differ."""
    shared = all(reel.film.shared for reel in reels)
    moves = [float(move) for reel in reels for move in measure_moves(reel.film.places)]
    return (
        CAPTION.format("the last one" if shared else "each one")
        + f" From one checkpoint to the next places change by at most {100 * max(moves):.0f}% "
        f"(root mean square){'' if shared else ', part of which may be a turn of the plane'}."
    )


def find_limits(reels: tuple[spec.Reel, ...]) -> FloatArray:
    """Find the corners around nearly all tokens of all checkpoints, the origin and the means."""
    every = np.concatenate([reel.film.places.reshape(-1, 2) for reel in reels])
    means = np.concatenate([reel.film.means for reel in reels])
    low, high = np.quantile(every, [0.001, 0.999], axis=0)
    low = np.minimum(np.minimum(low, 0.0), means.min(axis=0))
    return np.stack([low, np.maximum(np.maximum(high, 0.0), means.max(axis=0))])


def map_panel(reel: spec.Reel, k: int, focus: FloatArray, label: str) -> spec.Panel:
    x, y = (float(value) for value in reel.film.means[k])
    return spec.Panel(
        spec.Axis(""),
        spec.Axis(label),
        cloud=spec.Cloud(reel.film.places[k], reel.popular, focus=focus, mean=(x, y)),
        key=f"{reel.label}-{reel.film.steps[k]:g}",
        title=f"step {reel.film.steps[k]:,g}",
        tone=reel.film.states[k],
        bare=True,
    )


def cosine_panel(
    reel: spec.Reel, k: int, reels: tuple[spec.Reel, ...], *, named: bool
) -> spec.Panel:
    low, high = cosine_limits(reels)
    ticks = tuple(t for t in (-1.0, -0.5, 0.0, 0.5, 1.0) if low <= t <= high)
    return spec.Panel(
        spec.Axis("cosine" if named else "", low=low, high=high, ticks=ticks),
        spec.Axis("", low=0.0, high=1.05),
        (reel.cosines(k),),
        key=f"cosines-{reel.label}-{reel.film.steps[k]:g}",
        bare=True,
    )


def cosine_limits(reels: tuple[spec.Reel, ...]) -> tuple[float, float]:
    """Find the range of cosines with the 0 over all checkpoints."""
    low, high = 0.0, 0.0
    for reel in reels:
        if not len(reel.film.edges):
            continue
        peak = float(reel.film.densities.max())
        occupied = np.flatnonzero((reel.film.densities > NEGLIGIBLE * peak).any(axis=0))
        low = min(low, float(reel.film.edges[occupied[0]]))
        high = max(high, float(reel.film.edges[occupied[-1] + 1]))
    return low, high


def tabulate(reels: tuple[spec.Reel, ...]) -> spec.FigureTable:
    """List a row for each checkpoint: the verdict, the mean row, and the density of the cosines."""
    rows: list[tuple[Cell, ...]] = []
    for reel in reels:
        for k, step in enumerate(reel.film.steps):
            x, y = reel.film.means[k].tolist()
            rows.append((reel.label, step, reel.film.states[k], "mean row", x, y))
            parts = {
                "cosines": zip(
                    reel.film.edges[:-1].tolist(), reel.film.densities[k].tolist(), strict=True
                ),
                "token": reel.film.places[k].tolist(),
            }
            rows += [
                (reel.label, step, reel.film.states[k], part, a, b)
                for part, pairs in parts.items()
                for a, b in pairs
            ]
    return spec.FigureTable(("run", "step", "verdict", "part", "x", "y"), rows)


CHART = spec.Chart(
    "film",
    "Maps of the tokens at checkpoints of a run, with the mean row and the cosines",
    refuse,
    build,
    pages=(),
    most=3,
    one_row=True,
)

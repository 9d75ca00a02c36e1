"""The film of a track: every checkpoint a frame, the same bytes, a strip for paper; words."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from embgeo.charts import film, theme, words
from embgeo.charts.items import ChartItem, compared_items
from embgeo.charts.render import paper
from embgeo.charts.render.drawing import draw
from embgeo.charts.render.film import LAST, Stage, list_colors, render_gif
from embgeo.charts.render.names import draw_names
from embgeo.charts.specification import Choices, NamedPoint, Specification
from tests.support.paper_samples import add_neighbors
from tests.support.sample_analysis import sample
from tests.support.sample_comparison import sample_comparison


def specify(runs: int = 2, checkpoints: int = 3) -> Specification:
    track = sample_comparison(members=checkpoints, track=True)
    items = [ChartItem(f"run {i}", track=track) for i in range(runs)]
    spec = film.CHART.specify(items)
    assert spec is not None
    return spec


@pytest.mark.slow
def test_the_gif_has_a_frame_for_each_checkpoint_and_the_same_bytes() -> None:
    spec = specify()
    content = render_gif(spec)
    picture = Image.open(io.BytesIO(content))
    assert picture.n_frames == 3
    assert picture.info["loop"] == 0
    frames = []
    for k in range(3):
        picture.seek(k)
        frames.append(np.asarray(picture.convert("RGB")))
    assert picture.info["duration"] == LAST
    assert (frames[0] != frames[2]).any()
    colors = {tuple(color) for color in np.frombuffer(list_colors(), np.uint8).reshape(-1, 3)}
    assert {tuple(color) for color in np.unique(frames[0].reshape(-1, 3), axis=0)} <= colors
    tones = {tuple(bytes.fromhex(tone[1:])) for tone in theme.TONES.values()}
    assert {(255, 255, 255), *tones} <= colors
    assert len(content) < 200_000
    assert render_gif(spec) == content


@pytest.mark.slow
def test_the_last_frame_shows_the_last_checkpoint() -> None:
    spec = specify(runs=1)
    (reel,) = spec.film
    last = sample_comparison(members=3, track=True).members[-1].analysis
    xy = next(p.xy for p in last.points if p.name == "projection.svd2")
    everywhere = {tuple(place) for place in xy.tolist()}
    assert {tuple(place) for place in reel.film.places[-1].tolist()} <= everywhere
    with paper.settings():
        stage = Stage(spec)
        stage.draw_frame(reel.film.steps[-1])
    (actor,) = stage.actors
    shown = np.asarray(actor.dots.get_offsets())
    assert sorted(map(tuple, shown)) == sorted(map(tuple, reel.film.places[-1]))
    assert actor.verdict.get_text() == reel.film.states[-1]
    assert actor.verdict.get_color() == theme.TONES[reel.film.states[-1]]
    assert tuple(actor.arrow.xy) == tuple(reel.film.means[-1])
    (x0, x1), (y0, y1) = actor.ax.get_xlim(), actor.ax.get_ylim()
    box = actor.ax.get_window_extent()
    assert box.width / (x1 - x0) == pytest.approx(box.height / (y1 - y0))


def test_a_run_with_fewer_checkpoints_waits_for_the_other() -> None:
    spec = specify()
    reel, other = spec.film
    one = reel.film
    first = replace(one, steps=(0.0,), places=one.places[:1], means=one.means[:1])
    first = replace(first, densities=one.densities[:1], states=one.states[:1])
    short = replace(reel, film=first)
    with paper.settings():
        stage = Stage(replace(spec, film=(short, other)))
        stage.draw_frame(other.film.steps[-1])
    titles = [actor.ax.get_title(loc="left") for actor in stage.actors]
    assert titles == ["run 0  step 0", f"run 1  step {other.film.steps[-1]:,g}"]


@pytest.mark.slow
def test_the_strip_has_maps_with_the_cosines_below_them() -> None:
    spec = specify(runs=2, checkpoints=7)
    assert spec.across == film.SHOWN
    assert [panel.is_map for panel in spec.panels] == 2 * ([True] * 5 + [False] * 5)
    titles = [panel.title for panel in spec.panels[:5]]
    assert titles == ["step 500", "step 1,500", "step 2,000", "step 2,500", "step 3,500"]
    with paper.settings():
        figure, _ = draw(spec, paper.output(5.5, paper.plain_text))
    limits = [(*ax.get_xlim(), *ax.get_ylim()) for ax in figure.axes[:5]]
    assert np.ptp(limits, axis=0) == pytest.approx(0.0, abs=1e-9)
    frame = figure.axes[0].spines["top"]
    assert frame.get_visible()
    assert frame.get_edgecolor()[:3] == pytest.approx(
        [int(theme.TONES[spec.panels[0].tone][i : i + 2], 16) / 255 for i in (1, 3, 5)]
    )


def test_what_is_no_track_is_refused() -> None:
    reason = film.CHART.refuse(ChartItem("a", sample()), Choices())
    assert "it is not a track" in reason


@pytest.mark.slow
def test_a_word_before_and_after_stands_side_by_side() -> None:
    for members, across in ((1, 0), (3, 3), (4, 2)):
        item = compared_items(sample_comparison(members=2))[0]
        spec = words.CHART.specify([replace(item, label=f"m{i}") for i in range(members)])
        assert spec is not None
        assert spec.across == across
        if members == 3:
            with paper.settings():
                figure, _ = draw(spec, paper.output(5.5, paper.plain_text))
            heights = [round(ax.get_position().y0, 3) for ax in figure.axes]
            assert [heights.count(height) for height in dict.fromkeys(heights)] == [3, 3]


def test_no_name_covers_the_mark_of_another_token() -> None:
    for seed in range(3):
        places = np.random.default_rng(seed).normal(0.5, 0.12, (9, 2))
        named = [NamedPoint(x, y, f"token{i}", not i, False) for i, (x, y) in enumerate(places)]
        with paper.settings():
            figure = Figure(figsize=(1.8, 1.8))
            ax = figure.add_subplot(xlim=(0, 1), ylim=(0, 1))
            crowded = draw_names(ax, named, str, places, "a")
        assert len(ax.texts) + len(crowded) == len(named)
        # The white box of a name reaches a tenth of its size beyond it.
        radius = (1.5 + 0.6) * figure.dpi / 72.0
        for name in ax.texts:
            box = name.get_window_extent()
            for mark in places:
                at = ax.transData.transform(mark)
                away = np.hypot(*(np.clip(at, box.min, box.max) - at))
                assert away > radius or tuple(mark) == name.xy  # type: ignore[attr-defined]


def test_words_that_nobody_asked_for_are_refused() -> None:
    unasked = ChartItem("a", add_neighbors(sample()))
    assert "analyze with --show-neighbors" in words.CHART.refuse(unasked, Choices())

"""What each chart makes of its items: which are shown, how, and what is said of them."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import embgeo
from embgeo.charts import CHARTS, balance, theme
from embgeo.charts.histograms import fit_limits, isotropic_angles, isotropic_cosines
from embgeo.charts.items import (
    ChartItem,
    StepCurve,
    compared_items,
    method_curves,
    method_items,
)
from embgeo.charts.lookup import find_singular_values
from embgeo.charts.norms_by_frequency import quartiles
from embgeo.charts.panels import compute_density, series_lines
from embgeo.charts.render import paper
from embgeo.charts.render.dots import draw_density
from embgeo.charts.render.drawing import draw
from embgeo.charts.render.interactive import describe, render_interactive
from embgeo.charts.render.paper import render_paper
from embgeo.charts.render.svg import render_svg
from embgeo.charts.render.table import render_csv
from embgeo.charts.render.view import View
from embgeo.charts.specification import (
    Axis,
    Choices,
    HistogramSteps,
    Line,
    MemberStyle,
    Panel,
    Specification,
    assign_styles,
    choose_shown,
    spread,
)
from embgeo.charts.training import page_names
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.values import Histogram, Quantity
from embgeo.files.saved import csv_lines
from embgeo.workflows.figures import parse_parameter
from tests.support.chart_samples import COURSES, find_chart
from tests.support.paper_samples import large_cloud, with_cloud
from tests.support.sample_analysis import HOSTILE, sample, with_scalar, without
from tests.support.sample_comparison import sample_comparison
from tests.support.sample_runs import sample_training
from tests.support.sampling import sample_cases


def items() -> list[ChartItem]:
    """Two of everything."""
    return [
        ChartItem("one", sample("cone", n=200), COURSES, x=0.0),
        ChartItem("two", sample("isotropic", n=200, seed=1), COURSES, x=1.0),
    ]


def specify(name: str, of: list[ChartItem], choices: Choices = Choices()) -> Specification:
    spec = find_chart(name).specify(of, choices)
    assert spec is not None
    assert len(spec.members) == min(len(of), find_chart(name).most or len(of))
    return spec


def figure_of(spec: Specification, width: float = 3.25) -> tuple[Figure, tuple[str, ...]]:
    with paper.settings():
        return draw(spec, paper.output(width, paper.plain_text))


def rows(spec: Specification) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv(spec).decode(), newline="")))


def test_cosines_have_equal_margins_within_their_range() -> None:
    for edges, limits in (
        ([-0.5, -0.3, 0.1], (-0.518, 0.118)),
        ([0.2, 0.4], (-0.012, 0.412)),
        ([-1.0, 1.0], (-1.0, 1.0)),
    ):
        steps = HistogramSteps(np.array(edges), np.ones(len(edges) - 1))
        x = fit_limits(Panel(Axis("cosine"), Axis("density"), (steps,))).x
        assert (x.low, x.high) == pytest.approx(limits)


def test_a_logarithmic_axis_of_a_page_ends_where_that_of_a_figure_does() -> None:
    # Isotropic rows reach down to 1e-300.
    flat = HistogramSteps(np.array([-1.0, 1.0]), np.array([0.5]), MemberStyle("line"))
    hump = HistogramSteps(np.linspace(-1, 1, 4), np.array([1e-300, 9.0, 1e-300]), flat.style)
    panel = fit_limits(Panel(Axis("cosine"), Axis("density"), (flat, hump)))
    assert describe(panel)["log"] == [False, True]
    assert describe(panel)["heights"] == [0.005, 18.0] == [panel.y.low, panel.y.high]
    assert "heights" not in describe(replace(panel, y=Axis("density", low=0.0, high=9.0)))


@pytest.mark.parametrize("color", sample_cases(["class", "none", "frequency"], 3))
@pytest.mark.slow
def test_fifty_thousand_points_stay_below_300_kilobytes(color: str) -> None:
    spec = specify("scatter", [ChartItem("large", large_cloud(50_000))], Choices(color))
    content = render_paper(spec, "pdf", 6.75, "embgeo 0").files["scatter.pdf"]
    assert content.count(b"/Subtype /Image") >= 1
    assert 10_000 < len(content) < 300_000
    assert len(rows(spec)) == 50_000


# --- scatter ---------------------------------------------------------------------------------


def cloud_of(figure: Figure, panel: int = 0) -> PathCollection:
    (cloud,) = [c for c in figure.axes[panel].collections if isinstance(c, PathCollection)]
    return cloud


def test_every_point_is_drawn_in_the_color_of_its_class() -> None:
    analysis = sample()
    figure, _ = figure_of(specify("scatter", [ChartItem("a", analysis)]))
    cloud = cloud_of(figure)
    offsets, colors = np.asarray(cloud.get_offsets()), cloud.get_facecolor()
    xy = next(p.xy for p in analysis.points if p.name == "projection.svd2")
    assert sorted(map(tuple, offsets)) == sorted(map(tuple, xy))
    assert analysis.popular is not None
    color = {True: theme.POPULAR.light, False: theme.RARE.light}
    place = {tuple(p): i for i, p in enumerate(xy)}
    for point, rgba in zip(offsets, colors, strict=True):
        popular = bool(analysis.popular[place[tuple(point)]])
        assert to_hex(rgba) == color[popular]


def test_neither_class_is_drawn_over_the_other() -> None:
    """The order of drawing is a mixture: each half of it holds both classes as the whole does."""
    figure, _ = figure_of(specify("scatter", [ChartItem("a", sample(n=2000))]))
    is_popular = cloud_of(figure).get_facecolor()[:, 2] > 0.5  # the blue one
    assert 0.15 < is_popular[:1000].mean() < 0.25
    assert 0.15 < is_popular[1000:].mean() < 0.25


@pytest.mark.slow
def test_scales_are_equal_on_both_axes_and_the_origin_is_seen() -> None:
    xy = np.random.default_rng(0).normal(50, 1, (600, 2))
    shifted = with_cloud(sample(), "projection.svd2", xy)
    figure, _ = figure_of(specify("scatter", [ChartItem("a", shifted), ChartItem("b", sample())]))
    figure.draw_without_rendering()
    for ax in figure.axes:
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        assert left < 0 < right
        assert bottom < 0 < top
        box = ax.get_window_extent()
        assert box.width / (right - left) == pytest.approx(box.height / (top - bottom), rel=1e-6)


def two_scales() -> list[ChartItem]:
    """The same cloud twice, six times smaller the second time."""
    xy = np.random.default_rng(0).normal(1.0, 1.0, (400, 2))
    name = "projection.svd2"
    return [ChartItem(s, with_cloud(sample(n=400), name, xy / k)) for s, k in (("a", 1), ("b", 6))]


@pytest.mark.parametrize("free", [False, True])
def test_maps_share_limits_and_origin_unless_their_axes_are_free(free: bool) -> None:
    figure, notes = figure_of(specify("scatter", two_scales(), Choices(free_axes=free)))
    (a, b) = ((*ax.get_xlim(), *ax.get_ylim()) for ax in figure.axes)
    if free:
        assert b[1] - b[0] < (a[1] - a[0]) / 4
    else:
        assert b == pytest.approx(a)
    assert any("one scale for all, although they differ 6-fold" in n for n in notes) is not free


def test_named_tokens_stand_at_their_points() -> None:
    analysis = sample()
    xy = next(p.xy for p in analysis.points if p.name == "projection.svd2")
    assert analysis.tokens is not None
    chosen = analysis.tokens[7]
    choices = Choices(annotate=(chosen, "absent"))
    figure, _ = figure_of(specify("scatter", [ChartItem("a", analysis)], choices))
    (label,) = (t for t in figure.axes[0].texts if t.get_text() == paper.plain_text(chosen))
    assert label.xy == pytest.approx(tuple(xy[7]))  # type: ignore[attr-defined]


def test_a_named_token_outside_the_picture_is_noted() -> None:
    xy = np.random.default_rng(0).standard_normal((4000, 2))
    xy[3] = 1e6
    cloud = replace(large_cloud(4000), tokens=tuple(f" {i}" for i in range(4000)))
    far = with_cloud(cloud, "projection.svd2", xy)
    spec = specify("scatter", [ChartItem("a", far)], Choices(annotate=(" 3",)))
    figure, notes = figure_of(spec)
    assert " 3" not in [text.get_text() for text in figure.axes[0].texts]
    assert "a: ␣3 lies outside the picture and is not named" in notes


def test_many_points_are_a_density_with_the_mean_color_of_each_cell() -> None:
    """A cell is a mixture of its points' colors, and darker the more points it holds."""
    view = View(0.0, 2.0, 0.0, 1.0)
    xy = np.array([[0.5, 0.5]] * 30 + [[1.5, 0.5]] * 2)
    colors = np.array([[1.0, 0.0, 0.0, 1.0]] * 30 + [[0, 0, 1, 1], [1, 0, 0, 1]])
    ax = Figure().add_subplot()
    draw_density(ax, xy, colors, view, side=0.02)
    picture = np.asarray(ax.images[0].get_array())
    assert picture.shape == (1, 2, 3)
    assert picture[0, 0] == pytest.approx([1, 0, 0])
    red, green, blue = picture[0, 1]
    assert red == blue > green > 0.0
    figure, notes = figure_of(specify("scatter", [ChartItem("large", large_cloud(10_001))]))
    assert figure.axes[0].images
    assert not figure.axes[0].collections
    assert "large: shades are densities, 10,001 dots would hide one another" in notes


def test_each_line_of_a_curve_is_named_for_each_member() -> None:
    curve: Any = SimpleNamespace(x=np.arange(3.0), y=dict.fromkeys("pq", np.ones(3)), log_y=False)
    items: Any = [(SimpleNamespace(label=label), MemberStyle("line", 0)) for label in "ab"]
    named = [(line.member, line.part) for line in series_lines(items, [curve, curve])]
    assert named == [("a", "p"), ("a", "q"), ("b", "p"), ("b", "q")]


def test_points_outside_the_picture_are_counted() -> None:
    xy = np.random.default_rng(0).standard_normal((4000, 2))
    xy[:2] = [[1e6, 0.0], [0.0, -1e6]]
    far = with_cloud(sample(n=4000), "projection.svd2", xy)
    figure, notes = figure_of(specify("scatter", [ChartItem("a", far)]))
    figure.draw_without_rendering()
    (left, right), (bottom, top) = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
    seen = (xy >= [left, bottom]).all(axis=1) & (xy <= [right, top]).all(axis=1)
    assert not seen[:2].any()
    assert seen.mean() > 0.997
    assert notes == (f"a: {(~seen).sum()} of 4,000 points lie outside the picture",)


@pytest.mark.slow
def test_frequency_colors_have_one_scale_for_all_panels() -> None:
    of = [ChartItem("a", sample()), ChartItem("b", sample(seed=2))]
    figure, _ = figure_of(specify("scatter", of, Choices("frequency")))
    colors = [
        {tuple(map(float, c)) for c in cloud_of(figure, panel).get_facecolor()} for panel in (0, 1)
    ]
    assert colors[0] == colors[1]
    assert len(colors[0]) > 5
    assert figure.axes[-1].get_xlabel() == "1 + count"


@pytest.mark.slow
def test_colors_fall_back_where_frequencies_are_not_known() -> None:
    plain = sample(counts=False)
    assert find_chart("scatter").refuse(ChartItem("a", plain), Choices("frequency"))
    alone, _ = figure_of(specify("scatter", [ChartItem("a", plain)]))
    assert not alone.legends
    beside, _ = figure_of(specify("scatter", [ChartItem("a", plain), ChartItem("b", sample())]))
    texts = [t.get_text() for t in beside.legends[0].get_texts()]
    assert texts == ["frequent tokens", "rare tokens", "frequency not known"]


def test_a_vocabulary_known_by_rank_has_ranks() -> None:
    analysis = sample(n=100)
    stored = {**analysis.provenance["frequency"], "kind": "rank"}
    n = analysis.provenance["n"]
    ranked = replace(
        analysis,
        provenance={**analysis.provenance, "frequency": stored},
        counts=np.arange(n, 1.0, -1.0),
    )
    table = rows(specify("scatter", [ChartItem("a", ranked)]))
    assert [row["rank"] for row in table[:3]] == ["1.0", "2.0", "3.0"]
    assert {row["count"] for row in table} == {""}
    both = specify("norms-by-frequency", [ChartItem("a", ranked), ChartItem("b", analysis)])
    assert both.panels[0].x.label == "frequency rank"


@pytest.mark.slow
def test_many_panels_are_thinned_out() -> None:
    spec = specify("scatter", [ChartItem(f"{i}", sample(n=60)) for i in range(30)])
    assert len(spec.panels) == len(spec.members) == 12
    assert spec.total == 30
    assert {row["analysis"] for row in rows(spec)} >= {"0", "29"}


# --- members ---------------------------------------------------------------------------------


def test_members_of_a_long_run_are_drawn_from_both_ends_and_between() -> None:
    assert spread(3, 5) == [0, 1, 2]
    assert spread(11, 5) == [0, 2, 5, 8, 10]
    run = compared_items(sample_comparison(track=True, members=6))
    spec = find_chart("spectrum").specify(run, Choices(most=5))
    assert spec is not None
    assert spec.members == tuple(
        f"step {step}" for step in ("500", "1,000", "1,500", "2,500", "3,000")
    )
    styles = [line.style for line in spec.panels[0].lines if line.member]
    assert [(style.scale, style.index) for style in styles] == [("age", 2 * i) for i in range(5)]


def test_every_step_of_a_run_has_a_shade_between_the_first_and_the_last() -> None:
    run = compared_items(sample_comparison(track=True, members=8))
    spec = find_chart("spectrum").specify(run)
    assert spec is not None
    styles = [line.style for line in spec.panels[0].lines if line.member]
    colors = [theme.color_of(style) for style in styles]
    assert len(set(colors)) == 8
    assert (colors[0], colors[-1]) == (theme.AGES[0].light, theme.AGES[-1].light)
    assert [style.index for style in styles] == sorted(style.index for style in styles)


def test_runs_differ_in_hue_and_their_steps_in_shade_and_the_last_step_is_always_shown() -> None:
    items = [
        replace(ChartItem(f"{run}, step {step}"), step=float(step), run=run)
        for run in ("mle", "cosreg")
        for step in (0, 500, 1000, 1500)
    ]
    assert [item.label for item in choose_shown(items, 3)] == ["mle", "cosreg"]
    assert [item.step for item in choose_shown(items, 3)] == [1500.0, 1500.0]
    shown = choose_shown(items, None)
    assert [item.step for item in shown] == [0.0, 1000.0, 1500.0] * 2
    colors = [theme.color_of(style) for style in assign_styles(shown)]
    assert colors[2] == theme.LINES[0].light
    assert colors[3:] == ["#aad5ca", "#55aa94", theme.LINES[1].light]
    # One run keeps the scale of steps.
    assert {style.scale for style in assign_styles(items[:1] + items[2:4])} == {"age"}


def test_of_a_study_methods_come_before_their_controls() -> None:
    items = [
        ChartItem("mle"), ChartItem("cosreg", reference="mle"),
        ChartItem("factored", reference="mle"), ChartItem("sc", reference="factored"),
    ]  # fmt: skip
    assert [item.label for item in choose_shown(items, 3)] == ["mle", "cosreg", "sc"]
    assert [item.label for item in choose_shown(items, 2)] == ["cosreg", "sc"]
    assert choose_shown(items, 4) == items


# --- curves ----------------------------------------------------------------------------------


def test_spectra_are_those_of_the_analyses() -> None:
    of = items()
    spec = specify("spectrum", of)
    for item in of:
        assert item.analysis is not None
        series = item.analysis["spectrum.singular_values"]
        values = [float(r["normalized singular value"]) for r in rows(spec)
                  if r["analysis"] == item.label]  # fmt: skip
        assert values == pytest.approx(series.y["uncentered"][: len(values)])  # type: ignore[union-attr]
        assert values[0] == 1.0
    assert not spec.panels[0].y.log
    assert specify("spectrum-log", of).panels[0].y.log


@pytest.mark.slow
def test_fewer_rows_than_dimensions_draw_without_a_warning() -> None:
    for shape in ((16, 300), (3, 40), (1, 5), (40, 3)):
        values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        analysis = embgeo.analyze(embgeo.Matrix(values), sections=("spectrum",))
        curve = find_singular_values(analysis, "spectrum.singular_values")
        assert curve is not None
        assert len(curve.x) == min(shape)
        spec = specify("spectrum-log", [ChartItem("a", analysis)])
        assert len(render_interactive(spec)["spectrum-log"]["x"]) == min(shape)
        for chart in CHARTS:
            shown = chart.specify([ChartItem("a", analysis)])
            if shown is not None:
                render_svg(shown)


def test_members_of_a_group_are_one_line_in_its_hue_with_a_band() -> None:
    of = [
        ChartItem(f"{group}, {seed}", sample("cone", n=200, seed=seed), group=group, place=place)
        for place, group in enumerate(("mle", "cosreg"))
        for seed in range(3)
    ]
    (panel,) = specify("spectrum", of).panels
    own = [line for line in panel.lines if isinstance(line, Line) and line.member]
    assert [(line.member, line.style.index) for line in own] == [("mle", 0), ("cosreg", 1)]
    curves = [find_singular_values(s.analysis, "spectrum.singular_values") for s in of[:3]]  # type: ignore[arg-type]
    table = np.array([curve.y["uncentered"] for curve in curves if curve is not None])
    np.testing.assert_allclose(own[0].y, table.mean(axis=0))
    assert own[0].high is not None
    np.testing.assert_allclose(own[0].high - own[0].y, table.std(axis=0, ddof=1), atol=1e-15)
    (panel,) = specify("norms", of).panels
    bars = [steps for steps in panel.lines if isinstance(steps, HistogramSteps) and steps.member]
    assert [steps.member for steps in bars] == ["mle", "cosreg"]
    for steps in bars:  # of members with other bins
        assert np.sum(np.diff(steps.edges) * steps.heights) == pytest.approx(1.0)
    # A chart with room for few shows the first of each group, under its own name.
    assert [item.label for item in choose_shown(of, 3)] == ["mle, 0", "cosreg, 0"]


def test_densities_have_an_area_of_one_whatever_the_bins() -> None:
    edges = np.array([0.0, 1.0, 3.0, 7.0])
    bars = Histogram(Quantity("a.b", "x", ""), edges, np.array([2.0, 0.0, 6.0]), "x", "n")
    assert compute_density(bars) == pytest.approx([0.25, 0.0, 0.1875])
    nothing = Histogram(Quantity("a.b", "x", ""), edges, np.zeros(3), "x", "n")
    assert compute_density(nothing) == pytest.approx([0.0, 0.0, 0.0])
    table = rows(specify("cosines", items()))
    for label in ("one", "two"):
        own = [r for r in table if r["analysis"] == label]
        area = sum(float(r["density"]) * (float(r["to"]) - float(r["from"])) for r in own)
        assert area == pytest.approx(1.0)


def test_norms_of_two_decades_have_log_axes_on_which_one_long_row_shows() -> None:
    w = np.random.default_rng(0).standard_normal((2000, 64))
    w[77] *= 1e4 / np.linalg.norm(w[77])
    analysis = embgeo.analyze(w, sections=["tokens"])
    (panel,) = specify("norms", [ChartItem("one", analysis)]).panels
    (steps,) = panel.lines
    assert isinstance(steps, HistogramSteps)
    assert panel.x.log
    assert panel.y.log
    shares = steps.heights * np.diff(steps.edges)
    assert shares.sum() == pytest.approx(1.0)
    assert np.count_nonzero(shares) > 4
    assert panel.y.low is not None
    assert 0 < panel.y.low < steps.heights[shares > 0].min()


def test_histograms_are_densities() -> None:
    for name in ("norms", "cosines", "cone"):
        for chosen in (items()[:1], items()):
            panel = specify(name, chosen).panels[0]
            assert panel.y.label.startswith("density of ")
            for steps in panel.lines:
                assert isinstance(steps, HistogramSteps)
                assert steps.heights @ np.diff(steps.edges) == pytest.approx(1.0)


@pytest.mark.slow
def test_isotropic_densities_are_those_of_random_directions() -> None:
    """The cosine with any fixed direction is a coordinate of a random one."""
    for d in (2, 3, 16, 600):
        rng = np.random.default_rng(d)
        drawn = rng.standard_normal((20_000, d))
        cosines = drawn[:, 0] / np.linalg.norm(drawn, axis=1)
        analysis = sample(d=16)
        analysis = replace(analysis, provenance={**analysis.provenance, "d": d})
        styled = [(ChartItem("a", analysis), MemberStyle())]
        for found, values in (
            (isotropic_cosines(styled), cosines),
            (isotropic_angles(styled), np.degrees(np.arccos(cosines))),
        ):
            (steps,) = found
            below = np.concatenate([[0.0], np.cumsum(steps.heights * np.diff(steps.edges))])
            share = np.searchsorted(np.sort(values), steps.edges) / len(values)
            assert np.abs(below - share).max() < 1.63 / np.sqrt(len(values))  # Kolmogorov, 1%


def test_matrices_of_different_dimensions_have_no_isotropic_density() -> None:
    other = sample(d=8)
    other = replace(other, provenance={**other.provenance, "d": 8})
    both = specify("cosines", [*items()[:1], ChartItem("b", other)])
    assert len(both.panels[0].lines) == 2


def test_a_high_peak_does_not_hide_the_other_histograms() -> None:
    analysis = sample("isotropic")
    peaked = replace(
        analysis,
        histograms=tuple(
            replace(h, counts=np.where(np.arange(len(h.counts)) == 7, 1e5, 0.0))
            if h.name == "cosine.histogram"
            else h
            for h in analysis.histograms
        ),
    )
    both = specify("cosines", [ChartItem("a", analysis), ChartItem("b", peaked)])
    assert both.panels[0].y.log
    assert not specify("cosines", [ChartItem("a", analysis)]).panels[0].y.log


def test_the_ends_of_the_partition_function_give_i1() -> None:
    analysis = sample("cone")
    table = rows(specify("partition", [ChartItem("a", analysis)]))
    values = [float(r["z"]) for r in table]
    i1 = analysis.find_scalar("isotropy.i1")
    assert i1 is not None
    assert i1.value == pytest.approx(min(values) / max(values))
    assert len(values) == 2 * 16


def test_quartiles_of_norms_hold_every_token_once() -> None:
    counts = 1.0 + np.floor(1e5 / np.arange(1, 2001))
    norms = np.log10(counts)
    bins = quartiles(counts, norms)
    assert bins[:, 4].sum() == 2000
    assert len(bins) > 5
    assert (bins[:, 4] >= 20).all()
    assert (np.diff(bins[:, 0]) > 0).all()
    assert (bins[:, 1] <= bins[:, 2]).all()
    assert (np.diff(bins[:, 2]) > 0).all()  # norms grow with the frequency here
    alone = quartiles(np.ones(5), np.arange(5.0))
    assert alone.tolist() == [[1.0, 1.0, 2.0, 3.0, 5.0]]


# --- sweep and training ----------------------------------------------------------------------


def swept(values: dict[float, float]) -> list[ChartItem]:
    base = sample(n=60)
    return [
        ChartItem(f"beta{x}", with_scalar(base, "subspace.distance", value=y), x=x)
        for x, y in values.items()
    ]


def test_a_sweep_is_in_the_order_of_the_parameter() -> None:
    spec = specify("sweep", swept({1.0: 0.06, 0.0: 0.99, 0.5: 0.2}), Choices(parameter="beta"))
    values = [(float(r["beta"]), float(r["value"])) for r in rows(spec)]
    assert values == [(0.0, 0.99), (0.5, 0.2), (1.0, 0.06)]
    assert spec.panels[0].x.label == "beta"
    assert spec.panels[0].y.low == 0
    assert spec.panels[0].y.label == "Subspace distance"
    assert "chance" in spec.caption
    figure, _ = figure_of(spec)
    assert figure.axes[0].get_xlabel() == r"$\beta$"


def test_wide_parameters_have_a_logarithmic_axis() -> None:
    log = [
        specify("sweep", swept(dict.fromkeys(xs, 0.5))).panels[0].x.log
        for xs in ((1.0, 2.0, 100.0), (0.0, 1.0, 100.0), (1.0, 2.0))
    ]
    assert log == [True, False, False]


def test_a_sweep_of_several_scalars_has_a_panel_for_each() -> None:
    choices = Choices(scalars=("cosine.mean", "x.y", "isotropy.i1"))
    spec = specify("sweep", swept({0.0: 0.5, 1.0: 0.5}), choices)
    assert {r["name"] for r in rows(spec)} == {"cosine.mean", "isotropy.i1"}
    assert len(spec.panels) == 2


def test_runs_in_a_sweep_give_their_last_value() -> None:
    runs = [ChartItem("a", step_curves=COURSES, x=0.0), ChartItem("b", step_curves=COURSES, x=1.0)]
    spec = specify("sweep", runs, Choices(scalars=("cosine.mean",)))
    assert [r["value"] for r in rows(spec)] == ["0.5", "0.5"]


def test_why_a_sweep_lacks_a_value() -> None:
    refuse = find_chart("sweep").refuse
    assert "--parameter" in refuse(ChartItem("a", sample()), Choices())
    tied = ChartItem("a", sample(untied=False), x=1.0)
    assert refuse(tied, Choices()) == tied.analysis.absent["subspace"]
    undefined = with_scalar(sample(), "subspace.distance", value=None, undefined="no rank")
    assert refuse(ChartItem("a", undefined, x=1.0), Choices()).endswith("not defined: no rank")
    curve = StepCurve(np.array([1.0]), np.array([3.0]), lost=2.0)
    diverged = ChartItem("a", step_curves={"valid.loss": curve}, x=1.0)
    said = "its valid.loss cannot be drawn at step 2"
    assert refuse(diverged, Choices(scalars=("valid.loss",))) == said


def test_values_of_parameters_in_names() -> None:
    for name, parameter, value in (
        ("runs/beta=0.25.embgeo", "beta", 0.25),
        ("beta0.5", "beta", 0.5),
        ("tau_10/model", "tau", 10.0),
        ("tau-2.embgeo", "tau", 2.0),
        ("lr1e-3", "lr", 0.001),
        ("beta1/beta2", "beta", 2.0),
        ("beta2", "eta", None),
        ("BETA2", "beta", 2.0),
        ("model", "beta", None),
        ("beta", "beta", None),
        ("x+y3", "x+y", 3.0),
        ("beta=1e999", "beta", None),
        ("beta=0.5_seed1.pt", "beta", 0.5),
        ("beta=0.5-s0", "beta", 0.5),
        *((f"beta={odd}", "beta", None) for odd in ("0,5", "2k", "0x10", "1_000", "10%", "1.2.3")),
    ):
        assert parse_parameter(name, parameter) == value


def test_training_shows_what_is_asked_for_and_says_what_is_not_shown() -> None:
    step_curves = {f"a.{i}": StepCurve(np.arange(3.0), np.arange(3.0)) for i in range(7)}
    wide = ChartItem("a", step_curves=step_curves)
    spec = specify("training", [wide])
    assert len(spec.panels) == 4
    assert spec.notes == ("3 more in the logs: choose with --scalar",)
    spec = specify("training", [wide], Choices(scalars=("a.6",)))
    assert [panel.title for panel in spec.panels] == ["a.6"]
    assert find_chart("training").refuse(wide, Choices(scalars=("b.1",)))


@pytest.mark.slow
def test_duplicates_of_a_track_are_hollow_and_left_out_of_the_line() -> None:
    comparison = sample_comparison(track=True, members=6)
    assert comparison.track is not None
    track = replace(comparison.track, same_as=(None, None, 1, None, None, 0))
    run = compared_items(replace(comparison, track=track))
    spec = specify("training", run[-1:], Choices(scalars=("cosine.mean",)))
    line, hollow = spec.panels[0].lines
    assert line.x.tolist() == [500.0, 1000.0, 2000.0, 2500.0]  # type: ignore[union-attr]
    assert hollow.x.tolist() == [1500.0, 3000.0]  # type: ignore[union-attr]
    assert [one["hollow"] for one in render_interactive(spec)["training.cosine.mean"]["lines"]] == [
        False,
        True,
    ]
    assert "Hollow" in spec.caption
    assert render_svg(spec)


def test_curves_of_a_track_stand_in_the_order_of_importance() -> None:
    run = compared_items(sample_comparison(track=True, members=4))
    spec = find_chart("training").specify(run, Choices(scalars=page_names(run)))
    assert spec is not None
    titles = [panel.title for panel in spec.panels]
    assert titles[:2] == ["mean cosine", "effective rank"]
    assert "neighbor overlap with the one before" in titles
    guides = {panel.title: [guide.label for guide in panel.guides] for panel in spec.panels}
    assert guides["I1 as stored"] == ["bend at 1,000"]


def test_bands_reach_over_the_seeds() -> None:
    (method, *_) = method_items(sample_training())
    assert len(method.runs) == 3
    for name, curve in method.step_curves.items():
        own = [run.curves[name].values for run in method.runs]
        assert curve.low is not None
        assert curve.high is not None
        assert curve.low.tolist() == np.min(own, axis=0).tolist()
        assert curve.high.tolist() == np.max(own, axis=0).tolist()
        assert curve.values == pytest.approx(np.mean(own, axis=0))
        assert method_curves(method.runs[:1])[name].low is None


def test_perplexities_that_fall_far_have_a_logarithmic_axis() -> None:
    falling = StepCurve(np.arange(3.0), np.array([8000.0, 300.0, 1.0]))
    spec = specify("training", [ChartItem("a", step_curves={"valid.perplexity": falling})])
    assert spec.panels[0].y.log
    assert not specify("training", [ChartItem("a", step_curves=COURSES)]).panels[0].y.log


def test_a_method_stands_where_the_matrix_that_it_acts_on_does() -> None:
    training = sample_training(methods=("untied", "al"))
    for role in ("input", "output"):
        methods = tuple(replace(one, role=role) for one in training.methods)
        spec = specify("balance", method_items(replace(training, methods=methods)))
        (panel,) = (panel for panel in spec.panels if panel.key == "cosine.mean")
        lines = [line for line in panel.lines if isinstance(line, Line)]
        expected = [
            np.mean(list(training.values(name, "cosine.mean", role).values()))
            for name in ("untied", "al")
        ]
        (arrow,) = (line for line in lines if line.form == "arrow")
        assert list(arrow.y) == pytest.approx(expected)
        marks = [float(line.y[0]) for line in lines if line.form == "marks"]
        assert marks == pytest.approx(expected)


def test_a_control_stands_at_every_matrix_that_its_methods_act_on() -> None:
    training = sample_training(methods=("untied", "al"))
    _, al = training.methods
    other = replace(al, name="twin", role="output")
    runs = tuple(replace(run, method="twin") for run in training.runs_of("al"))
    training = replace(training, methods=(*training.methods, other), runs=(*training.runs, *runs))
    panel = specify("balance", method_items(training)).panels[0]
    lines = [line for line in panel.lines if isinstance(line, Line)]
    marks = {float(line.y[0]) for line in lines if line.form == "marks"}
    starts = {float(line.y[0]) for line in lines if line.form == "arrow"}
    assert len(starts) == 2
    assert starts <= marks


def test_an_arrow_is_gray_where_seeds_tell_nothing_apart() -> None:
    """By Student's t over three seeds or more, of one number or the other."""
    for numbers, clear in (
        ([1.0], False),
        ([1.0, 1.1], False),
        ([1.0, 1.1, 0.9], True),
        ([1.0, -1.1, 0.9], False),
        ([0.0, 0.0, 0.0], False),
    ):
        control = [(seed, 100.0 + seed, 0.5) for seed in range(len(numbers))]
        geometry = [(seed, 100.0 + seed, 0.5 + c) for seed, c in enumerate(numbers)]
        quality = [(seed, 100.0 + seed + c, 0.5) for seed, c in enumerate(numbers)]
        assert balance.is_distinct(control, geometry) is clear
        assert balance.is_distinct(control, quality) is clear
        assert balance.is_distinct(control[:2], geometry) is False


def test_arrows_of_one_seed_are_gray() -> None:
    items = method_items(sample_training())
    alone = [replace(item, runs=item.runs[:1]) for item in items]
    arrows = [line for line in specify("balance", alone).panels[0].lines if line.form == "arrow"]  # type: ignore[union-attr]
    assert arrows
    assert {line.style.scale for line in arrows} == {"guide"}


def test_curves_that_stay_zero_have_no_chart() -> None:
    steps = np.arange(4.0)
    zero, some = StepCurve(steps, np.zeros(4)), StepCurve(steps, np.array([0.0, 0.0, 1.0, 0.0]))
    share = "spectrum.top_share"
    assert page_names([ChartItem("a", step_curves={share: zero})]) == ()
    assert page_names([ChartItem("a", step_curves={share: some})]) == (share,)


def test_balance_takes_two_methods() -> None:
    assert find_chart("balance").specify(method_items(sample_training())[:1]) is None


# --- odd items ----------------------------------------------------------------------------


def test_hostile_tokens_survive_in_the_data() -> None:
    tokens = [
        row["token"] for row in rows(specify("scatter", [ChartItem("a", sample(hostile=True))]))
    ]
    expected = [t.encode("utf-8", "backslashreplace").decode() for t in HOSTILE]
    assert tokens[: len(HOSTILE)] == expected


def test_cells_of_the_data() -> None:
    table = [("a,b", 1, None), ('q"', 0.1, 1e-300)]
    assert b"".join(csv_lines(("x", "y", "z"), table)) == b'x,y,z\n"a,b",1,\n"q""",0.1,1e-300\n'


def test_left_out_sections_are_named() -> None:
    cut = ChartItem(
        "a", without(sample(), "spectrum", "isotropy", "tokens", "cosine", "projection")
    )
    for name, section in (
        ("spectrum", "spectrum"), ("partition", "isotropy"), ("scatter", "projection"),
        ("norms-by-frequency", "tokens"), ("cosines", "cosines"),
    ):  # fmt: skip
        assert section in find_chart(name).refuse(cut, Choices())


ROWS = np.random.default_rng(0).standard_normal((30, 4))
ODD = {
    "one row": (ROWS[:1], None),
    "equal rows": (np.ones((20, 4)), np.arange(20.0)),
    "equal counts": (ROWS, np.full(30, 7.0)),
    "one word seen": (ROWS, np.arange(30) == 0),
    "beyond floats": (1e100 * ROWS, np.arange(30.0)),
}


@pytest.mark.parametrize("name", sample_cases(ODD, 2))
@pytest.mark.slow
def test_odd_matrices_are_drawn_without_a_warning(name: str) -> None:
    for spec in odd_charts(name):
        render_svg(spec)


@pytest.mark.parametrize("name", sample_cases(ODD, 5))
@pytest.mark.slow
def test_odd_matrices_are_drawn_without_a_warning_for_paper(name: str) -> None:
    for spec in odd_charts(name):
        figure_of(spec)[0].draw_without_rendering()


def odd_charts(name: str) -> list[Specification]:
    values, counts = ODD[name]
    known = None if counts is None else Frequency("counts", counts.astype(float), "made up")
    analysis = embgeo.analyze(Matrix(values, frequency=known), reference=False)
    choices = Choices("class" if counts is None else "frequency")
    specs = [chart.specify([ChartItem("odd", analysis, x=1.0)], choices) for chart in CHARTS]
    return [spec for spec in specs if spec is not None]


def test_drawing_needs_no_pyplot() -> None:
    assert isinstance(figure_of(specify("spectrum", items()))[0], Figure)
    assert "matplotlib.pyplot" not in sys.modules

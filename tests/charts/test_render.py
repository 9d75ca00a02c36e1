"""What renderers do with numbers and text: views, marks, axes, names, the theme."""

from __future__ import annotations

import re
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from embgeo.charts import theme
from embgeo.charts.items import ChartItem
from embgeo.charts.render import paper, svg
from embgeo.charts.render.dots import dot_size, draw_dots, widen
from embgeo.charts.render.drawing import draw, draw_panel
from embgeo.charts.render.marks import MARK, draw_marks
from embgeo.charts.render.svg import render_svg, write_power
from embgeo.charts.render.ticks import set_log_ticks, shorten, write_tick
from embgeo.charts.render.view import View, common_views, fit_cloud, fit_view, surround
from embgeo.charts.specification import (
    Axis,
    Cloud,
    HistogramSteps,
    Line,
    MemberStyle,
    Panel,
    Specification,
    step_values,
)
from embgeo.core.errors import BadOption
from embgeo.core.text import LONGEST, drawable
from tests.support.chart_samples import COURSES, find_chart, specification
from tests.support.refusals import refusal
from tests.support.sample_analysis import HOSTILE, sample


def luminance(color: str) -> float:
    """Relative luminance of sRGB, as WCAG 2 defines it."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_lines_and_classes_are_seen_on_their_pages() -> None:
    for color in (*theme.LINES, theme.RARE, theme.POPULAR):
        assert contrast(color.light, "#ffffff") >= 2.7, color
        assert contrast(color.dark, "#131317") >= 3.0, color
    assert contrast(theme.RARE.light, theme.POPULAR.light) > 1.5


@pytest.mark.slow
def test_the_theme_is_the_style_sheet_of_pages() -> None:
    sheet = theme.stylesheet()
    light, dark = sheet.split("@media", 1)
    for i, color in enumerate(theme.LINES):
        assert f"--line-{i}: {color.light};" in light
        assert f"--line-{i}: {color.dark};" in dark
    assert f"--rare: {theme.RARE.light};" in light
    used = set(re.findall(r"fig-[\w-]+?(?=-fill|-stroke)", render_svg(specification("scatter"))))
    assert used <= set(theme.CLASSES.values())


def test_lines_differ_in_more_than_color() -> None:
    styles = [MemberStyle("line", i) for i in range(24)]
    pairs = {(theme.color_of(style), str(theme.dash_of(style))) for style in styles}
    assert len(pairs) == 24
    assert len({str(theme.dash_of(style)) for style in styles[:3]}) == 3


def test_marks_of_a_map_are_triangles_for_rare_and_squares_for_frequent_tokens() -> None:
    svg = render_svg(specification("scatter"))
    paths = dict(re.findall(r'fig-(rare|blue)-fill"[^>]* d="([^"]*)"', svg))
    paths |= {k: d for d, k in re.findall(r' d="([^"]*)"[^>]*fig-(rare|blue)-fill', svg)}
    corners = {kind: (d.count("L"), d.count("M")) for kind, d in paths.items() if d.count("M") > 1}
    assert corners["rare"][0] == 2 * corners["rare"][1]
    assert corners["blue"][0] == 3 * corners["blue"][1]


def test_the_view_holds_the_origin_and_nearly_all_points() -> None:
    xy = np.random.default_rng(0).standard_normal((10_000, 2)) + np.array([50.0, 0.0])
    xy[0] = 1e6
    view = fit_view(xy)
    left, right, bottom, top = view.box
    assert left < 0 < right < 100
    assert bottom < 0 < top
    assert view.holds(xy).mean() > 0.99
    assert not view.holds(xy)[0]


def test_one_point_at_the_origin_has_a_view() -> None:
    left, right, bottom, top = fit_view(np.zeros((1, 2))).box
    assert left < right
    assert bottom < top


def test_a_flat_cloud_has_a_picture_of_some_height() -> None:
    for height, shown in ((0.0, 0.3), (0.2, 0.3), (0.5, 0.5), (1.0, 1.0)):
        view = surround(np.zeros(2), np.array([1.0, height]), flat=0.3, margin=0.1)
        assert (view.left, view.right) == pytest.approx((-0.1, 1.1))
        assert view.top - view.bottom == pytest.approx(shown + 0.2)
        assert view.top + view.bottom == pytest.approx(height)


def test_dots_take_a_share_of_the_panel_and_never_vanish() -> None:
    assert dot_size(1000, 2.0) == pytest.approx(4.0 * dot_size(1000, 1.0))
    assert dot_size(1000, 2.0) == pytest.approx(2.0 * dot_size(2000, 2.0))
    assert dot_size(10**9, 1.0) > 0.0


def test_marks_are_upright_triangles_and_squares_of_one_size() -> None:
    ax, view = Figure().add_subplot(), View(-5.0, 5.0, -5.0, 5.0)
    cloud = Cloud(np.array([[1.0, 2.0], [-3.0, 1.0]]), popular=np.array([False, True]))
    draw_marks([ax], [cloud], [view])
    for center, corners, artist in zip(cloud.xy, (3, 4), ax.patches, strict=True):
        from_center = artist.get_path().vertices[:corners] - center
        np.testing.assert_allclose(np.hypot(*from_center.T), MARK * view.span)
        turns = np.sort(np.arctan2(from_center[:, 1], from_center[:, 0]))
        np.testing.assert_allclose(np.diff(turns), 2.0 * np.pi / corners)
        assert np.isclose(turns, np.pi / 2).any() == (corners == 3)
        assert np.isclose(turns, np.pi / 4).any() == (corners == 4)


def test_powers_of_ten() -> None:
    for value, text in (
        (1.0, "1"),
        (0.001, "0.001"),
        (1e-6, "10⁻⁶"),
        (2e5, "2·10⁵"),
        (500.0, "500"),
    ):
        assert write_tick(value, write_power) == text


def test_maps_share_a_scale_unless_one_would_be_a_dot() -> None:
    cloud = np.random.default_rng(0).standard_normal((200, 2))
    near = common_views([cloud, 3.0 * cloud])
    assert near[0] == near[1]
    far = common_views([cloud, 30.0 * cloud])
    assert far[0] != far[1]
    assert far[0] == common_views([cloud])[0]


def test_a_widened_view_has_the_shape_of_its_panel() -> None:
    view = widen(View(-1.0, 1.0, -4.0, 4.0), 0.5)
    assert (view.top - view.bottom) / (view.right - view.left) == pytest.approx(0.5)
    assert view.bottom <= -4.0
    assert view.top >= 4.0


def test_a_logarithmic_axis_spans_the_whole_range_of_floats() -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    set_log_ticks(ax.yaxis, np.array([5e-324, 1.0, 1e308]), write_power)
    assert ax.get_yscale() == "log"
    panel = Panel(Axis("k"), Axis("Z", log=True), (Line(np.arange(2.0), np.array([1.0, 1e308])),))
    with svg.settings():
        draw_panel(ax, panel, svg.MEDIUM, {})
        assert ax.get_ylim()[0] <= 1.0


@pytest.mark.parametrize(("top", "limits"), [(0.0, (0.0, 1.0)), (3.0, (-0.15, 3.15))])
def test_a_count_that_stays_zero_is_not_shown_below_it(
    top: float, limits: tuple[float, float]
) -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    steps = np.array([1.0, 2.0])
    panel = Panel(Axis("step"), Axis("rows"), (Line(steps, np.array([0.0, top])),))
    draw_panel(ax, panel, svg.MEDIUM, {})
    assert ax.get_ylim() == pytest.approx(limits)


@pytest.mark.parametrize("ends", [(4.38, 5.43), (0.52, 0.92), (1.1, 2.1)])
def test_a_flat_panel_has_three_ticks(ends: tuple[float, float]) -> None:
    line = Line(np.arange(5.0), np.linspace(*ends, 5))
    panel = Panel(Axis("step"), Axis("loss"), (line,), title="validation perplexity of all words")
    spec = Specification((panel,) * 4, "")
    with paper.settings():
        figure, _ = draw(spec, paper.output(3.03, str))
        figure.draw_without_rendering()
    for ax in figure.axes:
        low, top = ax.get_ylim()
        assert sum(low <= tick <= top for tick in ax.get_yticks()) >= 3


def test_large_numbers_are_short() -> None:
    for value, text in (
        (0.0, "0"),
        (500.0, "500"),
        (5000.0, "5,000"),
        (9999.0, "9,999"),
        (10_000.0, "10k"),
        (2e6, "2,000k"),
    ):
        assert shorten(value) == text


def test_steps_over_other_edges_keep_their_heights() -> None:
    steps = HistogramSteps(np.array([0.0, 1.0, 3.0]), np.array([2.0, 5.0]))
    edges = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
    assert step_values(steps, edges).tolist() == [0.0, 2.0, 2.0, 5.0, 5.0, 5.0]
    further = np.array([0.0, 3.0, 4.0])
    assert step_values(steps, further).tolist() == [2.0, 0.0, 0.0]


NAMES = (*HOSTILE, "_hidden", "$x$ % & # _")


def test_any_name_can_stand_in_a_legend() -> None:
    for names in [NAMES[i::5] for i in range(5)]:
        step_curves = {"train.loss": COURSES["train.loss"]}
        spec = find_chart("training").specify(
            [ChartItem(name, step_curves=step_curves) for name in ("plain", *names)]
        )
        assert spec is not None
        texts = {e.text for e in ElementTree.fromstring(render_svg(spec)).iter() if e.tag == "text"}
        assert "plain" in texts
        stripped = {(text or "").strip() for text in texts} | {""}
        for name in names:
            assert drawable(name).strip() in stripped
            assert len(drawable(name)) <= LONGEST + 1


def test_long_names_keep_both_ends() -> None:
    shown = drawable("/data/runs/gpt2-cosreg-gamma-0.1-seed-3/step-40000.safetensors")
    assert len(shown) == LONGEST
    assert shown.startswith("/data/runs/gp")
    assert shown.endswith(".safetensors"[-12:])


def test_names_in_papers_are_drawn_letter_by_letter() -> None:
    assert paper.plain_text("$x$") == r"\$x\$"
    assert paper.plain_text("\u202eevil\u202c") == "□evil□"
    assert paper.plain_text("日本") == "□□"
    assert len(paper.plain_text("x" * 99)) == paper.LIMIT
    for output, name in product((svg.MEDIUM, paper.output(3.0, paper.plain_text)), HOSTILE):
        assert "\n" not in output.write_name(name)


def test_labels_of_the_user_are_no_mathematics() -> None:
    write = paper.output(3.0, paper.plain_text).write_label
    assert write("σ_k / σ_1").startswith("$")
    assert write("tau") == r"$\tau$"
    assert write("$tau$") == r"\$tau\$"


def test_pgf_without_latex_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with refusal(BadOption):
        paper.check_format("pgf")
    paper.check_format("pdf")


def test_every_point_is_drawn_in_a_picture() -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    xy = next(p.xy for p in sample().points)
    draw_dots(ax, xy, theme.POPULAR.light, 2.0)
    (cloud,) = ax.collections
    assert sorted(map(tuple, np.asarray(cloud.get_offsets()))) == sorted(map(tuple, xy))
    assert cloud.get_zorder() < ax.get_rasterization_zorder()


@pytest.mark.parametrize(("shift", "alone"), [(20.0, True), (2.0, False)])
def test_a_cloud_far_from_the_origin_is_shown_by_itself_first(shift: float, alone: bool) -> None:
    xy = np.random.default_rng(0).standard_normal((500, 2))
    xy[:, 0] += shift
    view = fit_cloud(xy)
    assert (view is not None) == alone
    if view is not None:
        assert view.left > 0.0
        assert np.mean(view.holds(xy)) > 0.99

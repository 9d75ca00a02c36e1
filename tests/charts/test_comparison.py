"""Figures of a comparison: safe with any name, the same bytes, fair scales."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

import embgeo.charts.compared
from embgeo.charts.compared import FIGURES, render_svg
from embgeo.charts.compared.bars import density
from embgeo.charts.compared.base import ComparedFigure, looks, spread
from embgeo.charts.compared.maps import common_boxes
from embgeo.charts.compared.training import chosen
from embgeo.comparison.comparison import Comparison, Member
from embgeo.core.values import Histogram, Points
from embgeo.core.visible import LONGEST, drawable
from embgeo.result.analysis import Analysis
from tests.support.sample_analysis import HOSTILE
from tests.support.sample_comparison import sample_comparison
from tests.support.sample_values import quantity

each_figure = pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
KINDS = ({}, {"hostile": True, "members": 3}, {"track": True, "members": 6})


def named(*names: str) -> Comparison:
    """A comparison of two members with these names."""
    found = sample_comparison()
    pairs = zip(found.members, names, strict=True)
    return replace(found, members=tuple(replace(m, name=name) for m, name in pairs))


@each_figure
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_svg_is_sound_and_keeps_to_itself(figure: ComparedFigure, kind: dict[str, int]) -> None:
    svg = render_svg(sample_comparison(**kind), figure)  # type: ignore[arg-type]
    if svg is None:
        assert figure.name == "training"
        assert "track" not in kind
        return
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        assert element.tag not in ("style", "script", "image", "metadata", "foreignObject")
        assert "style" not in element.attrib
        assert not [name for name in element.attrib if name.startswith("on")]
        assert not [value for value in element.attrib.values() if "http" in value]
    ids = re.findall(r' id="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(i.startswith(f"{figure.name}-") for i in ids)
    # Mathematics that was not drawn would show its source.
    assert "mathdefault" not in svg


@each_figure
def test_equal_comparisons_give_equal_bytes_under_any_settings(figure: ComparedFigure) -> None:
    whole = sample_comparison(track=True, members=4)
    first = render_svg(whole, figure)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "lines.linewidth": 9}):
        assert render_svg(whole, figure) == first


@each_figure
def test_nothing_is_drawn_without_values(figure: ComparedFigure) -> None:
    empty = Analysis(provenance={})
    members = (Member("a", "a.pt", empty), Member("b", "b.pt", empty))
    assert render_svg(Comparison(provenance={}, members=members), figure) is None


def test_every_module_with_a_figure_is_listed() -> None:
    home = embgeo.charts.compared
    modules = [
        importlib.import_module(f"{home.__name__}.{i.name}")
        for i in pkgutil.iter_modules(home.__path__)
    ]
    found = {m.FIGURE.name for m in modules if hasattr(m, "FIGURE")}
    assert found == {f.name for f in FIGURES}
    assert len(FIGURES) == len(found)


@pytest.mark.parametrize("name", [*HOSTILE, "_hidden", "$x$ % & # _"])
def test_any_name_can_stand_in_a_legend(name: str) -> None:
    spectra = next(f for f in FIGURES if f.name == "spectra")
    svg = render_svg(named("plain", name), spectra)
    assert svg is not None
    texts = {"".join(e.itertext()) for e in ElementTree.fromstring(svg).iter() if e.tag == "text"}
    assert "plain" in texts
    assert drawable(name).strip() in {t.strip() for t in texts} | {""}
    assert len(drawable(name)) <= LONGEST + 1


def test_long_names_keep_both_ends() -> None:
    shown = drawable("/data/runs/gpt2-cosreg-gamma-0.1-seed-3/step-40000.safetensors")
    assert len(shown) == LONGEST
    assert shown.startswith("/data/runs/gp")
    assert shown.endswith(".safetensors"[-12:])


def test_members_of_a_long_run_are_drawn_from_both_ends_and_between() -> None:
    assert spread(3, 5) == [0, 1, 2]
    assert spread(11, 5) == [0, 2, 5, 8, 10]
    drawn = looks(sample_comparison(track=True, members=6))
    assert [look.place for look in drawn] == [0, 1, 2, 4, 5]
    assert len({look.color for look in drawn}) == 5
    assert drawn[0].label == "step 500"


def test_lines_are_told_apart_by_color_and_by_dashes() -> None:
    drawn = looks(sample_comparison(members=5))
    assert len({look.color for look in drawn}) == 5
    assert len({str(look.dash) for look in drawn[:3]}) == 3


def test_densities_of_different_bins_have_the_same_area() -> None:
    edges = np.array([0.0, 1.0, 3.0, 7.0])
    bars = Histogram(quantity("a.b", "x"), edges, np.array([2.0, 0.0, 6.0]), "x", "n")
    assert density(bars) == pytest.approx([0.25, 0.0, 0.1875])
    assert density(bars) @ np.diff(edges) == pytest.approx(1.0)
    nothing = Histogram(quantity("a.b", "x"), edges, np.zeros(3), "x", "n")
    assert density(nothing) == pytest.approx([0.0, 0.0, 0.0])


def cloud(scale: float) -> Points:
    xy = scale * np.random.default_rng(0).standard_normal((200, 2))
    return Points(quantity("projection.svd2", "x"), xy, "x", "y", (0.5, 0.1))


def test_maps_share_a_scale_unless_one_would_be_a_dot() -> None:
    near = common_boxes([cloud(1.0), cloud(3.0)])
    assert near[0] == near[1]
    far = common_boxes([cloud(1.0), cloud(30.0)])
    assert far[0] != far[1]
    assert far[0] == common_boxes([cloud(1.0)])[0]


def test_curves_of_a_track_stand_in_the_order_of_importance() -> None:
    track = sample_comparison(track=True, members=4).track
    assert track is not None
    titles = [title for _, title in chosen(track)]
    assert titles[:2] == ["mean cosine", "effective rank"]
    assert "neighbor overlap with the one before" in titles


def test_a_bend_is_named_with_its_step() -> None:
    training = next(f for f in FIGURES if f.name == "training")
    svg = render_svg(sample_comparison(track=True, members=4), training)
    assert svg is not None
    assert "I1, as stored · bend at 1,000" in svg

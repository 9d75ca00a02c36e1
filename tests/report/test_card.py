"""The card of a result: one picture of 1200 × 630."""

from __future__ import annotations

import struct
from xml.etree import ElementTree

import pytest

from embgeo.cli.app import run
from embgeo.report.card import draw_card
from tests.support.sample_analysis import sample
from tests.support.sample_comparison import sample_comparison


@pytest.mark.slow
@pytest.mark.parametrize("result", [sample(hostile=True), sample_comparison(track=True, members=3)])
def test_the_card_says_what_the_page_says(result):
    svg, png = draw_card(result)
    root = ElementTree.fromstring(svg)
    assert (root.get("width"), root.get("height")) == ("1200", "630")
    assert struct.unpack(">II", png[16:24]) == (1200, 630)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "Mean cosine" in " ".join(filter(None, texts))
    assert draw_card(result) == (svg, png)


@pytest.mark.slow
def test_embgeo_report_writes_it_beside_the_page(tmp_path):
    sample().save(tmp_path / "one")
    assert run(["report", str(tmp_path / "one"), "--card"]) == 0
    assert {"card.svg", "card.png", "report.html"} <= {p.name for p in (tmp_path / "one").iterdir()}

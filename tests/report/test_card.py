"""The card of a result: one picture of 1200 × 630."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from embgeo.cli.app import run
from embgeo.report.card import draw_card, find_best
from tests.support.record import check_record, drawn_by_pinned
from tests.support.sample_analysis import sample
from tests.support.sample_comparison import sample_comparison
from tests.support.sample_runs import SAMPLES, embeddings, sample_training

RESULTS = {
    "analysis": [
        replace(
            (hostile := sample(hostile=True)),
            scalars=tuple(
                replace(one, quantity=replace(one.quantity, unit="\0\ud800"))
                for one in hostile.scalars
            ),
        )
    ],
    "track": [sample_comparison(track=True, members=3)],
    "study": [sample_training(), embeddings()],
    "alone": [sample_training(methods=("mle",), seeds=1)],
}


@drawn_by_pinned
@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_the_card_is_the_one_that_was_read(name):
    svg, png = draw_card(*RESULTS[name])
    root = ElementTree.fromstring(svg)
    assert (root.get("width"), root.get("height")) == ("1200", "630")
    assert struct.unpack(">II", png[16:24]) == (1200, 630)
    lines = [
        " ".join(one.get(key, "") for key in ("transform", "x", "y", "font-size")) + f": {one.text}"
        for one in root.iter("{http://www.w3.org/2000/svg}text")
    ]
    check_record(Path(__file__).with_name("cards.txt"), name, lines, apart=0.02)
    assert draw_card(*RESULTS[name]) == (svg, png)


def test_the_card_of_a_study_is_about_one_method_and_no_control(monkeypatch):
    monkeypatch.setitem(SAMPLES, "untied", (90.0, 1.0))
    monkeypatch.setitem(SAMPLES, "cosreg", (120.0, 1.0))
    study = sample_training(methods=("mle", "cosreg", "untied", "al"), seeds=2)
    assert find_best(study).name == "al"
    said = draw_card(study)[0]
    assert "AL changed" in said
    assert "COSREG" not in said


@pytest.mark.slow
def test_the_map_of_the_card_is_around_the_origin():
    _, png = draw_card(sample("isotropic"))
    pixels = 255.0 * imread(io.BytesIO(png))[..., :3]
    gray = np.abs(pixels - [128, 128, 136]).max(axis=2) < 60.0
    assert 750 < int(gray.sum(axis=0).argmax()) < 1100  # the vertical axis


@pytest.mark.slow
def test_embgeo_report_writes_it_beside_the_page(tmp_path):
    sample().save(tmp_path / "one")
    assert run(["report", str(tmp_path / "one"), "--card"]) == 0
    assert {"card.svg", "card.png", "report.html"} <= {p.name for p in (tmp_path / "one").iterdir()}

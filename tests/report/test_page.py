"""The page as text: complete without scripts, closed to the outside, and safe with any token."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.charts import CHARTS
from embgeo.charts.items import ChartItem
from embgeo.core.text import HIDDEN, LIMIT, visible
from embgeo.core.values import Note, Quantity, Table
from embgeo.diagnosis.finding import Finding
from embgeo.diagnosis.findings import FINDINGS
from embgeo.report import page as pages
from embgeo.report.analysis import CHECKED, render, sort_evidence
from embgeo.report.page import draw_charts, script_json
from embgeo.report.tables import (
    HEADLINES,
    facts,
    number_table,
    provenance_rows,
    start_sentence,
    table_view,
)
from embgeo.result.analysis import Analysis, load_analysis
from tests.support.html_page import Page
from tests.support.outlined import drawn_or_not, drawn_pages, outline_figures
from tests.support.sample_analysis import sample, without
from tests.support.sampling import sample_cases


@cache
def html(*, drawn: bool = False, **options: Any) -> str:
    with nullcontext() if drawn else outline_figures():
        return render(sample(**options))


@cache
def page(**options: Any) -> Page:
    return Page(html(**options))


ALL = [
    {},
    {"hostile": True},
    {"shape": "isotropic", "counts": False, "untied": False},
    {"shape": "two-sided", "n": 40, "d": 2},
]


each_kind = pytest.mark.parametrize(
    "options", [*ALL, *drawn_pages(ALL, keep=lambda kind: "hostile" in kind)], ids=str
)


@each_kind
def test_the_page_is_whole_and_needs_nothing_else(options: dict[str, Any]) -> None:
    page(**options).check_structure(50)


def test_every_own_file_is_in_a_page() -> None:
    folder = Path(pages.__file__).parent / "static"
    listed = {*pages.OWN_SCRIPTS, *pages.STYLES, *pages.VENDOR_SCRIPTS}
    found = {
        p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.suffix in (".js", ".css")
    }
    assert found == listed


# --- untrusted text ---------------------------------------------------------------------------


@drawn_or_not
def test_hostile_tokens_make_no_element_and_no_attribute(drawn: bool) -> None:
    """A vocabulary of attacks and the same page with harmless tokens have the same structure."""
    calm, hostile = page(drawn=drawn), page(drawn=drawn, hostile=True)
    assert calm.tags == hostile.tags
    assert Counter(a[:2] for a in calm.attributes) == Counter(a[:2] for a in hostile.attributes)
    assert "window.pwned" in hostile.text
    assert "window.pwned" not in "".join(text for _, text in hostile.scripts)


@pytest.mark.usefixtures("outlines")
def test_hostile_names_and_reasons() -> None:
    attack = "</style><script>window.pwned=1</script>\u202e"
    analysis = sample(counts=False)
    analysis = replace(
        analysis,
        provenance={**analysis.provenance, "file": attack, "tensor": attack, "command": attack},
        notes=(Note("loading", attack),),
        absent={"frequency": attack, attack: attack},
    )
    parsed = Page(render(analysis))
    assert parsed.open == []
    assert len([1 for attrs, _ in parsed.scripts if "type" not in attrs]) == 3
    assert "\u202e" not in render(analysis)
    assert "‹U+202E›" in parsed.text


def test_json_in_the_page_cannot_end_its_element() -> None:
    text = script_json({"x": "</script><!-- & \u2028\u2029 é"})
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == {"x": "</script><!-- & \u2028\u2029 é"}


def test_options_stay_whole_and_everything_else_is_escaped() -> None:
    html = pages.keep_options_whole("give --rank-order or <--counts> & -- -k")
    order, counts = (f'<span class="option">--{name}</span>' for name in ("rank-order", "counts"))
    assert html == f"give {order} or &lt;{counts}&gt; &amp; -- -k"


def test_visible() -> None:
    for token, shown in (
        ("plain", "plain"),
        ("", "‹empty›"),
        (" the", "␣the"),
        ("the  ", "the␣␣"),
        ("   ", "␣␣␣"),
        ("a b", "a b"),
        ("a\nb\tc\rd", "a⏎b⇥c‹CR›d"),
        ("\x00", "‹U+0000›"),
        ("\u202eabc", "‹U+202E›abc"),
        ("a\u200bb", "a‹U+200B›b"),
        ("\ud800", "‹U+D800›"),
        ("\U000e0041", "‹U+E0041›"),
        ("\u0301x", "◌\u0301x"),
        ("\u034f", "◌\u034f"),
        ("\ufe0f", "‹U+FE0F›"),
        ("<b>", "<b>"),
        ("x" * LIMIT, "x" * LIMIT),
        ("x" * 5000, "x" * LIMIT + "… (5,000 characters)"),
    ):
        assert visible(token) == shown


def test_controls_and_blanks_are_hidden_and_signs_are_not() -> None:
    """A blank braille pattern alone is a symbol for Unicode."""
    for code in range(0x20000):
        kind = unicodedata.category(chr(code))
        is_hidden = any(first <= code <= last for first, last in HIDDEN)
        if kind in ("Cc", "Cs", "Co", "Zl", "Zp", "Zs"):
            assert is_hidden == (code != ord(" ")), hex(code)
        elif kind[0] in "NPS":
            assert is_hidden == (code == 0x2800), hex(code)


def test_rare_neighbors_keep_their_star_behind_any_token() -> None:
    rows = ((" the * *", " <b>", "x" * 200),)
    names = ("token", "neighbor 1", "neighbor 2")
    table = Table(Quantity("a.b", "t", "m"), names, rows, rare=((0, 1), (0, 2)))
    token, near, long = table_view(table).rows[0]
    assert (token.text, token.mark) == ("␣the * *", "")
    assert (near.text, near.mark) == ("␣<b>", "\u00a0*")
    assert (long.text[-17:], long.mark) == ("… (200 characters)"[-17:], "\u00a0*")


# --- content --------------------------------------------------------------------------------


@pytest.mark.usefixtures("outlines")
def test_every_chart_has_its_caption_and_its_data() -> None:
    gallery = draw_charts([ChartItem("", sample())], "analysis")
    # And the overlay of the map, three signs of its legend, and the cosines after a treatment.
    assert page().tags["svg"] == len(gallery.left) + 5
    for figure in gallery.left.values():
        assert figure.caption in page().text
    asked = {value for _, name, value in page().attributes if name == "data-chart"}
    assert asked == set(gallery.charts)


def test_every_number_is_shown_with_its_definition() -> None:
    analysis, parsed = sample(), page()
    for value in analysis.values():
        identity = "def-" + value.name.replace(".", "-")
        assert parsed.ids[identity] == 1
        assert value.quantity.meaning in parsed.text
        assert value.quantity.formula in parsed.text
    for scalar in analysis.scalars:
        assert scalar.text in parsed.text
        assert f"#def-{scalar.name.replace('.', '-')}" in parsed.links


@pytest.mark.parametrize(
    "family", ["spectrum", "projection", "cosine", "isotropy", "frequency", "subspace", "tokens"]
)
@pytest.mark.usefixtures("outlines")
@pytest.mark.slow
def test_any_family_may_be_left_out(family: str) -> None:
    parsed = Page(render(without(sample(), family)))
    assert parsed.open == []
    assert all(link[1:] in parsed.ids for link in parsed.links)
    assert "skipped with --sections" in parsed.text
    assert ("embgeo-block" in parsed.ids) == (family != "projection")


@pytest.mark.parametrize("section", ["", "projection"])
@pytest.mark.usefixtures("outlines")
def test_every_chart_is_on_the_page(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose section is a family that has none: it follows the numbers of the family."""
    if section:
        changed = [replace(c, section=section) if c.name == "decay" else c for c in CHARTS]
        monkeypatch.setattr("embgeo.report.page.CHARTS", tuple(changed))
    gallery = draw_charts([ChartItem("", sample())], "analysis")
    assert "decay" in gallery
    text = Page(render(sample())).text
    for figure in gallery.left.values():
        assert figure.caption in text, f"{figure.name}: no section {figure.section!r} of a report"


@pytest.mark.usefixtures("outlines")
def test_almost_nothing_is_still_a_page() -> None:
    parsed = Page(render(Analysis(provenance={})))
    assert "Undecided" in parsed.headings[1]
    assert parsed.open == []


def test_readings_name_each_number_once() -> None:
    assert len({q.name for q, _ in HEADLINES}) == len(HEADLINES)
    held = {s.name for s in sample().scalars}
    assert {q.name for q, _ in HEADLINES} <= held


def test_what_all_numbers_share_is_said_once() -> None:
    scalars = [s for s in sample().scalars if s.quantity.family == "isotropy"]
    scalars = [replace(s, convention=f"{s.name}; natural logarithms") for s in scalars]
    table = number_table("Isotropy", scalars)
    assert table.common.endswith("natural logarithms")
    assert [taken for _, _, taken in table.rows] == [s.name for s in scalars]


@pytest.mark.slow
def test_equal_analyses_give_equal_bytes(tmp_path: Path) -> None:
    sample(hostile=True).save(tmp_path)
    assert render(load_analysis(tmp_path)) == html(drawn=True, hostile=True)


@pytest.mark.parametrize(("n", "most"), sample_cases([(10_000, 4_000_000), (50_000, 7_000_000)], 2))
@pytest.mark.slow
def test_page_of_many_tokens_stays_small(n: int, most: int) -> None:
    assert len(html(drawn=True, n=n, d=16).encode()) < most


@pytest.mark.parametrize(("stored", "transposed"), [([39_078, 10], False), ([10, 39_078], True)])
def test_a_range_of_rows_says_of_how_many(stored: list[int], transposed: bool) -> None:
    cut = {"row_range": [0, 19_539], "stored_shape": stored, "transposed": transposed}
    analysis = Analysis(provenance={"kept": 19_539, "d": 10, **cut})
    assert facts(analysis) == [
        "19,539 tokens × 10 dimensions",
        "rows 0–19,538 of 39,078",
        "none of these rows left out",
    ]
    assert dict(provenance_rows(cut))["row_range"] == "0:19539"
    assert dict(provenance_rows(cut))["stored_shape"] == " × ".join(map(str, stored))


def test_a_sentence_starts_with_a_capital_but_symbols_stay() -> None:
    for text, shown in (
        ("frequent: the 20%", "Frequent: the 20%"),
        ("reference, unless", "Reference, unless"),
        ("d, not d²", "d, not d²"),
        ("c₂ ≤ 20", "c₂ ≤ 20"),
        ("* rare", "* rare"),
        ("", ""),
    ):
        assert start_sentence(text) == shown


def test_findings_are_sorted_by_severity_and_healthy_ones_are_folded() -> None:
    states = ("healthy", "mild", "undecided", "degenerate")
    keys = ("isotropy", "cone", "clusters", "spectrum")
    found = [Finding(key, key, state, ("s",)) for key, state in zip(keys, states, strict=True)]
    sorted_ = sort_evidence(found)
    assert [f.state for f in sorted_["evidence"]] == ["degenerate", "mild", "undecided"]
    assert sorted_["fine"] == [("isotropy", found[0])]
    calm = sort_evidence(found[:1])
    assert (calm["evidence"], calm["fine"]) == (found[:1], [])


def test_a_reason_for_deciding_nothing_is_given_once() -> None:
    reasons = ("too few rows", "no counts", "too few rows")
    keys = ("cone", "frequency", "spectrum")
    found = [
        Finding(key, key, "undecided", ("s",), open=reason)
        for key, reason in zip(keys, reasons, strict=True)
    ]
    assert [f.key for f in sort_evidence(found)["evidence"]] == ["cone", "frequency"]


def test_every_question_has_a_name_for_the_line_of_healthy_findings() -> None:
    assert {*CHECKED, "suspects"} == {question.QUESTION.key for question in FINDINGS}


@pytest.mark.slow
def test_the_page_says_what_is_estimated_and_how_many_neighbors_are_missed() -> None:
    analysis = embgeo.analyze(np.random.default_rng(0).standard_normal((400, 6)))
    assert analysis.treated_places is not None
    assert analysis.nearest is not None
    text = Page(render(analysis)).text
    assert "≈ and the histogram" not in text
    assert "leading coordinates" not in text
    changed = replace(
        analysis,
        treated_places=replace(analysis.treated_places, sampled=399),
        nearest=replace(analysis.nearest, recall=0.9944),
    )
    text = Page(render(changed)).text
    assert "≈ and the histogram: from 399 rows drawn at random" in text
    assert "99.4% of the true nearest 10 of 500 sampled tokens" in text

"""The page of a comparison as text: complete without scripts, closed, safe with any token."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from embgeo.cli.app import run
from embgeo.comparison.comparison import Comparison, Member, load_comparison
from embgeo.comparison.matching import Matching
from embgeo.comparison.moved import list_moved_tokens
from embgeo.core.numbers import format_signed
from embgeo.report.comparison import draw_comparison, render
from embgeo.report.comparison_tables import (
    choose_places,
    curve_families,
    small_curve,
)
from embgeo.result.analysis import Analysis
from tests.support.html_page import Page
from tests.support.outlined import drawn_or_not, drawn_pages, outline_figures
from tests.support.sample_comparison import sample_comparison


@cache
def html(*, drawn: bool = False, **options: Any) -> str:
    with nullcontext() if drawn else outline_figures():
        return render(sample_comparison(**options))


@cache
def page(**options: Any) -> Page:
    return Page(html(**options))


ALL = [
    {},
    {"hostile": True},
    {"members": 4},
    {"members": 6, "track": True},
    {"matrices": False},
]

each_kind = pytest.mark.parametrize(
    "options", [*ALL, *drawn_pages(ALL, keep=lambda kind: "hostile" in kind)], ids=str
)


@each_kind
def test_the_page_is_whole_and_needs_nothing_else(options: dict[str, Any]) -> None:
    page(**options).check_structure(50)


# --- untrusted text ---------------------------------------------------------------------------


@drawn_or_not
def test_hostile_tokens_and_names_make_no_element_and_no_attribute(drawn: bool) -> None:
    calm, hostile = page(drawn=drawn), page(drawn=drawn, hostile=True)
    assert _shape(calm) == _shape(hostile)
    assert "window.pwned" in hostile.text
    assert "window.pwned" not in "".join(
        text for attrs, text in hostile.scripts if "type" not in attrs
    )
    assert "<script>window.pwned" not in html(drawn=drawn, hostile=True)


def _shape(parsed: Page) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Elements and attributes outside the figures, where a longer name takes another layout."""
    drawn = {"g", "path", "text", "use", "defs", "clipPath", "rect", "line"}
    tags = Counter({tag: n for tag, n in parsed.tags.items() if tag not in drawn})
    return tags, Counter(a[:2] for a in parsed.attributes if a[0] not in drawn)


@pytest.mark.usefixtures("outlines")
def test_hostile_sentences_notes_and_reasons() -> None:
    attack = "</style><script>window.pwned=1</script>\u202e"
    found = sample_comparison(members=3)
    pair = replace(found.pairs[0], matching=Matching(None, attack))
    members = tuple(
        replace(m, name=f"{i}{attack}", given=attack) for i, m in enumerate(found.members)
    )
    attacked = replace(
        found,
        provenance={"command": attack, attack: attack},
        members=members,
        pairs=(pair, *found.pairs[1:]),
        sentences=(attack,) * 4,
        notes=(attack,),
    )
    parsed = Page(render(attacked))
    assert parsed.open == []
    assert len([1 for attrs, _ in parsed.scripts if "type" not in attrs]) == 3
    assert "\u202e" not in render(attacked)
    assert "‹U+202E›" in parsed.text


# --- content --------------------------------------------------------------------------------


def test_every_number_is_shown_with_its_definition() -> None:
    parsed, found = page(), sample_comparison()
    values = [v for m in found.members for v in m.analysis.values()]
    for value in [*values, *(v for pair in found.pairs for v in pair.values())]:
        assert parsed.ids["def-" + value.name.replace(".", "-")] == 1
        assert value.quantity.meaning in parsed.text
    for d in found.differences:
        scalar = found.members[d.member].analysis.find_scalar(d.name)
        assert scalar is not None
        assert scalar.text in parsed.text
        if d.difference is not None:
            assert format_signed(d.difference) in parsed.text


@pytest.mark.usefixtures("outlines")
def test_arrows_stand_only_where_a_direction_is_defined() -> None:
    found = sample_comparison()
    assert "▲ better" not in page().text
    first = found.differences[0]
    changed = replace(
        found, differences=(replace(first, direction="better"), *found.differences[1:])
    )
    assert "▲ better" in Page(render(changed)).text
    worse = replace(found, differences=(replace(first, direction="worse"), *found.differences[1:]))
    assert "▼ worse" in Page(render(worse)).text


def test_neighbors_that_stayed_and_rare_ones_are_marked() -> None:
    found = sample_comparison()
    pair = found.pairs[0]
    table = pair.tables[0]
    row = ["tok0", *table.rows[0][1:]]
    row[table.columns.index("after 1")] = row[table.columns.index("before 1")] = "tok500"
    changed = replace(pair, tables=(replace(table, rows=(tuple(row),)),))
    (line,) = list_moved_tokens(found, changed)
    assert (line.token, line.rare) == ("tok0", False)
    assert (line.before[0].text, line.before[0].rare, line.before[0].kept) == ("tok500", True, True)
    assert (line.after[0].rare, line.after[0].kept) == (True, True)
    assert not line.before[1].kept
    assert len(line.before) == len(line.after) == 10


@pytest.mark.usefixtures("outlines")
def test_tokens_that_did_not_move_are_not_among_those_that_moved() -> None:
    found = sample_comparison()
    pair = found.pairs[0]
    table = pair.tables[0]
    at = table.columns.index("overlap")
    still = tuple((*row[:at], 1.0, *row[at + 1 :]) for row in table.rows)

    def with_rows(rows: Any) -> Comparison:
        return replace(found, pairs=(replace(pair, tables=(replace(table, rows=rows),)),))

    one = with_rows((*still[:3], table.rows[3], *still[4:]))
    assert [line.token for line in list_moved_tokens(one, one.pairs[0])] == [table.rows[3][0]]
    text = Page(render(with_rows(still))).text
    assert "all examined tokens keep all their neighbors" in text


def test_a_long_run_is_cut_to_its_ends_and_what_lies_between() -> None:
    found = sample_comparison(members=6, track=True)
    assert choose_places(found) == [1, 2, 4, 5]
    assert choose_places(sample_comparison(members=3)) == [1, 2]


@pytest.mark.usefixtures("outlines")
def test_a_run_without_bends_says_so() -> None:
    found = sample_comparison(members=6, track=True)
    assert found.track is not None
    straight = tuple(replace(c, change_point=None) for c in found.track.curves)
    flat = replace(found, track=replace(found.track, curves=straight))
    assert "No turning point." in Page(render(flat)).text


def test_every_number_of_a_run_has_a_curve_and_both_ends() -> None:
    found, parsed = sample_comparison(members=6, track=True), page(members=6, track=True)
    assert found.track is not None
    views = [view for _, listed in curve_families(found.track) for view in listed]
    assert len(views) == len(found.track.curves)
    assert parsed.tags["polyline"] == sum(len(view["lines"]) for view in views)
    view = next(v for v in views if v["quantity"].name == "cosine.mean")
    assert (view["first"], view["bend"]) == ("0.6558", "its slopes may be in random order")
    bent = next(v for v in views if v["quantity"].name == "isotropy.i1")
    assert (bent["bend"], bent["bend_x"]) == ("step 1,000", "25.2")


def test_small_curves_rise_where_numbers_rise_and_break_at_gaps() -> None:
    assert small_curve((0.0, 1.0, 3.0), (1.0, 2.0, 4.0)) == ("2,24 40.7,16.7 118,2",)
    assert small_curve((0.0, 1.0, 2.0), (5.0, None, 5.0)) == ("1,13 3,13", "117,13 119,13")
    assert small_curve((0.0, 1.0), (None, None)) == ()
    assert small_curve((500.0,), (1.0,)) == ("59,13 61,13",)


@pytest.mark.usefixtures("outlines")
def test_almost_nothing_is_still_a_page() -> None:
    empty = Analysis(provenance={})
    bare = Comparison(provenance={}, members=(Member("a", "a", empty), Member("b", "b", empty)))
    parsed = Page(render(bare))
    assert parsed.open == []
    assert parsed.headings[1] == "Undecided before, undecided after."
    assert all(link[1:] in parsed.ids for link in parsed.links)
    assert not parsed.scripts


# --- charts ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("outlines")
def test_every_chart_is_on_the_page_and_its_data_too() -> None:
    for options in ALL:
        comparison = sample_comparison(**options)
        asked = {v for _, name, v in page(**options).attributes if name == "data-chart"}
        gallery = draw_comparison(comparison)
        assert asked == set(gallery.charts)
        for figure in gallery.left.values():
            assert figure.caption in page(**options).text


# --- bytes ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_equal_comparisons_give_equal_bytes(tmp_path: Path) -> None:
    sample_comparison(hostile=True).save(tmp_path)
    assert render(load_comparison(tmp_path)) == html(drawn=True, hostile=True)


@pytest.mark.usefixtures("outlines")
@pytest.mark.slow
def test_embgeo_report_renders_a_saved_comparison_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_comparison().save(tmp_path / "made")
    for given in ("made", "made/comparison.json"):
        assert run(["report", str(tmp_path / given), "-o", str(tmp_path / "again.html")]) == 0
        page = (tmp_path / "again.html").read_text(encoding="utf-8")
        assert page == render(sample_comparison())
        (tmp_path / "again.html").unlink()
    (tmp_path / "made" / "comparison.json").write_text("{}")
    assert run(["report", str(tmp_path / "made")]) == 2
    assert "not a comparison that embgeo wrote" in capsys.readouterr().err

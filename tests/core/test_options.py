"""The options of measuring: what is read, what is refused, and in which words."""

from __future__ import annotations

from dataclasses import fields
from inspect import getdoc, signature
from typing import Any

import numpy as np

import embgeo
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.options import LOADING, MEASURING, Options, choose_sections, merge_options
from embgeo.core.quantities import QUANTITIES
from embgeo.core.source import Source
from tests.support.refusals import refusal


def test_an_error_names_the_argument_in_python_and_the_option_on_the_command_line() -> None:
    error = EmbgeoError(
        "does not fit",
        where=argument("popular_share"),
        way_out=f"give {argument('counts', 'FILE')} or choose another one with {argument('out')}",
    )
    assert str(error) == "popular_share: does not fit; give counts or choose another one with out"
    assert error.command_line_text == (
        "--popular-share: does not fit; give --counts FILE or choose another one with -o"
    )
    assert len(str(EmbgeoError("a" * 10**6, way_out="b" * 10**6))) < 10_000
    assert (error.where, error.way_out) == (
        "popular_share",
        "give counts or choose another one with out",
    )


def test_text_is_read_as_commands_and_settings_write_it() -> None:
    assert Options(pairs="all").pairs is None  # type: ignore[arg-type]
    assert Options(pairs="50").pairs == 50  # type: ignore[arg-type]
    asked: Any = ("a", "b=c,d", "=", ("x", ("y",)))
    assert Options(show_neighbors=asked).show_neighbors == (
        ("a", ()),
        ("b", ("c", "d")),
        ("=", ()),
        ("x", ("y",)),
    )


def test_a_token_that_holds_the_sign_of_a_list_is_taken_as_it_stands() -> None:
    asked: Any = ("a=b", "c=d,e")
    assert Options(show_neighbors=asked).for_tokens(["a=b", "c"]).show_neighbors == (
        ("a=b", ()),
        ("c", ("d", "e")),
    )
    assert Options(show_neighbors=asked).for_tokens(None).show_neighbors == (
        ("a", ("b",)),
        ("c", ("d", "e")),
    )


def test_what_is_no_number_of_pairs_is_refused() -> None:
    for pairs in ("x", "-1", "1.5", "²", "9" * 5000):
        with refusal(BadOption):
            Options(pairs=pairs)


def test_numbers_that_cost_time_are_bounded() -> None:
    for name, most in (("pairs", 10**9), ("isotropy_runs", 1000), ("neighbors", 1000)):
        assert getattr(Options(**{name: most}), name) == most
        with refusal(BadOption):
            Options(**{name: most + 1})


def test_what_is_no_token_with_tokens_is_refused() -> None:
    for asked in (("a", "b"), ("a",), ("a", (1,)), ("a", ("b",), "c"), 5):
        with refusal(BadOption):
            Options(show_neighbors=(asked,))


def test_options_that_would_do_nothing_are_refused() -> None:
    for given, sections in (
        ({"isotropy_runs": 3}, None),
        ({"pairs": 5}, ("tokens",)),
        ({"show_neighbors": ("a",)}, ("tokens",)),
        ({"neighbors_of": "all"}, ("cosine",)),
    ):
        with refusal(BadOption):
            Options.of(given, sections)


def test_options_that_do_something_are_taken() -> None:
    assert Options.of({"neighbors_of": "all"}, ("frequency",)).neighbors_of == "all"
    assert Options.of({"popular_share": 0.2}, None) == Options()


def test_one_section_is_enough() -> None:
    assert choose_sections("cosine") == ("cosine",)
    assert choose_sections(("cosine", "tokens")) == ("cosine", "tokens")


def test_every_scalar_says_why_it_is_there() -> None:
    rng = np.random.default_rng(0)
    counts = np.sort(rng.zipf(1.5, 400))[::-1].astype(float)
    found = embgeo.analyze(rng.standard_normal((400, 8)), counts=counts, reference=False)
    assert [one.name for one in found.scalars if not QUANTITIES[one.name].why] == []
    assert len(found.scalars) < 60


# --- The options of loading -----------------------------------------------------------------------


def test_load_takes_every_option_with_its_default() -> None:
    parameters = dict(signature(embgeo.load).parameters)
    del parameters["path"], parameters["progress"]
    assert {name: p.default for name, p in parameters.items()} == {
        f.name: f.default for f in fields(Source) if f.name not in ("path", "stacked")
    }
    with refusal(BadOption):
        embgeo.load("a.pt", tensr="wte")


def test_load_explains_every_option() -> None:
    text = getdoc(embgeo.load) or ""
    assert all(
        f"\n{f.name} : " in text for f in fields(Source) if f.name not in ("path", "stacked")
    )


def test_options_given_are_those_that_differ() -> None:
    assert Source("a.pt").collect_changes() == {}
    assert Source("a.pt", rows="0:5", padding="mask").collect_changes() == {
        "rows": "0:5",
        "padding": "mask",
    }


def test_commands_and_settings_know_every_option() -> None:
    assert {*LOADING} == {f.name for f in fields(Source)} - {"path", "hash_file", "stacked"}
    of_python = {"row_errors", "neighbors", "show_neighbors"}
    assert {*MEASURING} == {f.name for f in fields(Options)} - of_python


def test_typed_options_stand_over_those_of_the_settings() -> None:
    settings = {"tensor": "emb", "counts": "c.tsv", "padding": "mask"}
    assert merge_options(settings, {"tensor": "other"}) == settings | {"tensor": "other"}
    # Another way of knowing the frequencies takes the place of that of the settings.
    assert merge_options(settings, {"rank_order": True}) == {
        "tensor": "emb",
        "padding": "mask",
        "rank_order": True,
    }

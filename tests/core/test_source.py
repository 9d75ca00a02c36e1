"""The options of loading."""

from __future__ import annotations

from dataclasses import fields
from inspect import getdoc, signature

import pytest

import embgeo
from embgeo.core.options import LOADING, MEASURING, Options, merge_options
from embgeo.core.source import Source


def test_load_takes_every_option_with_its_default() -> None:
    parameters = dict(signature(embgeo.load).parameters)
    del parameters["path"], parameters["progress"]
    assert {name: p.default for name, p in parameters.items()} == {
        f.name: f.default for f in fields(Source) if f.name != "path"
    }
    with pytest.raises(TypeError, match="unexpected keyword argument 'tensr'"):
        embgeo.load("a.pt", tensr="wte")


def test_load_explains_every_option() -> None:
    text = getdoc(embgeo.load) or ""
    assert all(f"\n{f.name} : " in text for f in fields(Source) if f.name != "path")


def test_options_given_are_those_that_differ() -> None:
    assert Source("a.pt").collect_changes() == {}
    assert Source("a.pt", rows="0:5", padding="mask").collect_changes() == {
        "rows": "0:5",
        "padding": "mask",
    }


def test_commands_and_settings_know_every_option() -> None:
    assert {*LOADING} == {f.name for f in fields(Source)} - {"path", "hash_file"}
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

"""The options of loading, declared once."""

from __future__ import annotations

from dataclasses import fields
from inspect import getdoc, signature
from pathlib import Path

import pytest

import embgeo
from embgeo.core.source import FILES, Source

SECTIONS = {"file", "tensor", "rows", "labels", "frequencies", "hidden", "provenance"}


def test_every_option_explains_itself() -> None:
    for option in fields(Source):
        assert option.metadata["help"].endswith(".")
        assert option.metadata["section"] in SECTIONS


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
    for option in fields(Source):
        if option.name != "path":
            assert f"\n{option.name} : " in text
            assert option.metadata["help"].split()[0] in text
    assert "**options" not in text
    assert "\ncounts : Path | str | None\n" in text


def test_files_are_those_beside_the_checkpoint() -> None:
    assert FILES == ("tokens", "counts", "corpus", "hidden")
    source = Source("a.pt", tokens=Path("t.txt"), hidden=Path("/abs/h.npy"))
    moved = source.relative_to(Path("folder"))
    assert moved == Source("a.pt", tokens=Path("folder/t.txt"), hidden=Path("/abs/h.npy"))


def test_options_given_are_those_that_differ() -> None:
    assert Source("a.pt").collect_changes() == {}
    assert Source("a.pt", rows="0:5", padding="mask").collect_changes() == {
        "rows": "0:5",
        "padding": "mask",
    }


def test_one_source_over_another() -> None:
    settings = Source(tensor="emb", counts=Path("c.tsv"), padding="mask")
    assert Source("a.pt", tensor="other").over(settings) == Source(
        "a.pt", tensor="other", counts=Path("c.tsv"), padding="mask"
    )
    # Another way of knowing the frequencies takes the place of that of the settings.
    assert Source("a.pt", rank_order=True).over(settings) == Source(
        "a.pt", tensor="emb", rank_order=True, padding="mask"
    )

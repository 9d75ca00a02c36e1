"""Every example in a docstring gives what it shows."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "embgeo").rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]
NEEDS_TORCH = ("embgeo.training", "embgeo.callbacks")


@pytest.mark.parametrize("module", MODULES)
def test_examples_give_what_they_show(module: str) -> None:
    if module.startswith(NEEDS_TORCH):
        pytest.importorskip("torch", reason="training runs in torch")
    failed, tried = doctest.testmod(import_module(module), optionflags=doctest.ELLIPSIS)
    assert tried
    assert not failed, "see the captured output"


def test_every_family_has_an_example() -> None:
    from embgeo.metrics import FAMILIES

    modules = {family.compute.__module__ for family in FAMILIES}
    assert not modules - set(MODULES)

"""Every example in a docstring gives what it shows."""

from __future__ import annotations

import doctest
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "embgeo").rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]
NEEDS_TORCH = ("embgeo.training", "embgeo.callbacks")


@pytest.mark.slow
def test_examples_give_what_they_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    has_torch = find_spec("torch") is not None
    for module in MODULES:
        if has_torch or not module.startswith(NEEDS_TORCH):
            failed, tried = doctest.testmod(import_module(module), optionflags=doctest.ELLIPSIS)
            assert tried, module
            assert not failed, f"{module}: see the captured output"


def test_every_family_has_an_example() -> None:
    from embgeo.metrics import FAMILIES

    modules = {family.compute.__module__ for family in FAMILIES}
    assert not modules - set(MODULES)

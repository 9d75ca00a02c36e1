"""Texts hold none of the phrases that ``scripts/words`` lists, and it finds each of them."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def load_script() -> Any:
    loader = SourceFileLoader("words", str(ROOT / "scripts" / "words"))
    spec = spec_from_loader("words", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


words = load_script()

BANNED = (
    "No row is damaged",
    "the widest gap among the smallest norms",
    "one direction holds 55% of the energy",
    "Directions are far from alike",
    "the partition function falls to 0.257 of its peak",
    "Rare and popular tokens live apart",
    "norms follow frequency",
    "(rank correlation −0.69)",
    "energy of direction 1",
    "direction 1",
    "Deepest in the cone",
    "1,797 rows lie together within 53.2° of the mean direction",
    "Each number leads to its definition",
    "Published I1 / I2 with one sign for each eigenvector",
    "this matrix, so counted",
    "the same without the scale",
    "directions in use",
    "Flat lines would mean that",
    "the geometry does not know how frequent a token is",
    "I1 rose from 0.09 to 0.77, not only because of smaller norms",
    "Of 23 differences with an error over tokens 3 are within it",
    "3 are within their error",
    "beyond error",
    "Baseline degenerate.",
    "Still degenerate: a",
    "only mildly degenerate now: b",
    "No validation curve shows that learning was over",
    "An arrow leads from the control of a method to the method",
    "Heads lead to definitions",
    "vocab_counts.tsv lists as many tokens as there are rows",
    "choice: its name is that of a token embedding",
    "What `embgeo --help` says more",
    "no rules, so that nothing would be checked",
    "Options about reading and measuring are about checkpoints",
    "and hold for all of them",
    "compare what they did",
    "every label is hostile text",
    "the file is not there",
    "the option would do nothing",
    "it does nothing",
    "9 rows were never trained; the norms of 9 are small",
    "their norms lie below all others by 1.23 decades",
    "left out: subspace,",
    "no output projection was found next to the embedding",
    "the section subspace was left out",
    "a group apart from all others (excess mass 0.03)",
    "it labels them in its order",
    '"""Rows a second."""',
    "55 % of the rows",
    "five per cent",
)


def test_no_text_holds_a_banned_phrase() -> None:
    assert list(words.check_files(words.list_files())) == []


@pytest.mark.parametrize("text", BANNED)
def test_banned_phrases_are_found(text: str) -> None:
    assert list(words.find_phrases(text))


def test_a_phrase_is_found_across_the_end_of_a_line_and_of_a_literal() -> None:
    code = 'said = (\n    "the geometry does "\n    f"not know {x}"\n)\n'
    ((line, phrase, _),) = words.find_phrases(words.join_literals(code))
    assert (line, phrase) == (2, "geometry does not know")
    assert [p for _, p, _ in words.find_phrases("it is not\nthere")] == ["is not there"]


@pytest.mark.parametrize("text", ["a % b", "x[0] % 3", "{% if a %}", "55%", "drop<5 %"])
def test_what_is_no_phrase_is_not_found(text: str) -> None:
    assert not list(words.find_phrases(text))

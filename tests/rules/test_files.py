"""Files that a gate reads: settings with the lines of their rules, and baselines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import embgeo
from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.core.matrix import Matrix
from embgeo.files.settings import parse_document
from embgeo.rules import baseline_file
from embgeo.rules.check import Measured, name_rows
from embgeo.rules.rule_value import RuleValue
from embgeo.rules.settings import find_gate, find_options, read_gate, rule_lines
from tests.support.binary_files import quick
from tests.support.refusals import refusal
from tests.support.sample_analysis import CHARACTERS
from tests.support.sampling import each_folder

SETTINGS = '''\
# "cosine.mean <= 0.1" in a comment, with a 'quote
title = "cosine.mean <= 0.1"
[other]
rules = ["cosine.mean <= 0.1"]
[gate]
baseline = "base.json"
level = 0.9
sources = ["model.pt"]
rules = [
  "cosine.mean <= 0.1",  # it's
  'isotropy.i1 >= 0.5', { warn = true, rule = "cosine.mean <= 0.1" },
  """isotropy\\
     .i1 >= 0.5""",

  "cosine.mean <= \\u0030.1",
]
[gate.analyze]
counts = "counts.tsv"
'''


def written(folder: Path, text: str, name: str = "embgeo.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# --- Settings ---------------------------------------------------------------------------------


def test_settings_and_the_lines_of_their_rules(tmp_path: Path) -> None:
    found = read_gate(written(tmp_path, SETTINGS))
    assert [rule.line for rule in found.rules] == [10, 11, 11, 12, 15]
    assert [rule.rule for rule in found.rules] == [
        "cosine.mean <= 0.1",
        "isotropy.i1 >= 0.5",
        "cosine.mean <= 0.1",
        "isotropy.i1 >= 0.5",
        "cosine.mean <= 0.1",
    ]
    assert [rule.warn for rule in found.rules] == [False, False, True, False, False]
    assert (found.baseline, found.level, found.sources) == ("base.json", 0.9, ("model.pt",))
    assert found.analyze == {"counts": tmp_path / "counts.tsv"}
    assert found.resolve_path("base.json") == tmp_path / "base.json"


def test_lines_of_rules_however_they_are_written(tmp_path: Path) -> None:
    for folder, (text, lines) in each_folder(
        tmp_path,
        (
            ('[gate]\nrules = ["a", "a",\n"a"]', [2, 2, 3]),
            ('gate.rules = [\n"a"]', [2]),
            ('gate = { rules = ["a"] }', [1]),
            ('\n[gate]\nrules = ["a"]', [3]),
            ("[[gate.rules]]\nwarn = true\nrule = \"a\"\n\n[[gate.rules]]\nrule = 'a'", [3, 6]),
            ('["gate"]\n"rules" = ["""\na"""]', [2]),
            ("[gate]\r\nrules = [\r\n'a'\r\n]", [3]),
            ('[gate]\nrules = ["a"]\n[x]\nrules = ["a"]', [2]),
            ('x = """\n"a"\n"""\n[gate]\nrules = ["a"]', [5]),
            ("x = '''\n\"a\"\n'''\n[gate]\nrules = ['''a''']", [5]),
        ),
    ):
        (folder / "embgeo.toml").write_bytes(text.encode())
        assert [rule.line for rule in read_gate(folder / "embgeo.toml").rules] == lines


@given(st.lists(st.text(CHARACTERS.replace("\ud800", "")), max_size=5))
def test_any_text_is_found_in_its_line(rules: list[str]) -> None:
    strings = [json.dumps(rule, ensure_ascii=False).replace("\x7f", "\\u007f") for rule in rules]
    text = '# head\nx = "a"\n[gate]\nrules = [\n' + ",\n".join(strings) + "\n]\n"
    assert rule_lines(text, ("gate",), rules) == list(range(5, 5 + len(rules)))


def test_settings_that_are_none(tmp_path: Path) -> None:
    for folder, text in each_folder(
        tmp_path,
        (
            "[gate",
            "[gate]\nrulez = []",
            "[gate]\ncolor = 1",
            "[gate]\nrules = 'a'",
            "[gate]\nrules = [1]",
            "[gate]\nrules = [{ warn = true }]",
            "[gate]\nrules = [{ rule = 'a', wran = true }]",
            "[gate]\nrules = [{ rule = 'a', warn = 'yes' }]",
            "[gate]\nrules = [{ rule = 1 }]",
            "[gate]\nlevel = true",
            "[gate]\nlevel = '95'",
            "[gate]\nsources = [1]",
            "gate = 1",
        ),
    ):
        with refusal((BadOption, UnreadableFile)):
            read_gate(written(folder, text))


def test_a_key_of_very_many_parts_is_refused_before_it_is_parsed() -> None:
    for key, deep in (
        ("a." * 31 + "a", False),
        ("a." * 32 + "a", True),
        ("'a b' . " * 32 + "a", True),
        ("a." * 200_000 + "a", True),
        (f'x = "{"a." * 99}" # {"a." * 99}\nb', False),
    ):
        if deep:
            with refusal(UnreadableFile):
                parse_document(f"{key} = 1", "embgeo.toml", "correct it")
        else:
            assert parse_document(f"{key} = 1", "embgeo.toml", "correct it")


def test_a_string_without_an_end_is_refused_at_once() -> None:
    """Its end was sought again from every quotation mark: hours for a megabyte."""
    for text in ('a = "' + '\\"' * 400_000, 'a = """\n' + '\\"""\n' * 180_000):
        with quick(), refusal(UnreadableFile):
            parse_document(text, "embgeo.toml", "correct it")


def test_the_nearest_settings_hold(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert find_gate(deep).path is None
    written(tmp_path, '[tool.embgeo.gate]\nrules = ["top"]', "pyproject.toml")
    written(tmp_path / "a", "[tool.other]\nx = 1", "pyproject.toml")
    found = find_gate(deep)
    assert found.path == tmp_path / "pyproject.toml"
    assert [(rule.rule, rule.line) for rule in found.rules] == [("top", 2)]
    written(tmp_path, '[gate]\nrules = ["own"]')
    assert [rule.rule for rule in find_gate(deep).rules] == ["own"]
    written(tmp_path / "a", "[report]\n")
    assert find_gate(deep).path == tmp_path / "embgeo.toml"


def test_options_of_analyses_are_those_of_the_nearest_table(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    deep = tmp_path / "a"
    deep.mkdir()
    assert find_options(start=deep) == {}
    table = (
        '[tool.embgeo.analyze]\ncounts = "c.tsv"\ntokens = "none"\npairs = "all"\nrows = [0, 5]\n'
    )
    top = written(tmp_path, table, "pyproject.toml")
    written(deep, "[gate]\n")
    expected = {"counts": tmp_path / "c.tsv", "tokens": "none", "pairs": "all", "rows": (0, 5)}
    assert find_options(start=deep) == find_options(top) == expected
    assert find_options(search=False, start=deep) == {}
    with refusal(BadOption):
        find_options(top, search=False)
    own = written(deep, '[analyze]\nsections = ["cosine"]\nshow_neighbors = ["a=b"]\n')
    assert find_options(start=deep) == {"sections": ("cosine",), "show_neighbors": ("a=b",)}
    # A gate chooses its sections by its rules, and has no lists to print.
    assert find_gate(deep).analyze == {}
    for wrong in (
        "[analyze]\nmin_nrom = 1",
        "[analyze]\nmin_norm = 'x'",
        "analyze = 1",
    ):
        written(deep, wrong)
        with refusal(BadOption):
            find_options(own)


def test_settings_above_the_repository_or_the_home_folder_do_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    written(tmp_path, '[gate]\nrules = ["of others"]')
    assert find_gate(deep).path is None
    monkeypatch.setenv("HOME", str(tmp_path / "a"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "a"))
    assert find_gate(deep).path is None
    (tmp_path / "a" / ".git").mkdir()
    assert find_gate(deep).path is None
    written(tmp_path / "a", '[gate]\nrules = ["own"]')
    assert find_gate(deep).path == tmp_path / "a" / "embgeo.toml"


# --- Baselines --------------------------------------------------------------------------------


def matrix(**readings: RuleValue) -> Measured:
    provenance = {
        "file": "model.pt",
        "tensor": "encoder.weight",
        "sha256": "ab" * 32,
        "dtype": "float32",
        "n": 5,
        "d": 2,
        "kept": 5,
        "sections": ["cosine"],
        "options": {"seed": 0},
        "frequency": None,
        "versions": {"embgeo": "0.1"},
        "command": "not kept",
    }
    named = {name.replace("_", ".", 1): reading for name, reading in readings.items()}
    return Measured(provenance, named, (), {"frequency": "no counts"})


KINDS = {
    "cosine_mean": RuleValue(1 / 3),
    "cosine_b": RuleValue(12.0),
    "cosine_c": RuleValue(-1e-300),
    "cosine_sampled": RuleValue(2 / 3, 0.00123456, "sampled"),
    "cosine_least": RuleValue(136.1, None, "least"),
    "cosine_most": RuleValue(0.2, None, "most"),
    "cosine_unsure": RuleValue(0.3, None, "unsure"),
    "cosine_none": RuleValue.missing('a "reason"\nin two lines'),
}


def test_a_baseline_is_read_back(tmp_path: Path) -> None:
    path = written(tmp_path, baseline_file.render([matrix(**KINDS)], "embgeo gate …"), "base.json")
    assert baseline_file.is_baseline(path)
    (found,) = baseline_file.read(path)
    assert (found.file, found.tensor) == ("model.pt", "encoder.weight")
    assert found.readings == {
        "cosine.mean": RuleValue(0.3333333333),
        "cosine.b": RuleValue(12.0),
        "cosine.c": RuleValue(-1e-300),
        "cosine.sampled": RuleValue(0.6666666667, 0.00123, "sampled"),
        "cosine.least": RuleValue(136.1, None, "least"),
        "cosine.most": RuleValue(0.2, None, "most"),
        "cosine.unsure": RuleValue(0.3, None, "unsure"),
        "cosine.none": RuleValue.missing('a "reason"\nin two lines'),
    }
    assert found.reading("frequency.probe_auc").undefined.endswith("no counts")


def test_a_baseline_is_reviewable() -> None:
    text = baseline_file.render([matrix(**KINDS), matrix(**KINDS)], "embgeo gate …")
    assert json.loads(text)["matrices"][0]["sha256"] == "ab" * 32
    lines = [line.strip() for line in text.splitlines() if '"cosine.' in line]
    assert len(lines) == 2 * len(KINDS)
    assert lines[: len(KINDS)] == sorted(lines[: len(KINDS)])
    assert '"cosine.mean": 0.3333333333,' in lines
    assert '"cosine.b": 12,' in lines
    assert '"cosine.sampled": {"value": 0.6666666667, "standard_error": 0.00123},' in lines


def test_a_real_analysis_as_its_own_baseline_has_not_changed(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((40, 5))
    measured = Measured.of(
        embgeo.analyze(Matrix(rows), sections=("cosine", "spectrum"), reference=False)
    )
    assert measured.is_default
    assert measured.reading("verdict").value is not None
    path = written(tmp_path, baseline_file.render([measured], ""), "base.json")
    (found,) = baseline_file.read(path)
    assert set(found.readings) == set(measured.readings)
    for name, reading in measured.readings.items():
        assert found.readings[name].known == reading.known
        value = found.readings[name].value
        assert value == (reading.value and pytest.approx(reading.value, rel=1e-9)), name


def test_five_rows_of_a_count_are_named() -> None:
    for count, named in (
        (1, "row 3"),
        (5, "row 3, row 4, row 5, row 6, row 7"),
        (6, "row 3, row 4, row 5, row 6, row 7 and 1 more"),
    ):
        rows = np.random.default_rng(0).standard_normal((60, 5))
        rows[3 : 3 + count] = 0.0
        found = name_rows(embgeo.analyze(Matrix(rows), sections=("suspects",), reference=False))
        assert found["suspects.zero"] == named


def damaged(**changes: Any) -> str:
    document = json.loads(baseline_file.render([matrix(**KINDS)], ""))
    return json.dumps(document | changes)


def test_baselines_that_are_none(tmp_path: Path) -> None:
    for folder, text in each_folder(
        tmp_path,
        (
            "",
            "[]",
            '{"format": "embgeo.baseline",',
            '{"format": "other"}',
            damaged(format_version=99),
            damaged(matrices=[]),
            damaged(matrices=[1]),
            damaged(matrices=[{"scalars": {}}]),
            damaged().replace("0.3333333333", '"x"'),
            damaged().replace("0.3333333333", "true"),
            damaged().replace("0.3333333333", "NaN"),
            damaged().replace("0.3333333333", "1e999"),
            damaged().replace("0.00123", "-1"),
            damaged().replace('"least"', '"perhaps"'),
            damaged().replace('["cosine"]', '"cosine"'),
            damaged().replace('"n": 5', '"n": "5"'),
            damaged().replace('"n": 5', '"n": -5'),
            damaged().replace('"d": 2', '"d": true'),
            damaged().replace('{"seed": 0}', "[1]"),
            damaged().replace('"model.pt"', '["model.pt"]'),
            damaged().replace('"cosine.b"', '"cosine.mean"'),
            '{"format": "embgeo.baseline", "x": ' + "[" * 100_000,
        ),
    ):
        path = written(folder, text, "base.json")
        with refusal(UnreadableFile):
            baseline_file.read(path)


def test_what_does_not_begin_like_a_baseline(tmp_path: Path) -> None:
    assert not baseline_file.is_baseline(tmp_path)
    assert not baseline_file.is_baseline(tmp_path / "missing")
    assert not baseline_file.is_baseline(written(tmp_path, '{"format": "embgeo.analysis"}'))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_without_a_writer_is_refused_as_baseline(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not baseline_file.is_baseline(tmp_path / "pipe")

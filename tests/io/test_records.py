"""Records: saved and read back, refused in one line where they are damaged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from msgspec import Meta

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.core.settings import describe, parse_value
from embgeo.core.values import INLINE
from embgeo.files.records import ARRAYS_NAME, RecordFormat, in_archive
from embgeo.files.settings import parse_table
from tests.support.refusals import refusal
from tests.support.sampling import each_folder


@dataclass(frozen=True, slots=True)
class Facts:
    name: str


@dataclass(frozen=True, slots=True)
class Item:
    facts: Facts = field(metadata=INLINE)
    values: npt.NDArray[np.float64] = field(metadata=in_archive(key="array"))
    curve: npt.NDArray[np.float64]

    @property
    def name(self) -> str:
        return self.facts.name


@dataclass(frozen=True, slots=True)
class Whole:
    title: str
    items: tuple[Item, ...]
    rows: npt.NDArray[np.int64] | None = field(default=None, metadata=in_archive("rows"))
    scale: float = 1.0
    added: tuple[str, ...] = field(default=(), metadata={"later": True})


def check(whole: Whole) -> None:
    if not whole.title:
        raise ValueError("no title")


FORMAT = RecordFormat(
    "embgeo.whole",
    2,
    Whole,
    "whole.json",
    "a whole",
    "make one",
    check,
)


def whole(**changes: Any) -> Whole:
    items = tuple(Item(Facts(n), np.arange(3.0), np.array([0.5, 1.0])) for n in ("a.b", "c"))
    return Whole(**{"title": "t\u2028é", "items": items, "rows": np.arange(3), **changes})


def same(one: Whole, other: Whole) -> None:
    assert FORMAT.text(one) == FORMAT.text(other)
    np.testing.assert_array_equal(one.rows, other.rows)
    for mine, theirs in zip(one.items, other.items, strict=True):
        np.testing.assert_array_equal(mine.values, theirs.values)


def test_saved_and_read_back(tmp_path: Path) -> None:
    path = FORMAT.save(whole(), tmp_path / "a" / "b")
    same(FORMAT.load(path), whole())
    same(FORMAT.load(path.parent), whole())
    content = json.loads(path.read_text("ascii"))
    names = ["format", "format_version", "title", "items", "rows", "scale", "added"]
    assert list(content) == [*names, "arrays_sha256"]
    assert content["items"][0] == {"name": "a.b", "array": "items/a.b", "curve": [0.5, 1.0]}
    with np.load(path.parent / ARRAYS_NAME) as archive:
        assert sorted(archive.files) == ["items/a.b", "items/c", "rows"]


def test_without_arrays_there_is_no_archive(tmp_path: Path) -> None:
    FORMAT.save(whole(items=(), rows=None), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["whole.json"]
    assert FORMAT.load(tmp_path).rows is None


def test_files_of_two_runs_do_not_belong_together(tmp_path: Path) -> None:
    path = FORMAT.save(whole(), tmp_path)
    FORMAT.save(whole(rows=np.arange(4)), tmp_path / "other")
    (tmp_path / "other" / ARRAYS_NAME).replace(tmp_path / ARRAYS_NAME)
    with refusal(UnreadableFile):
        FORMAT.load(path)
    content = json.loads(path.read_text())
    del content["arrays_sha256"]
    path.write_text(json.dumps(content))
    assert len(FORMAT.load(path).rows) == 4


def test_archives_that_would_fill_the_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = FORMAT.save(whole(rows=np.zeros(10**5, dtype=np.int64)), tmp_path)
    assert len(FORMAT.load(path).rows) == 10**5
    monkeypatch.setattr("embgeo.files.records.SMALL_ARRAYS", 10**5)
    with refusal(UnreadableFile):
        FORMAT.load(path)


@pytest.mark.parametrize("field_name", ["added", "scale"])
def test_only_a_later_field_may_be_missing(field_name: str, tmp_path: Path) -> None:
    path = FORMAT.save(whole(added=("one",)), tmp_path)
    content = json.loads(path.read_text())
    del content[field_name]
    path.write_text(json.dumps(content))
    if field_name == "added":
        assert FORMAT.load(path).added == ()
    else:
        with refusal(UnreadableFile):
            FORMAT.load(path)


def test_damage_is_told_in_one_line(tmp_path: Path) -> None:
    for folder, change in each_folder(
        tmp_path,
        (
            {"format": "other"},
            {"format_version": 3},
            {"title": ""},
            {"extra": 1},
            {"items": [{"name": "x"}]},
            {"rows": "items/c"},
            {"rows": "nowhere"},
            {"rows": 3},
        ),
    ):
        path = FORMAT.save(whole(), folder)
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        with refusal(UnreadableFile):
            FORMAT.load(folder)


@pytest.mark.parametrize("content", ["[1]", '{"format": NaN}'])
def test_what_is_not_json(content: str, tmp_path: Path) -> None:
    (tmp_path / "whole.json").write_text(content)
    with refusal(UnreadableFile):
        FORMAT.load(tmp_path)


def test_a_missing_file_and_a_cut_archive(tmp_path: Path) -> None:
    with refusal(UnreadableFile):
        FORMAT.load(tmp_path)
    FORMAT.save(whole(), tmp_path)
    (tmp_path / ARRAYS_NAME).write_bytes((tmp_path / ARRAYS_NAME).read_bytes()[:-30])
    with refusal(UnreadableFile):
        FORMAT.load(tmp_path)


def test_nothing_is_written_of_a_number_that_is_not_finite(tmp_path: Path) -> None:
    with refusal(ValueError):
        FORMAT.save(whole(scale=math.nan), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with refusal():
        FORMAT.save(whole(), tmp_path / "file" / "inner")


# --- Settings of TOML: what is accepted, and what an error says -----------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    value: float | None = None
    kind: Literal["least", "most"] = "least"
    pair: tuple[int, float] = (0, 0.0)
    many: tuple[str, ...] = ()
    count: Annotated[int, Meta(ge=1)] = 1
    table: Mapping[str, int] = field(default_factory=dict)
    free: Any = None
    where: str = ""


def test_a_complete_table() -> None:
    given = {"name": "a", "value": 3, "kind": "most", "pair": [1, 2], "many": ["x"]}
    given |= {"count": 2, "table": {"k": 1}, "free": [None, {"x": 1}]}
    found = parse_table(Table, given, "[table]", None)
    expected = Table("a", 3.0, "most", (1, 2.0), ("x",), 2, {"k": 1}, [None, {"x": 1}])
    assert found == expected
    assert isinstance(found.value, float)
    assert parse_table(Table, {"name": "a"}, "[table]", None) == Table("a")


def test_errors_name_the_setting() -> None:
    for change in (
        {"value": "1"},
        {"value": True},
        {"value": float("nan")},
        {"free": [{"a": float("inf")}]},
        {"value": 10**400},
        {"kind": "both"},
        {"pair": [1]},
        {"pair": [1.5, 1]},
        {"many": "x"},
        {"many": ["x", 1]},
        {"count": 0},
        {"table": []},
        {"name": None},
        {"kid": []},
        {"where": ""},
    ):
        with refusal(BadOption):
            parse_table(Table, {"name": "a"} | change, "[table]", "file.toml", ("where",))


def test_a_missing_setting_and_no_table() -> None:
    with refusal(BadOption):
        parse_table(Table, {}, "[table]", None)
    with refusal(BadOption):
        parse_table(Table, 3, "[table]", None)


def test_a_union_keeps_the_type_that_fits() -> None:
    cells = tuple[str | int | float | None, ...]
    found = parse_value(["a", 1, 1.5, None], cells, "cells", None)
    assert [type(cell) for cell in found] == [str, int, float, type(None)]


def test_types_in_words() -> None:
    assert describe(int | None) == "a whole number"
    assert describe(dict[str, int]) == "a table"
    assert describe(Literal["a", "b"]) == "a or b"
    assert describe(Annotated[float, Meta(ge=0, lt=1)]) == "a number from 0 and below 1"

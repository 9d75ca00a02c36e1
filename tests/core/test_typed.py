"""Plain values to typed ones: what is accepted, and where the error is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from embgeo.core.typed import (
    INLINE,
    BadValue,
    UnknownKey,
    WrongType,
    convert,
    describe,
    keyed,
    keys_of,
)


@dataclass(frozen=True, slots=True)
class Facts:
    name: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    facts: Facts = field(metadata=INLINE)
    value: float | None
    kind: Literal["least", "most"] = "least"
    pair: tuple[int, float] = (0, 0.0)
    many: tuple[str, ...] = field(default=(), metadata=keyed("texts"))
    table: Mapping[str, int] = field(default_factory=dict)
    free: Any = None


@dataclass(frozen=True, slots=True)
class Outer:
    entries: tuple[Entry, ...]


def test_a_complete_table() -> None:
    table = {
        "name": "a",
        "unit": "s",
        "value": 3,
        "kind": "most",
        "pair": [1, 2],
        "texts": ["x"],
        "table": {"k": 1},
        "free": [None, {"x": 1}],
    }
    found = convert(table, Entry)
    expected = Entry(Facts("a", "s"), 3.0, "most", (1, 2.0), ("x",), {"k": 1}, [None, {"x": 1}])
    assert found == expected
    assert isinstance(found.value, float)
    assert keys_of(Entry) == tuple(table)


def test_missing_fields_take_their_defaults() -> None:
    assert convert({"name": "a", "value": None}, Entry) == Entry(Facts("a"), None)


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"value": "1"}, WrongType, "entries[0].value is '1' instead of a number"),
        ({"value": True}, WrongType, "entries[0].value is True instead of a number"),
        ({"value": float("nan")}, WrongType, "entries[0].value is nan instead of a number"),
        ({"value": 10**400}, WrongType, "entries[0].value is 1000"),
        ({"kind": "both"}, WrongType, "entries[0].kind is 'both' instead of least or most"),
        ({"pair": [1]}, WrongType, "entries[0].pair is [1] instead of a list"),
        ({"pair": [1.5, 1]}, WrongType, "entries[0].pair[0] is 1.5 instead of a whole number"),
        ({"texts": "x"}, WrongType, "entries[0].texts is 'x' instead of a list"),
        ({"texts": ["x", 1]}, WrongType, "entries[0].texts[1] is 1 instead of text"),
        ({"table": {"k": 1.5}}, WrongType, "entries[0].table.k is 1.5 instead of a whole number"),
        ({"table": []}, WrongType, "entries[0].table is [] instead of a table"),
        ({"name": None}, WrongType, "entries[0].name is None instead of text"),
        ({"many": []}, UnknownKey, "entries[0] has an unknown field 'many'"),
    ],
)
def test_errors_name_the_place(change: dict[str, Any], kind: type, said: str) -> None:
    with pytest.raises(kind) as caught:
        convert({"entries": [{"name": "a", "value": 1.0} | change]}, Outer)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("left_out", ["name", "value"])
def test_fields_without_a_default_are_needed(left_out: str) -> None:
    table = {"name": "a", "value": 1.0}
    table.pop(left_out)
    with pytest.raises(BadValue, match=f"lacks the field '{left_out}'"):
        convert(table, Entry)


@pytest.mark.parametrize("value", [None, 3, "x", [1]])
def test_a_table_is_needed(value: Any) -> None:
    with pytest.raises(BadValue, match="instead of a table"):
        convert(value, Entry)


def test_a_union_keeps_the_type_that_fits() -> None:
    cells = tuple[str | int | float | None, ...]
    found = convert(["a", 1, 1.5, None], cells)
    assert [type(cell) for cell in found] == [str, int, float, type(None)]
    with pytest.raises(WrongType):
        convert([True], cells)


def test_a_union_tells_the_problem_inside_of_a_choice() -> None:
    with pytest.raises(WrongType, match=r"^entries\[0\]\.value is 'x'"):
        convert({"entries": [{"name": "a", "value": "x"}]}, Outer | None)


def test_types_in_words() -> None:
    assert describe(int | None) == "a whole number"
    assert describe(dict[str, int]) == "a table"
    assert describe(Literal["a", "b"]) == "a or b"

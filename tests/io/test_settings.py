"""Settings of TOML: what is accepted, and what an error says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from embgeo.core.errors import BadOption
from embgeo.io.bounded.settings import describe, parse_table, parse_value


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


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"value": "1"}, "value of [table] is '1'; it has to be a number"),
        ({"value": True}, "value of [table] is True; it has to be a number"),
        ({"value": float("nan")}, "value of [table] is nan; it has to be a number"),
        ({"free": [{"a": float("inf")}]}, "is inf; it has to be a number"),
        ({"value": 10**400}, "it has to be a number"),
        ({"kind": "both"}, "kind of [table] is 'both'; it has to be least or most"),
        ({"pair": [1]}, "pair of [table] is [1]; it has to be a list of 2 values"),
        ({"pair": [1.5, 1]}, "pair of [table] is 1.5; it has to be a whole number"),
        ({"many": "x"}, "many of [table] is 'x'; it has to be a list"),
        ({"many": ["x", 1]}, "many of [table] is 1; it has to be text"),
        ({"count": 0}, "count of [table] is 0; it has to be a whole number from 1"),
        ({"table": []}, "table of [table] is []; it has to be a table"),
        ({"name": None}, "name of [table] is None; it has to be text"),
        ({"kid": []}, "unknown setting 'kid'; did you mean kind? choose from count, "),
        ({"where": ""}, "[table]: unknown setting 'where'"),
    ],
)
def test_errors_name_the_setting(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as caught:
        parse_table(Table, {"name": "a"} | change, "[table]", "file.toml", ("where",))
    assert says in str(caught.value)
    assert str(caught.value).startswith("file.toml: ")


def test_a_missing_setting_and_no_table() -> None:
    with pytest.raises(BadOption, match="\\[table\\]: Object missing required field `name`"):
        parse_table(Table, {}, "[table]", None)
    with pytest.raises(BadOption, match="is 3; it has to be a table"):
        parse_table(Table, 3, "[table]", None)


def test_a_union_keeps_the_type_that_fits() -> None:
    cells = tuple[str | int | float | None, ...]
    found = parse_value(["a", 1, 1.5, None], cells, "cells", None)
    assert [type(cell) for cell in found] == [str, int, float, type(None)]


def test_types_in_words() -> None:
    assert describe(int | None) == "a whole number"
    assert describe(dict[str, int]) == "a table"
    assert describe(Literal["a", "b"]) == "a or b"
    assert describe(Annotated[float, Meta(ge=0, lt=1)]) == "a number from 0 below 1"

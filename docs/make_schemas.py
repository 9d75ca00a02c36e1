"""Write docs/schemas: JSON Schemas of what embgeo saves, from the dataclasses that it reads.

Needs ``embgeo[train]``.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from embgeo.comparison.comparison import FORMAT as COMPARISON
from embgeo.files.records import DIGEST, RecordFormat, list_fields
from embgeo.result.saved import FORMAT as ANALYSIS
from embgeo.training.study.record import STUDY

FOLDER = Path(__file__).parent / "schemas"
FORMATS: tuple[RecordFormat[Any], ...] = (ANALYSIS, COMPARISON, STUDY)
_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def target(format_: RecordFormat[Any]) -> Path:
    return FOLDER / f"{Path(format_.file).stem}.schema.json"


def document(format_: RecordFormat[Any]) -> str:
    """Return the text of the schema of a format: draft 7, which every validator knows."""
    definitions: dict[str, Any] = {}
    table = describe_table(format_.kind, definitions)
    table["properties"] = {
        "format": {"const": format_.name},
        "format_version": {"const": format_.version},
        DIGEST: {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    } | table["properties"]
    table["required"] = ["format", "format_version", *table["required"]]
    head = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"{format_.name}, version {format_.version}",
    }
    return json.dumps(head | table | {"definitions": definitions}, indent=1) + "\n"


def describe_table(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Describe the object of a dataclass; those of inline fields are part of it."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for entry, key, hint in list_fields(kind):
        if entry.metadata.get("inline"):
            inner = describe_table(hint, definitions)
            properties |= inner["properties"]
            required += inner["required"]
            continue
        properties[key] = describe(hint, definitions, "archive" in entry.metadata)
        if not entry.metadata.get("later"):
            required.append(key)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def describe(hint: Any, definitions: dict[str, Any], in_archive: bool = False) -> dict[str, Any]:
    """Describe the values of a type; an array in the archive is its name there."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [describe(one, definitions, in_archive) for one in inner]}
    if origin is np.ndarray:
        return {"type": "string"} if in_archive else {"type": "array"}
    if is_dataclass(hint):
        name = hint.__name__  # type: ignore[union-attr]
        if name not in definitions:
            definitions[name] = {}  # for a dataclass that holds its own kind
            definitions[name] = describe_table(hint, definitions)
        return {"$ref": f"#/definitions/{name}"}
    if origin is tuple and Ellipsis not in inner:
        entries = [describe(one, definitions) for one in inner]
        size = len(entries)
        return {"type": "array", "items": entries, "minItems": size, "maxItems": size}
    if origin in (tuple, list):
        return {"type": "array", "items": describe(inner[0], definitions, in_archive)}
    if origin is not None and issubclass(origin, Mapping):
        values = describe(inner[1], definitions, in_archive)
        return {"type": "object", "additionalProperties": values}
    if hint is Any or hint is object:
        return {}
    raise TypeError(f"{hint!r} has no JSON")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for one in FORMATS:
        target(one).write_text(document(one), encoding="utf-8")

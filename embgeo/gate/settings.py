"""Settings in ``embgeo.toml``, or under ``[tool.embgeo]`` in ``pyproject.toml``."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embgeo.core.errors import BadOption, UnreadableFile

OWN_NAME = "embgeo.toml"
SHARED_NAME = "pyproject.toml"

#: What ``[gate]`` takes, with the type of each.
GATE_KEYS: dict[str, type | tuple[type, ...]] = {
    "rules": list,
    "sources": list,
    "baseline": str,
    "level": (int, float),
    "analyze": dict,
}
RULE_KEYS: dict[str, type] = {
    "rule": str,
    "tensor": str,
    "warn": bool,
    "allow_undefined": bool,
}

#: A string of TOML, or a comment, in which quotes mean nothing.
_LITERAL = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|\#[^\n]*',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A rule as it was written, and the line it stands in."""

    text: str
    line: int | None
    tensor: str = ""
    warn: bool = False
    allow_undefined: bool = False


@dataclass(frozen=True, slots=True)
class GateSettings:
    """``[gate]``; what is not there is empty or None.

    Attributes
    ----------
    path : Path or None
        The file; the paths in it are relative to its folder.
    rules : tuple of RuleEntry
    sources : tuple of str
        What is gated where the command line names nothing.
    baseline : str or None
    level : float or None
    analyze : dict
        Options of ``embgeo analyze`` for checkpoints, with ``_`` for ``-``.
    """

    path: Path | None = None
    rules: tuple[RuleEntry, ...] = ()
    sources: tuple[str, ...] = ()
    baseline: str | None = None
    level: float | None = None
    analyze: Mapping[str, Any] = field(default_factory=dict)

    def beside(self, name: str) -> Path:
        """A path that the file names."""
        return Path(name) if self.path is None else self.path.parent / name


def find_gate(start: Path) -> GateSettings:
    """The settings that hold in a folder: its own, or those of the nearest folder above.

    Where a folder has both files, ``embgeo.toml`` is taken if it has the table.
    """
    for folder in (start, *start.parents):
        for name in (OWN_NAME, SHARED_NAME):
            path = folder / name
            if path.is_file():
                found = read_gate(path)
                if found.path is not None:
                    return found
    return GateSettings()


def read_gate(path: Path) -> GateSettings:
    """The settings of one file; without a path where it has no table for the gate.

    Raises
    ------
    UnreadableFile
        Missing, not readable or no TOML.
    BadOption
        A key that means nothing, or a value of the wrong type.
    """
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except FileNotFoundError as error:
        raise UnreadableFile("no such file", where=path) from error
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror or error}", where=path) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(
            f"no TOML: {error}", where=path, way_out="mend it, or look for no settings: --no-config"
        ) from error
    at = ("tool", "embgeo", "gate") if path.name == SHARED_NAME else ("gate",)
    table = _inside(document, at)
    if table is None:
        return GateSettings()
    name = f"[{'.'.join(at)}]"
    if not isinstance(table, dict):
        raise BadOption(f"{at[-1]} is no table", where=path, way_out=f"write {name}")
    _check(table, GATE_KEYS, path, name)
    if not all(isinstance(source, str) for source in table.get("sources", ())):
        raise BadOption(f"sources of {name} are not all text", where=path)
    entries = [_entry(given, path) for given in table.get("rules", ())]
    lines = rule_lines(text, at, [entry.text for entry in entries])
    return GateSettings(
        path,
        tuple(
            RuleEntry(e.text, line, e.tensor, e.warn, e.allow_undefined)
            for e, line in zip(entries, lines, strict=True)
        ),
        tuple(table.get("sources", ())),
        table.get("baseline"),
        None if "level" not in table else float(table["level"]),
        table.get("analyze", {}),
    )


def _inside(document: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return document


def _entry(given: Any, path: Path) -> RuleEntry:
    if isinstance(given, str):
        return RuleEntry(given, None)
    if not isinstance(given, dict) or "rule" not in given:
        raise BadOption(
            f"{given!r} is no rule",
            where=path,
            way_out='write "cosine.mean <= 0.1" or { rule = "cosine.mean <= 0.1", warn = true }',
        )
    _check(given, RULE_KEYS, path, f"the rule {given['rule']!r}")
    return RuleEntry(
        given["rule"],
        None,
        given.get("tensor", ""),
        given.get("warn", False),
        given.get("allow_undefined", False),
    )


def _check(
    table: Mapping[str, Any],
    known: Mapping[str, type | tuple[type, ...]],
    path: Path,
    name: str,
) -> None:
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise BadOption(
                f"{name} has no setting {key!r}",
                where=path,
                way_out=f"is {near[0]} meant?" if near else f"it has {', '.join(known)}",
            )
        kind = known[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadOption(f"{key} of {name} is {value!r}", where=path, way_out=_wanted(kind))


def _wanted(kind: type | tuple[type, ...]) -> str:
    words = {str: "text", bool: "true or false", list: "a list", dict: "a table"}
    return f"it has to be {words[kind]}" if isinstance(kind, type) else "it has to be a number"


def rule_lines(text: str, at: Sequence[str], rules: Sequence[str]) -> list[int | None]:
    """The line of each rule in a TOML document, counted from 1.

    Python's parser keeps no positions. A string of the document is a certain rule exactly if
    that rule is another one once the string is replaced.

    Parameters
    ----------
    text : str
        A valid document.
    at : sequence of str
        Keys that lead to the table which holds ``rules``.
    rules : sequence of str
        The rules in the order of the document.
    """
    mark = "\N{REPLACEMENT CHARACTER} the string that is looked for"
    places = list(_strings(text))
    found: list[int | None] = []
    for number, rule in enumerate(rules):
        line = None
        for start, stop, value in places:
            if value == rule:
                table = _inside(_parsed(f'{text[:start]}"{mark}"{text[stop:]}'), at)
                if table is not None and _text_of(table["rules"][number]) == mark:
                    line = text.count("\n", 0, start) + 1
                    break
        found.append(line)
    return found


def _strings(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and value of each string of a document."""
    for literal in _LITERAL.finditer(text):
        if not literal[0].startswith("#"):
            value = _parsed(f"x = {literal[0]}")
            if value is not None:
                yield literal.start(), literal.end(), value["x"]


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _text_of(rule: Any) -> Any:
    return rule["rule"] if isinstance(rule, dict) else rule

"""Settings in ``embgeo.toml``, or under ``[tool.embgeo]`` in ``pyproject.toml``."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from embgeo.core.errors import BadOption
from embgeo.io.bounded.settings import parse_document, parse_table, read_document

OWN_NAME = "embgeo.toml"
SHARED_NAME = "pyproject.toml"

#: A string of TOML, or a comment, in which quotes mean nothing.
_LITERAL = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|\#[^\n]*',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A rule as written, and its line in the file."""

    rule: str
    line: int | None = None
    tensor: str = ""
    warn: bool = False
    allow_undefined: bool = False


@dataclass(frozen=True, slots=True)
class GateSettings:
    """The table ``[gate]``."""

    #: The file; paths in it are relative to its folder.
    path: Path | None = None
    preset: str | None = None
    rules: tuple[RuleEntry, ...] = ()
    #: What is checked if the command line names nothing.
    sources: tuple[str, ...] = ()
    baseline: str | None = None
    level: float | None = None
    #: Whether undefined values are allowed for every rule.
    allow_undefined: bool = False
    #: Options of ``embgeo analyze`` for checkpoints, with ``_`` for ``-``.
    analyze: Mapping[str, Any] = field(default_factory=dict)

    def resolve_path(self, name: str) -> Path:
        """A path in the file, as seen from the current folder."""
        return Path(name) if self.path is None else self.path.parent / name


def find_gate(start: Path) -> GateSettings:
    """The settings of a folder, or of the nearest folder above that has some.

    The search ends at the root of the repository or at the home folder. Outside of both only the
    folder itself is searched: others may write to those above it, such as ``/tmp``.
    """
    for folder in _searched(start):
        for name in (OWN_NAME, SHARED_NAME):
            path = folder / name
            if path.is_file():
                found = read_gate(path)
                if found.path is not None:
                    return found
    return GateSettings()


def _searched(start: Path) -> Sequence[Path]:
    home = Path(os.path.expanduser("~"))
    folders = (start, *start.parents)
    for count, folder in enumerate(folders, 1):
        if folder == home or (folder / ".git").exists():
            return folders[:count]
    return (start,)


def read_gate(path: Path) -> GateSettings:
    """The settings of one file; without a path if it has no table for the gate."""
    text = read_document(path)
    document = parse_document(text, path, "correct it, or ignore files of settings: --no-config")
    at = ("tool", "embgeo", "gate") if path.name == SHARED_NAME else ("gate",)
    table = _descend(document, at)
    if table is None:
        return GateSettings()
    name = f"[{'.'.join(at)}]"
    if not isinstance(table, dict):
        raise BadOption(f"{at[-1]} is not a table", where=path, way_out=f"write {name}")
    if isinstance(written := table.get("rules"), list):
        table = table | {"rules": [_rule_table(rule, path) for rule in written]}
    found = parse_table(GateSettings, table, name, path, ("path",))
    lines = rule_lines(text, at, [entry.rule for entry in found.rules])
    rules = (replace(rule, line=line) for rule, line in zip(found.rules, lines, strict=True))
    return replace(found, path=path, rules=tuple(rules))


def _descend(document: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return document


def _rule_table(rule: Any, path: Path) -> dict[str, Any]:
    if isinstance(rule, str):
        return {"rule": rule}
    if not isinstance(rule, dict) or "rule" not in rule:
        raise BadOption(
            f"cannot parse rule {rule!r}",
            where=path,
            way_out='write "cosine.mean <= 0.1" or { rule = "cosine.mean <= 0.1", warn = true }',
        )
    # Names the rule in errors.
    parse_table(RuleEntry, rule, f"the rule {rule['rule']!r}", path, ("line",))
    return rule


def rule_lines(text: str, at: Sequence[str], rules: Sequence[str]) -> list[int | None]:
    """The line of each rule in a valid TOML document, counted from 1.

    Python's parser keeps no positions. Each string that equals a rule is replaced with its number;
    the numbers that the parser then finds in the table at the keys `at` tell which strings the
    rules are.
    """
    lines: list[int] = []

    def number(literal: re.Match[str]) -> str:
        if literal[0].startswith("#") or _string(literal[0]) not in rules:
            return literal[0]
        lines.append(text.count("\n", 0, literal.start()) + 1)
        return f'"{len(lines) - 1}"'

    try:
        numbered = _descend(tomllib.loads(_LITERAL.sub(number, text)), at)["rules"]
        written = [rule["rule"] if isinstance(rule, dict) else rule for rule in numbered]
        return [lines[int(rule)] for rule in written]
    except (ValueError, LookupError, TypeError):  # a rule that reads like one of the keys
        return [None] * len(rules)


def _string(literal: str) -> str | None:
    try:
        return str(tomllib.loads(f"x = {literal}")["x"])
    except tomllib.TOMLDecodeError:
        return None

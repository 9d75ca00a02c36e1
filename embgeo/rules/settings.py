"""Settings in ``embgeo.toml``, or under ``[tool.embgeo]`` in ``pyproject.toml``.

The table ``[analyze]`` holds options of ``embgeo analyze``, ``[gate]`` the rules of a gate.
Names of files must not lead out of the folder or repository of the file, unless the user trusts it:
`trust_settings` in each function that reads one.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import BadOption, argument
from embgeo.core.options import LOADING, MEASURING, OF_ANALYZE, merge_options
from embgeo.core.settings import parse_value, refuse_unknown
from embgeo.core.source import FILES, NO_TOKENS
from embgeo.files import settings

OWN_NAME = "embgeo.toml"
SHARED_NAME = "pyproject.toml"

#: Options of analyze, and those of them for the checkpoints of a gate.
OF_GATES = LOADING | MEASURING
OF_ALL = OF_GATES | OF_ANALYZE


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
    #: Options of ``embgeo analyze`` for checkpoints, with ``_`` for ``-``; those of the table
    #: ``[analyze]`` are among them.
    analyze: Mapping[str, Any] = field(default_factory=dict)

    def resolve_path(self, name: str) -> Path:
        """Return a path in the file, as seen from the current folder."""
        return Path(name) if self.path is None else self.path.parent / name


def find_gate(start: Path, trust_settings: bool = False) -> GateSettings:
    """Find the settings of a gate for a folder: of the nearest file that has some."""
    found = (read_gate(path, trust_settings) for path in find_files(start))
    found_first = next((one for one in found if one.path is not None), None)
    if found_first is not None:
        return found_first
    options = find_options(start=start, trust_settings=trust_settings)
    return GateSettings(analyze=_of_gates(options))


def find_options(
    config: Path | None = None,
    search: bool = True,
    trust_settings: bool = False,
    start: Path | None = None,
) -> dict[str, Any]:
    """Find the options of the table ``[analyze]``: of a file, or of the nearest that has it."""
    if config is not None:
        refuse_both(search)
        found = read_options(config, trust_settings)
        if found is None:
            raise BadOption("has no settings for this", where=config, way_out="write [analyze]")
        return found
    files = find_files(start or Path.cwd()) if search else ()
    tables = (read_options(path, trust_settings) for path in files)
    return next((table for table in tables if table is not None), {})


def refuse_both(search: bool) -> None:
    """Refuse a settings file together with the option that ignores all."""
    both = f"{argument('config')} and {argument('no_config')}"
    refuse_if(not search, both, "exclude each other", "give one of them")


def find_files(start: Path) -> Iterator[Path]:
    """Yield files of settings in a folder and those above, the nearest first.

    The search ends at the root of the repository or at the home folder. Outside of both only the
    folder itself is searched: others may write to those above it, such as ``/tmp``.
    """
    for folder in _searched(start):
        for name in (OWN_NAME, SHARED_NAME):
            if (folder / name).is_file():
                yield folder / name


def _searched(start: Path) -> Sequence[Path]:
    home = Path(os.path.expanduser("~"))
    folders = (start, *start.parents)
    for count, folder in enumerate(folders, 1):
        if folder == home or (folder / ".git").exists():
            return folders[:count]
    return (start,)


def read_options(path: Path, trust_settings: bool = False) -> dict[str, Any] | None:
    """Read the options of the table ``[analyze]`` of a file; None without one."""
    _, name, table = _read_table(path, "analyze")
    return None if table is None else _parse_options(table, OF_ALL, name, path, trust_settings)


def _read_table(path: Path, key: str) -> tuple[str, str, dict[str, Any] | None]:
    """Read the text of a file, and the name and the content of one of its tables."""
    text = settings.read_document(path)
    document = settings.parse_document(
        text, path, "correct it, or ignore files of settings: --no-config"
    )
    at = _place(path, key)
    table, name = _descend(document, at), f"[{'.'.join(at)}]"
    if table is not None and not isinstance(table, dict):
        raise BadOption(f"{key} is not a table", where=path, way_out=f"write {name}")
    return text, name, table


def _place(path: Path, key: str) -> tuple[str, ...]:
    return ("tool", "embgeo", key) if path.name == SHARED_NAME else (key,)


def _parse_options(
    table: Mapping[str, Any],
    known: Mapping[str, Any],
    name: str,
    path: Path,
    trust_settings: bool,
) -> dict[str, Any]:
    """Parse options of analyze; paths are relative to the folder of the file."""
    refuse_unknown(table, known, name, path)
    found = {}
    for key, value in table.items():
        hint = str if key in FILES else known[key]
        read = parse_value(value, hint, f"{key} of {name}", path)
        is_file = key in FILES and (key, read) != ("tokens", NO_TOKENS)
        if is_file and not trust_settings:
            require_inside(read, path, f"{key} of {name}")
        # Absolute: a relative one that does not exist may be a model in a cache.
        found[key] = path.parent.absolute() / read if is_file else read
    return found


def _of_gates(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key in OF_GATES}


def read_gate(path: Path, trust_settings: bool = False) -> GateSettings:
    """Read the settings of one file; without a path if it has no table for the gate."""
    text, name, table = _read_table(path, "gate")
    if table is None:
        return GateSettings()
    if isinstance(written := table.get("rules"), list):
        table = table | {"rules": [_rule_table(rule, path) for rule in written]}
    found = settings.parse_table(GateSettings, table, name, path, ("path",))
    if not trust_settings:
        for source in found.sources:
            require_inside(source, path, f"a source of {name}")
        if found.baseline is not None:
            require_inside(found.baseline, path, f"baseline of {name}")
    inner = f"{name[:-1]}.analyze]"
    own = _parse_options(found.analyze, OF_GATES, inner, path, trust_settings)
    shared = _of_gates(read_options(path, trust_settings) or {})
    lines = rule_lines(text, _place(path, "gate"), [entry.rule for entry in found.rules])
    rules = (replace(rule, line=line) for rule, line in zip(found.rules, lines, strict=True))
    return replace(found, path=path, rules=tuple(rules), analyze=merge_options(shared, own))


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
    settings.parse_table(RuleEntry, rule, f"the rule {rule['rule']!r}", path, ("line",))
    return rule


def rule_lines(text: str, at: Sequence[str], rules: Sequence[str]) -> list[int | None]:
    """Return the line of each rule in a valid TOML document, counted from 1.

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
        numbered = _descend(tomllib.loads(settings.LITERAL.sub(number, text)), at)["rules"]
        written = [rule["rule"] if isinstance(rule, dict) else rule for rule in numbered]
        return [lines[int(rule)] for rule in written]
    except (ValueError, LookupError, TypeError):  # a rule that reads like one of the keys
        return [None] * len(rules)


def _string(literal: str) -> str | None:
    try:
        return str(tomllib.loads(f"x = {literal}")["x"])
    except tomllib.TOMLDecodeError:
        return None


def find_root(folder: Path) -> Path:
    """Find the root of the repository that holds a folder, else the folder itself.

    A repository of the whole home folder does not count.
    """
    folder, home = folder.absolute(), Path(os.path.expanduser("~"))
    for one in (folder, *folder.parents):
        if one == home or one in home.parents:
            break
        if (one / ".git").exists():
            return one
    return folder


def require_inside(name: str, path: Path, what: str) -> None:
    """Raise BadOption for a name in the settings file `path` that leads out of its root.

    The file may come with a stranger's checkout, and what is read goes into public logs. `what` is
    the setting, as in "tokens of [analyze]".
    """
    root = find_root(path.parent)
    if cause := describe_escape(name, path.parent.absolute(), root):
        way_out = f"name a file inside, or trust the settings with {argument('trust_settings')}"
        raise BadOption(f"{what} {cause}: {name!r:.200}", where=path, way_out=way_out)


def describe_escape(name: str, folder: Path, root: Path) -> str:
    """Describe how a name leads out of `root`; empty if it stays inside."""
    # Also in the middle: a path relative to the working folder can begin there.
    if ":/" in name:
        return "is a remote name"
    if "\0" in name:
        return "is not a file name"
    # A chain of places, NAME::NAME, is one of fsspec: its first part has to stay inside, too.
    for text in (name, name.partition("::")[0]):
        if Path(text).anchor:
            return "is not a relative path"
        if not Path(os.path.normpath(folder / text)).is_relative_to(root):
            return f"leads out of {root}"
        try:
            real = (folder / text).resolve()
        except (OSError, RuntimeError):
            return "is a circle of links"
        if not real.is_relative_to(root.resolve()):
            return f"is a link out of {root}"
    return ""

"""One class name for one thing, and functions that are named by verbs; see docs/glossary.md."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "embgeo"

#: First words that do not say what a function does.
NOT_VERBS = frozenset(
    [
        "asked",
        "became",
        "begun",
        "beside",
        "chosen",
        "drawn",
        "dropped",
        "fed",
        "filled",
        "fitted",
        "found",
        "given",
        "grown",
        "held",
        "heard",
        "joined",
        "kept",
        "leads",
        "left",
        "lost",
        "made",
        "mended",
        "moved",
        "named",
        "needed",
        "opened",
        "parsed",
        "planned",
        "quoted",
        "refused",
        "resolved",
        "said",
        "seen",
        "settled",
        "shown",
        "spelled",
        "starred",
        "swept",
        "taken",
        "told",
        "typed",
        "unread",
        "wanted",
        "watched",
        "went",
        "why",
        "worth",
    ]
)


def definitions() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            yield str(path.relative_to(ROOT)), node


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Properties are nouns or participles: ``matrix.tied``."""
    return any(
        ast.unparse(decorator).rpartition(".")[2] in {"property", "cached_property", "setter"}
        for decorator in node.decorator_list
    )


def test_a_class_name_means_one_thing() -> None:
    homes = defaultdict(list)
    for file, node in definitions():
        # A class that extends the one of the same name is the same thing with more methods.
        if isinstance(node, ast.ClassDef) and not any(
            ast.unparse(base).rpartition(".")[2] == node.name for base in node.bases
        ):
            homes[node.name].append(file)
    assert not {name: files for name, files in homes.items() if len(files) > 1}


def test_functions_are_named_by_what_they_do() -> None:
    assert not [
        f"{file}:{node.lineno} {node.name}"
        for file, node in definitions()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not is_property(node)
        and node.name.lstrip("_").partition("_")[0] in NOT_VERBS
    ]

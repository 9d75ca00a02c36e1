"""One class name for one thing, and functions that are named by verbs; see docs/glossary.md."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.support.package_source import modules, nodes

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


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Properties are nouns or participles: ``matrix.tied``."""
    return any(
        ast.unparse(decorator).rpartition(".")[2] in {"property", "cached_property", "setter"}
        for decorator in node.decorator_list
    )


def test_a_class_name_means_one_thing() -> None:
    homes = defaultdict(list)
    for module in modules():
        for node in nodes(module):
            # A class that extends the one of the same name is the same thing with more methods.
            if isinstance(node, ast.ClassDef) and not any(
                ast.unparse(base).rpartition(".")[2] == node.name for base in node.bases
            ):
                homes[node.name].append(module)
    assert not {name: found for name, found in homes.items() if len(found) > 1}


def test_functions_are_named_by_what_they_do() -> None:
    assert not [
        f"{module}:{node.lineno} {node.name}"
        for module in modules()
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.lstrip("_").partition("_")[0] in NOT_VERBS
        and not is_property(node)
    ]


def test_docstrings_of_functions_begin_with_verbs() -> None:
    nouns = (
        "The",
        "A",
        "An",
        "Whether",
        "Why",
        "How",
        "What",
        "All",
        "Every",
        "Each",
        "One",
        "Rows",
    )
    assert not [
        f"{module}:{node.lineno} {node.name}"
        for module in modules()
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (ast.get_docstring(node) or "").partition(" ")[0] in nouns
        and not is_property(node)
    ]
